"""Keys: each algorithm takes its own signatures and keys alone, in every form in which keys are copied. The vectors (made by
openssl and vendors' libraries) say that the right ones are taken."""

import base64
import hmac
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_private_key
from hypothesis import given
from hypothesis import strategies as st

from postern.core.calls.call import Call
from postern.core.signatures.algorithms import ALGORITHM_KINDS, ALGORITHMS, Algorithm, is_pair
from postern.core.signatures.credential import Unproven
from postern.core.signatures.encoding import STAND_IN
from postern.core.signatures.keys.key import MOST_OF_PAIRS, Key
from postern.core.signatures.keys.public import new_private_key
from postern.core.signatures.scheme import SignatureScheme
from postern.core.signatures.signature import SignatureCredential
from support.calls import call

NOW = 1_700_000_000
SOME_DAY = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = b"it is no secret here"
CONTENT = b'{"id":"evt_1"}'
PAIRS: list[Algorithm] = [one for one in ALGORITHMS if is_pair(one)]
PRIVATE = {one: new_private_key(one).encode() for one in PAIRS}


def scheme(**document: object) -> SignatureScheme:
    return SignatureScheme.from_document(document)


def code(document: dict[str, object], request: Call) -> str:
    verdict = SignatureCredential(scheme(**document), SECRET).check(request)
    return verdict.code if isinstance(verdict, Unproven) else f"verified by {verdict.matched}"


def key_of(algorithm: Algorithm, secret: bytes) -> Key:
    return SignatureCredential(scheme(algorithm=algorithm), secret).keys["main"]


def hexed(content: bytes) -> str:
    return hmac.digest(SECRET, content, "sha256").hex()


def public(algorithm: Algorithm) -> ed25519.Ed25519PublicKey:
    private = load_der_private_key(base64.b64decode(PRIVATE[algorithm]), None)
    return private.public_key()  # type: ignore[return-value]


def pem(key: ed25519.Ed25519PublicKey) -> bytes:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def der(key: ed25519.Ed25519PublicKey) -> bytes:
    return base64.b64encode(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


@pytest.mark.parametrize("algorithm", PAIRS)
def test_a_public_key_takes_what_its_private_half_made_and_nothing_else(algorithm: Algorithm) -> None:
    signature = key_of(algorithm, PRIVATE[algorithm]).sign(CONTENT)
    assert len(signature) in ALGORITHM_KINDS[algorithm].sizes
    key = key_of(algorithm, pem(public(algorithm)))
    assert key.matches(CONTENT, [bytes(len(signature)), signature])
    assert not key.matches(CONTENT + b" ", [signature]) and not key.matches(CONTENT, [signature[:-1]])
    assert not key.can_sign
    with pytest.raises(ValueError, match="only the sender"):
        key.sign(CONTENT)
    for other in PAIRS:
        try:
            found = key_of(other, PRIVATE[algorithm]).matches(CONTENT, [signature])
        except ValueError:
            continue
        assert found == (other == algorithm)


WRITTEN: dict[str, Callable[[ed25519.Ed25519PublicKey], bytes]] = {
    "PEM": pem,
    "PEM whose line breaks were lost": lambda key: pem(key).replace(b"\n", b""),
    "PEM with other line breaks": lambda key: b"\r\n" + pem(key).replace(b"\n", b"\r\n"),
    "base64 of DER": der,
    "base64 in lines": lambda key: der(key)[:30] + b"\n" + der(key)[30:],
}
OF_ED25519: dict[str, Callable[[bytes], bytes]] = {
    "hex": lambda raw: raw.hex().encode(),
    "base64": base64.b64encode,
    "whpk_": lambda raw: b"whpk_" + base64.b64encode(raw),
}


def test_a_key_is_read_in_every_form_in_which_it_is_copied() -> None:
    for algorithm in PAIRS:
        signature = key_of(algorithm, PRIVATE[algorithm]).sign(CONTENT)
        for form, write in WRITTEN.items():
            assert key_of(algorithm, write(public(algorithm))).matches(CONTENT, [signature]), form
    signature = key_of("ed25519", PRIVATE["ed25519"]).sign(CONTENT)
    for form, of_raw in OF_ED25519.items():
        raw = public("ed25519").public_bytes(Encoding.Raw, PublicFormat.Raw)
        assert key_of("ed25519", of_raw(raw)).matches(CONTENT, [signature]), form


def test_the_key_of_a_certificate_is_taken() -> None:
    private = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "example.com")])
    made = x509.CertificateBuilder(
        name, name, private.public_key(), 7, SOME_DAY, SOME_DAY + timedelta(days=1)
    )
    text = made.sign(private, hashes.SHA256()).public_bytes(Encoding.PEM)
    assert not key_of("rsa_sha256", text).can_sign


@pytest.mark.parametrize("algorithm", PAIRS)
def test_what_is_no_key_of_the_algorithm_is_refused_in_words(algorithm: Algorithm) -> None:
    weak = rsa.generate_private_key(65537, 1024).public_key()
    curve = ec.generate_private_key(ec.SECP384R1()).public_key()
    empty = b"-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----"
    for text in (b"", b"whsec_abc", empty, b"%" * 64, b"00" * 31, der(weak), der(curve)):  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"public key|is wanted"):
            key_of(algorithm, text)


@given(st.binary(max_size=200), st.sampled_from(PAIRS))
def test_no_text_is_more_than_refused(text: bytes, algorithm: Algorithm) -> None:
    try:
        key_of(algorithm, text)
    except ValueError:
        return


@pytest.mark.parametrize("algorithm", PAIRS)
def test_while_the_key_is_not_known_nothing_is_taken(algorithm: Algorithm) -> None:
    key = key_of(algorithm, STAND_IN.encode() + b"abc")
    assert not key.can_sign and not key.matches(CONTENT, [bytes(64)])


def test_a_public_key_is_not_masked_as_if_it_were_a_secret() -> None:
    assert SignatureCredential(scheme(algorithm="ed25519"), pem(public("ed25519"))).secrets == ()


def test_only_some_signatures_are_checked_with_a_public_key() -> None:
    right = key_of("ed25519", PRIVATE["ed25519"]).sign(CONTENT).hex()
    checked = SignatureCredential(scheme(algorithm="ed25519", itemSeparator=","), PRIVATE["ed25519"])
    for more, verdict in ((MOST_OF_PAIRS - 1, ""), (MOST_OF_PAIRS, "signature_malformed")):
        request = call(CONTENT, ("X-Signature", ",".join([*["00" * 64] * more, right])))
        assert getattr(checked.check(request), "code", "") == verdict


def test_what_does_not_go_with_a_public_key_is_said() -> None:
    for more, field in (
        ({"encoding": "auto"}, "encoding"),
        ({"secretEncoding": "hex"}, "secretEncoding"),
        ({"secretPrefix": "whsec_"}, "secretEncoding"),
    ):
        with pytest.raises(ValueError, match=field):
            SignatureScheme.from_document({"algorithm": "ed25519", **more})


def test_an_item_of_a_list_without_keys_is_found_by_its_place() -> None:
    listed = {"itemSeparator": ",", "signedContent": "{timestamp}.{body}", "timestamp": "item:1"}
    right = hexed(b"%d." % NOW + CONTENT)
    for value, verdict in (
        (f"{NOW},{'0' * 64},{right}", "verified by main"),
        (f"{NOW + 1},{right}", "signature_mismatch"),
        (f"{right},{NOW}", "timestamp_malformed"),
        (right, "timestamp_malformed"),
    ):
        assert code(listed, call(CONTENT, ("X-Signature", value))) == verdict, value
    with pytest.raises(ValueError, match="item:1"):
        scheme(**{**listed, "timestamp": "item:t"})


FORM = ("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")


def test_a_form_is_signed_by_its_sorted_fields_and_another_body_by_its_digest() -> None:
    document = {"signedContent": "{path}{query:b}{form}", "bodyDigest": "query:b", "encoding": "hex"}

    def verdict(body: bytes, signed: bytes, query: bytes = b"b=", kind: tuple[str, str] = FORM) -> str:
        signature = ("X-Signature", hexed(b"/webhook/abc" + signed))
        return code(document, call(body, signature, kind, query=query))

    assert verdict(b"b=2&a=1&A=%C3%A9+&a=0&a=1", "Aé a0a1b2".encode()) == "verified by main"
    assert verdict(b"b=2&a=1", b"b2a1") == "signature_mismatch"
    digest = "36bbe50ed96841d10443bcb670d6554f0a34b761be67ec9c4a8ad2c0c44ca42c"  # of abcde
    json = ("Content-Type", "application/json")
    assert verdict(b"abcde", digest.encode(), b"b=" + digest.encode(), json) == "verified by main"
    assert verdict(b"abcdE", digest.encode(), b"b=" + digest.encode(), json) == "signature_mismatch"
    # Whoever has seen a call without parameters must not send another body with its signature.
    assert verdict(b"{}", b"", kind=json) == "signature_malformed"
    assert verdict(b"", b"", kind=json) == "verified by main"
