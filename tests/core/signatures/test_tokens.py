"""Signed tokens: what is in one is worth what its signature is, by the scheme's algorithm and keys and never by its own."""

import hmac
import json
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from postern.core.signatures.algorithms import LONGEST_TOKEN
from postern.core.signatures.credential import Unproven
from postern.core.signatures.keys.token import keys_in, read_token
from postern.core.signatures.scheme import SignatureScheme, problems
from postern.core.signatures.signature import SignatureCredential
from support.calls import call

NOW = 1_700_000_000
BODY = b'{"id":"evt_1"}'
KEYS = "https://keys.example.com/certs"
RSA, OTHER, SMALL = (rsa.generate_private_key(65537, bits) for bits in (2048, 2048, 1024))
CURVE = ec.generate_private_key(ec.SECP256R1())
DIGEST = sha256(BODY).hexdigest()


def text_of(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def number(value: int) -> str:
    return text_of(value.to_bytes((value.bit_length() + 7) // 8))


def rsa_key(private: rsa.RSAPrivateKey, key_id: str, **more: str) -> dict[str, str]:
    public = private.public_key().public_numbers()
    return {"kty": "RSA", "kid": key_id, "n": number(public.n), "e": number(public.e), **more}


def curve_key(key_id: str) -> dict[str, str]:
    public = CURVE.public_key().public_numbers()
    return {"kty": "EC", "crv": "P-256", "kid": key_id, "x": number(public.x), "y": number(public.y)}


def key_set(*keys: object) -> bytes:
    return json.dumps({"keys": keys}).encode()


SET = key_set(
    rsa_key(RSA, "k1"), curve_key("k2"), "rubbish", {"kty": "RSA", "kid": "k3"}, rsa_key(SMALL, "k4")
)
CLAIMS = {"iss": "https://issuer.example.com", "aud": "me", "exp": NOW + 3600, "iat": NOW}


def token(claims: dict[str, Any], sign: Any, key_id: str | None = "k1", **header: Any) -> str:
    head = {"typ": "JWT", **({"kid": key_id} if key_id else {}), **header}
    signed = f"{text_of(json.dumps(head).encode())}.{text_of(json.dumps(claims).encode())}"
    return f"{signed}.{text_of(sign(signed.encode()))}"


def by_rsa(private: rsa.RSAPrivateKey = RSA) -> Any:
    return lambda signed: private.sign(signed, padding.PKCS1v15(), SHA256())


def by_curve(signed: bytes) -> bytes:
    r, s = utils.decode_dss_signature(CURVE.sign(signed, ec.ECDSA(SHA256())))
    return r.to_bytes(32) + s.to_bytes(32)


def by_secret(secret: bytes) -> Any:
    return lambda signed: hmac.digest(secret, signed, "sha256")


def rs256(claims: dict[str, Any] = CLAIMS, sign: Any = None, key_id: str | None = "k1", **header: Any) -> str:
    return token(claims, sign or by_rsa(), key_id, **{"alg": "RS256", **header})


OF_KEYS = {
    "signature": "header:Authorization",
    "algorithm": "jwt_rs256",
    "keysFrom": KEYS,
    "issuers": ["https://issuer.example.com"],
}
OF_SECRET = {"signature": "header:X-Token", "algorithm": "jwt_hs256", "issuers": "us", "bodyClaim": "sha256"}


def judged(
    scheme: dict[str, Any],
    sent: str,
    *,
    secret: bytes = b"me",
    body: bytes = BODY,
    fetched: bytes | None = SET,
    **more: Any,
) -> tuple[str, str, str]:
    request = call(body, (scheme["signature"].partition(":")[2], sent))
    request.fetched = {} if fetched is None else {KEYS: fetched}
    verdict = SignatureCredential(SignatureScheme.from_document(scheme), secret, **more).check(request)
    if isinstance(verdict, Unproven):
        return verdict.code, verdict.detail, verdict.wanted
    return f"by {verdict.matched}", "", ""


PUBLIC = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
WITHOUT_AUDIENCE = {name: one for name, one in CLAIMS.items() if name != "aud"}
MISMATCH, MALFORMED = "signature_mismatch", "signature_malformed"
NOT_ITS_KEYS, NOT_IN_SET = "not that of the sender's key", "not in the sender's set"


@pytest.mark.parametrize(
    ("sent", "code", "why"),
    [
        (rs256(), "by main", ""),
        ("Bearer " + rs256(), "by main", ""),
        ("bearer  " + rs256(CLAIMS | {"aud": ["you", "me"]}), "by main", ""),
        (rs256(CLAIMS | {"aud": "you"}), MISMATCH, "its aud is not"),
        (rs256(CLAIMS | {"aud": {"me": 1}}), MISMATCH, "its aud is not"),
        (rs256(WITHOUT_AUDIENCE), MISMATCH, "its aud"),
        (rs256(CLAIMS | {"iss": "https://issuer.example.com.evil.example"}), MISMATCH, "its issuer"),
        (rs256(CLAIMS | {"exp": NOW - 61}), "timestamp_expired", "had ended 61 s"),
        (rs256(CLAIMS | {"exp": NOW - 59}), "by main", ""),
        (rs256(CLAIMS | {"exp": "9999999999"}), "timestamp_missing", "(exp)"),
        (rs256(CLAIMS | {"exp": True}), "timestamp_missing", "(exp)"),
        (rs256(CLAIMS | {"nbf": NOW + 61}), "timestamp_in_future", "begins"),
        (rs256(CLAIMS | {"nbf": NOW + 59}), "by main", ""),
        # What a token says of its own algorithm and keys is not what it is checked by.
        (rs256(sign=lambda signed: b"", alg="none"), MISMATCH, "'none' and not RS256"),
        (rs256(sign=lambda signed: b""), MISMATCH, NOT_ITS_KEYS),
        (rs256(sign=by_secret(PUBLIC), alg="HS256"), MISMATCH, "'HS256' and not RS256"),
        (rs256(sign=by_secret(PUBLIC)), MISMATCH, NOT_ITS_KEYS),
        (rs256(sign=by_rsa(OTHER)), MISMATCH, NOT_ITS_KEYS),
        (rs256(sign=by_rsa(OTHER), jwk=rsa_key(OTHER, "k1")), MISMATCH, NOT_ITS_KEYS),
        (rs256(sign=by_rsa(OTHER), jku="https://evil.example", key_id="x"), MISMATCH, NOT_IN_SET),
        (rs256(sign=by_curve, key_id="k2"), MISMATCH, NOT_IN_SET),
        (rs256(sign=by_rsa(SMALL), key_id="k4"), MISMATCH, NOT_IN_SET),
        (rs256(key_id="../../etc/passwd"), MISMATCH, NOT_IN_SET),
        (rs256(key_id=None), MISMATCH, NOT_IN_SET),
        (rs256(key_id="k3"), MISMATCH, NOT_IN_SET),
        (rs256(kid={"a": 1}, key_id=None), MALFORMED, "no signed token"),
        (rs256(crit=["b64"], b64=False), MALFORMED, "no signed token"),
        (rs256() + ".x", MALFORMED, "no signed token"),
        (rs256() + "=", MALFORMED, "no signed token"),
        ("Basic " + rs256(), MALFORMED, "no signed token"),
        ("a.b.c", MALFORMED, "no signed token"),
        ("x" * (LONGEST_TOKEN + 1), MALFORMED, "no signed token"),
    ],
)
def test_a_token_is_worth_what_its_signature_is(sent: str, code: str, why: str) -> None:
    found, detail, wanted = judged(OF_KEYS, sent)
    assert found == code and why in detail
    assert wanted == (KEYS if NOT_IN_SET in detail else "")


def test_the_second_audience_is_taken_too() -> None:
    assert judged(OF_KEYS, rs256(), secret=b"old", second=b"me")[0] == "by second"


def test_without_keys_at_hand_nothing_is_said_and_they_are_asked_for() -> None:
    code, _, wanted = judged(OF_KEYS, rs256(), fetched=None)
    assert (code, wanted) == ("signing_keys_unavailable", KEYS)
    rubbish_sets = (b"", b"[]", b'{"keys":7}', b"\xff", b'{"keys":[' + b"[" * 100_000)
    for rubbish in (*rubbish_sets, key_set(rsa_key(RSA, "k1", use="enc"))):
        assert judged(OF_KEYS, rs256(), fetched=rubbish)[0] == "signature_mismatch"


def test_es256_is_two_numbers_and_not_der() -> None:
    scheme = {**OF_KEYS, "algorithm": "jwt_es256"}
    assert judged(scheme, rs256(sign=by_curve, key_id="k2", alg="ES256"))[0] == "by main"
    for sign in (lambda signed: CURVE.sign(signed, ec.ECDSA(SHA256())), lambda signed: bytes(64)):
        assert judged(scheme, rs256(sign=sign, key_id="k2", alg="ES256"))[0] == "signature_mismatch"


def test_a_token_over_the_body_by_a_shared_secret() -> None:
    def of(secret: bytes = b"me", **claims: object) -> str:
        return token({"iss": "us", "sha256": DIGEST} | claims, by_secret(secret), None, alg="HS256")

    assert judged(OF_SECRET, of())[0] == "by main"
    assert "another secret" in judged(OF_SECRET, of(b"x"))[1]
    assert "the body is not" in judged(OF_SECRET, of(), body=BODY + b" ")[1]
    assert "the body is not" in judged(OF_SECRET, of(sha256=None))[1]
    assert "issuer" in judged(OF_SECRET, of(iss="them"))[1]
    assert judged(OF_SECRET, of(exp=NOW - 100))[0] == "timestamp_expired"
    timed = OF_SECRET | {"timestamp": "item:iat", "toleranceSeconds": 300}
    for at, code in (
        (NOW, "by main"),
        (NOW - 301, "timestamp_expired"),
        (NOW + 0.5, "by main"),
        ("x", "timestamp_malformed"),
    ):
        assert judged(timed, of(iat=at))[0] == code
    assert judged(timed, of())[0] == "timestamp_missing"


def test_a_token_of_a_shared_secret_that_covers_no_body_ends_or_has_an_age() -> None:
    scheme = {"signature": "header:Authorization", "algorithm": "jwt_hs256"}
    forever = token({"iat": NOW}, by_secret(b"me"), None, alg="HS256")
    assert judged(scheme, forever)[0] == "timestamp_missing"
    assert judged(scheme, token({"exp": NOW + 60}, by_secret(b"me"), None, alg="HS256"))[0] == "by main"
    timed = scheme | {"timestamp": "item:iat"}
    assert judged(timed, forever)[0] == "by main"
    assert (
        judged(timed, token({"iat": NOW - 301}, by_secret(b"me"), None, alg="HS256"))[0]
        == "timestamp_expired"
    )
    for lax in ({"toleranceSeconds": 0}, {"timestampRequired": False}):
        assert judged(timed | lax, forever)[0] == "timestamp_missing"
    assert judged(
        {**OF_KEYS, "timestamp": "item:iat", "toleranceSeconds": 0}, rs256({**CLAIMS, "exp": None})
    )[0] == ("timestamp_missing")


@pytest.mark.parametrize(
    ("audience", "accepted"),
    [("a", True), (["x", "b"], True), ("c", False), ("", False), (None, False), ({"a": 1}, False)],
)
def test_the_audience_is_compared_beside_the_secret_or_the_application(
    audience: object, accepted: bool
) -> None:
    """Event Grid: a token of the right application for another receiver, and of another one for this."""
    shared = {"signature": "header:X-Token", "algorithm": "jwt_hs256", "audiences": ["a", "b"]}
    sent = token({"aud": audience, "exp": NOW + 60}, by_secret(b"me"), None, alg="HS256")
    assert (judged(shared, sent)[0] == "by main") is accepted
    both = {**OF_KEYS, "secretClaim": "appid", "audiences": "a,b"}
    for application in ("me", "other"):
        verdict = judged(both, rs256(CLAIMS | {"aud": audience, "appid": application}))[0]
        assert (verdict == "by main") is (accepted and application == "me")


def test_where_an_account_is_set_the_audience_is_the_webhooks_url() -> None:
    """Else a token that another receiver was given, or that somebody else's account has asked for, would do."""
    scheme, url = {**OF_KEYS, "secretClaim": "email"}, "https://hooks.example.com/webhook/abc"
    mine = {"aud": url, "email": "me", "email_verified": True}
    assert judged(scheme, rs256(CLAIMS | mine))[0] == "by main"
    assert judged(scheme, rs256(CLAIMS | mine), public_url="https://else.example.com")[0] == MISMATCH
    for wrong, why in (
        ({"email": "them"}, "its email is not"),
        ({"email_verified": False}, "not verified"),
        ({"email_verified": "true"}, "not verified"),
        ({"aud": url + "/"}, "audience is not this webhook's URL"),
    ):
        code, detail, _ = judged(scheme, rs256(CLAIMS | mine | wrong))
        assert code == "signature_mismatch" and why in detail


def test_two_tokens_are_none() -> None:
    twice = call(BODY, *[("Authorization", rs256())] * 2)
    verdict = SignatureCredential(SignatureScheme.from_document(OF_KEYS), b"me").check(twice)
    assert isinstance(verdict, Unproven) and "sent 2 times" in verdict.detail


def test_a_token_that_is_good_for_other_calls_is_not_stored() -> None:
    credential = SignatureCredential(SignatureScheme.from_document(OF_KEYS), b"me")
    assert credential.masked_headers == {b"authorization"} and not credential.signature_headers
    signing = SignatureCredential(SignatureScheme.from_document(OF_SECRET), b"me")
    assert signing.signature_headers == {b"x-token"}


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"algorithm": "jwt_rs256"}, "keysFrom"),
        ({"algorithm": "jwt_rs256", "keysFrom": "http://keys.example.com/"}, "keysFrom"),
        ({"algorithm": "jwt_rs256", "keysFrom": "https://me@keys.example.com/"}, "keysFrom"),
        ({"algorithm": "jwt_hs256", "keysFrom": KEYS}, "keysFrom"),
        ({"keysFrom": KEYS}, "keysFrom"),
        ({"issuers": "x"}, "issuers"),
        ({"audiences": "x"}, "issuers"),
        ({"algorithm": "jwt_hs256", "signedContent": "{url}"}, "signedContent"),
        ({"algorithm": "jwt_hs256", "secretClaim": "email"}, "secretClaim"),
    ],
)
def test_what_does_not_go_together_is_said(document: dict[str, str], field: str) -> None:
    assert [one.field for one in problems(document)] == [field]


def test_a_token_covers_the_body_only_by_a_claim() -> None:
    assert not SignatureScheme.from_document(OF_KEYS).signs_body
    assert SignatureScheme.from_document(OF_SECRET).signs_body


@given(st.binary(max_size=300))
def test_no_text_and_no_key_set_is_more_than_refused(text: bytes) -> None:
    assert read_token(text) is None or text.count(b".") == 2
    assert keys_in(text, "RS256") == ()
