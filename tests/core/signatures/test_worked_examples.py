"""The schemes in docs/how-to/custom-scheme.md, each against calls that are signed here as the sender's documents say."""

import base64
import hmac
import json
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from postern.core.calls.call import Call
from postern.core.signatures.credential import Unproven, VerifiedCall
from postern.core.signatures.scheme import SignatureScheme
from postern.core.signatures.signature import SignatureCredential

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "custom-scheme.md"
SCHEMES = dict(
    re.findall(r"^### (.+)\n\n(?:.+\n)+\n```json\n((?:.*\n)+?)```$", PAGE.read_text(), re.MULTILINE)
)
NOW = 1_700_000_000
URL = "https://hooks.example.com/webhook/abc"
SECRET = base64.b64encode(b"a key of some thirty-two bytes..").decode()

Headers = dict[str, str]


def hexed(key: str, content: bytes, digest: str = "sha256") -> str:
    return hmac.new(key.encode(), content, digest).hexdigest()


def based(key: bytes, content: bytes, digest: str) -> str:
    return base64.b64encode(hmac.new(key, content, digest).digest()).decode()


def token(key: str, claims: dict[str, Any]) -> str:
    parts = [json.dumps(one).encode() for one in ({"alg": "HS256", "typ": "JWT"}, claims)]
    signed = b".".join(base64.urlsafe_b64encode(one).rstrip(b"=") for one in parts)
    made = base64.urlsafe_b64encode(hmac.digest(key.encode(), signed, "sha256")).rstrip(b"=")
    return (signed + b"." + made).decode()


def message_signature(key: str, body: bytes, at: int) -> Headers:
    digest = f"sha-256=:{base64.b64encode(sha256(body).digest()).decode()}:"
    signed = f'("@method" "@target-uri" "content-digest");created={at};keyid="shop"'
    lines = ['"@method": POST', f'"@target-uri": {URL}', f'"content-digest": {digest}']
    base = "\n".join([*lines, f'"@signature-params": {signed}'])
    made = based(key.encode(), base.encode(), "sha256")
    headers = {"Content-Digest": digest, "Signature-Input": f"sig1={signed}"}
    return {**headers, "Signature": f"sig1=:{made}:"}


Signer = Callable[[str, bytes, int], Headers]

SIGNERS: dict[str, Signer] = {
    "ClickUp": lambda key, body, at: {"X-Signature": hexed(key, body)},
    "Help Scout": lambda key, body, at: {"X-HelpScout-Signature": based(key.encode(), body, "sha1")},
    "Greenhouse": lambda key, body, at: {
        "Signature": f"sha256 {hexed(key, body)}",
        "Greenhouse-Event-ID": "7",
    },
    "Microsoft Teams (outgoing webhooks)": lambda key, body, at: {
        "Authorization": f"HMAC {based(base64.b64decode(key), body, 'sha256')}"
    },
    "Customer.io": lambda key, body, at: {
        "X-CIO-Timestamp": str(at),
        "X-CIO-Signature": hexed(key, f"v0:{at}:".encode() + body),
    },
    "Buildkite": lambda key, body, at: {
        "X-Buildkite-Signature": f"timestamp={at},signature={hexed(key, f'{at}.'.encode() + body)}"
    },
    "ElevenLabs": lambda key, body, at: {
        "ElevenLabs-Signature": f"t={at},v0={hexed(key, f'{at}.'.encode() + body)}"
    },
    "Ghost": lambda key, body, at: {
        "X-Ghost-Signature": f"sha256={hexed(key, body + f'{at}000'.encode())}, t={at}000"
    },
    "Mercado Pago": lambda key, body, at: {
        "x-request-id": "r-1",
        "x-signature": f"ts={at},v1={hexed(key, f'id:17;request-id:r-1;ts:{at};'.encode())}",
    },
    "Vonage (Messages)": lambda key, body, at: {
        "Authorization": "Bearer "
        + token(key, {"iss": "Vonage", "iat": at, "jti": "j", "payload_hash": sha256(body).hexdigest()})
    },
    "Worldpay (Access)": lambda key, body, at: {
        "Event-Signature": f"1/SHA256/{'0' * 64},2/SHA256/{hexed(key, body)}"
    },
    "Paystack, with a time": lambda key, body, at: {
        "x-paystack-signature": f"t={at},v1=key_1:{hexed(key, f'{at}.'.encode() + body, 'sha512')}"
    },
    "Mandrill (Mailchimp Transactional)": lambda key, body, at: {
        "X-Mandrill-Signature": based(key.encode(), f"{URL}events[17]x1".encode(), "sha1"),
        "Content-Type": "application/x-www-form-urlencoded",
    },
    "HTTP Message Signatures (RFC 9421)": lambda key, body, at: message_signature(key, body, at),
}
FORM = b"x=1&events=%5B17%5D"
SIGNS_NO_BODY = {"Mercado Pago"}


def call(headers: Headers, body: bytes, query: bytes = b"") -> Call:
    pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    if "Content-Type" not in headers:
        pairs.append((b"content-type", b"application/json"))
    at, base = float(NOW), "https://hooks.example.com"
    return Call("POST", b"/webhook/abc", query, tuple(pairs), body, "192.0.2.1", at, base)


def test_every_example_has_a_signer() -> None:
    assert SCHEMES.keys() == SIGNERS.keys() and len(SCHEMES) >= 10


@pytest.mark.parametrize("name", SIGNERS)
def test_an_example_takes_its_sender_s_calls_and_no_others(name: str) -> None:
    scheme = SignatureScheme.from_document(json.loads(SCHEMES[name]))
    credential = SignatureCredential(scheme, SECRET.encode(), public_url=URL)
    body, sign = b'{"id": "17", "event_id": "17", "eventId": "17"}', SIGNERS[name]
    if "{form}" in scheme.signed_content:
        body = FORM
    query = b"data.id=17" if name in SIGNS_NO_BODY else b""

    def verdict(sent: Call) -> str:
        found = credential.check(sent)
        return found.code if isinstance(found, Unproven) else "verified"

    genuine = call(sign(SECRET, body, NOW), body, query)
    assert verdict(genuine) == "verified"
    if scheme.delivery_id:
        checked = credential.check(genuine)
        assert isinstance(checked, VerifiedCall) and checked.delivery_id
    altered = call(sign(SECRET, body, NOW), body.replace(b"17", b"18"), query.replace(b"17", b"18"))
    assert verdict(altered) == "signature_mismatch"
    only_body = call(sign(SECRET, body, NOW), body + b" ", query)
    assert verdict(only_body) == ("verified" if name in SIGNS_NO_BODY else "signature_mismatch")
    other = base64.b64encode(b"another key of thirty-two bytes.").decode()
    assert verdict(call(sign(other, body, NOW), body, query)) == "signature_mismatch"
    assert verdict(call({}, body)) == "signature_missing"
    if scheme.timestamp:
        stale = call(sign(SECRET, body, NOW - scheme.tolerance_seconds - 1), body, query)
        assert verdict(stale) == "timestamp_expired"


def test_a_token_that_covers_the_body_is_made_here_with_the_claims_that_are_asked_for() -> None:
    asked = {
        "algorithm": "jwt_hs256",
        "bodyClaim": "sha256",
        "issuers": ["netlify", "x"],
        "audiences": "shop",
    }
    credential = SignatureCredential(SignatureScheme.from_document(asked), SECRET.encode())
    made = credential.sign(b"{}").decode()
    claims = {"sha256": sha256(b"{}").hexdigest(), "iss": "netlify", "aud": "shop"}
    assert json.loads(base64.urlsafe_b64decode(made.split(".")[1] + "==")) == claims
    assert isinstance(credential.check(call({"X-Signature": made}, b"{}")), VerifiedCall)
    assert isinstance(credential.check(call({"X-Signature": made}, b"[]")), Unproven)
    for more in ({"bodyClaim": ""}, {"timestamp": "item:iat"}):
        other = SignatureScheme.from_document(asked | more)
        assert not SignatureCredential(other, SECRET.encode()).can_sign
