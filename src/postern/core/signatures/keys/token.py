"""Tokens that a sender signs (JWT): read, and checked with a secret or with a set of public keys (JWKS).

The algorithm is the scheme's and never the token's, and a key comes from the set that the scheme names: what a token says
about its own algorithm, key or where that is to be fetched is compared, or not looked at.
"""

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256

import msgspec

from postern.core.calls.call import Call
from postern.core.documents import Document
from postern.core.signatures.algorithms import ALGORITHM_KINDS, LONGEST_TOKEN, is_shared
from postern.core.signatures.encoding import signing_key
from postern.core.signatures.keys.key import Key, SignatureValues
from postern.core.signatures.keys.public import KeyOfPair
from postern.core.signatures.scheme import SignatureScheme

MOST_KEYS = 50
SKEW = 60
"""Seconds by which the sender's clock may differ."""

_PART = re.compile(rb"[A-Za-z0-9_-]*")


class SignedToken(msgspec.Struct):
    algorithm: str
    key_id: str | None
    claims: Document
    signed: bytes
    signature: bytes

    def number(self, claim: str) -> float | None:
        value = self.claims.get(claim)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def read_token(text: bytes) -> SignedToken | None:
    """Returns the token's parts, of which nothing is proven yet, or None if it is no token."""
    parts = text.split(b".")
    if len(text) > LONGEST_TOKEN or len(parts) != 3:
        return None
    try:
        header, claims, signature = (_decoded(part) for part in parts)
        head, said = _object(header), _object(claims)
    except (Error, ValueError, msgspec.DecodeError, RecursionError):
        return None
    algorithm, key_id = head.get("alg"), head.get("kid")
    # Extensions that must be understood (crit) are not understood here.
    if not isinstance(algorithm, str) or not isinstance(key_id, str | None) or "crit" in head:
        return None
    return SignedToken(algorithm, key_id, said, parts[0] + b"." + parts[1], signature)


def _decoded(part: bytes) -> bytes:
    if not _PART.fullmatch(part):
        raise ValueError("not base64url")
    return urlsafe_b64decode(part + b"=" * (-len(part) % 4))


def _object(text: bytes) -> Document:
    return msgspec.json.decode(text, type=Document)


class TokenKey(Key):
    """Checks one scheme's tokens. ``secret`` is the shared secret, or the value that a claim must have."""

    signature_noun = "token"

    def __init__(
        self, scheme: SignatureScheme, secret: bytes, url: Callable[[Call], bytes], has_age: bool
    ) -> None:
        self.noun = "secret" if is_shared(scheme.algorithm) else "audience"
        self._scheme = scheme
        self._name = ALGORITHM_KINDS[scheme.algorithm].in_tokens
        self._secret = signing_key(secret)
        self._url = url
        is_good_for_others = bool(scheme.keys_from) or not scheme.body_claim
        self._must_end = is_good_for_others and not has_age
        # Other claims, and times, are not known here.
        self.can_sign = is_shared(scheme.algorithm) and bool(scheme.body_claim) and not scheme.timestamp

    def values(self, found: list[bytes]) -> SignatureValues | str:
        """A token, and its claims as its items. Which of two would be meant nobody can say."""
        word, _, rest = found[0].partition(b" ")
        text = rest.strip() if word.lower() == b"bearer" else found[0]
        token = read_token(text) if len(found) == 1 else None
        if token is None:
            return "is no signed token (JWT)" if len(found) == 1 else f"was sent {len(found)} times"
        claims = [claim for claim in token.claims.items() if isinstance(claim[1], str | int | float)]
        return SignatureValues(
            [text], {name.encode("utf-8", "replace"): [_as_item(value)] for name, value in claims}
        )

    def sign(self, content: bytes) -> bytes:
        claims = {self._scheme.body_claim: sha256(content).hexdigest()}
        listed = (("iss", self._scheme.issuers), ("aud", self._scheme.audiences))
        claims |= {name: values[0] for name, values in listed if values}
        parts = [msgspec.json.encode(document) for document in ({"alg": self._name, "typ": "JWT"}, claims)]
        signed = b".".join(urlsafe_b64encode(part).rstrip(b"=") for part in parts)
        made = hmac.digest(self._secret, signed, "sha256")
        return signed + b"." + urlsafe_b64encode(made).rstrip(b"=")

    def keys_at(self, call: Call) -> str:
        return self._scheme.keys_from

    def matches(self, content: bytes, signatures: list[bytes], fetched: bytes = b"") -> bool:
        return not self.trouble(content, signatures, fetched)

    def trouble(self, content: bytes, signatures: list[bytes], fetched: bytes = b"") -> str:
        """Returns why this token does not prove these bytes, or an empty text if it does."""
        token = read_token(signatures[0])
        if token is None:
            return "it is no signed token"
        scheme = self._scheme
        if token.algorithm != self._name:
            return f"it says {token.algorithm[:20]!r} and not {self._name}"
        if is_shared(scheme.algorithm):
            made = hmac.digest(self._secret, token.signed, "sha256")
            if not hmac.compare_digest(made, token.signature):
                return "it was made with another secret"
        else:
            keys = [key for key_id, key in keys_in(fetched, self._name) if key_id == token.key_id]
            if not keys:
                return UNKNOWN_KEY
            signature = _in_der(token.signature) if self._name == "ES256" else token.signature
            if not any(key.matches(token.signed, [signature]) for key in keys):
                return "its signature is not that of the sender's key"
            if not _is_or_has(token.claims.get(scheme.secret_claim), self._secret.decode("utf-8", "replace")):
                return f"its {scheme.secret_claim} is not what is set here"
            if scheme.secret_claim == "email" and token.claims.get("email_verified") is not True:
                return "its email is not verified"
        if scheme.issuers and token.claims.get("iss") not in scheme.issuers:
            return f"its issuer is not {' or '.join(scheme.issuers)}"
        if scheme.body_claim:
            digest = token.claims.get(scheme.body_claim)
            made_of = sha256(content).hexdigest()
            if not isinstance(digest, str) or not hmac.compare_digest(digest.encode(), made_of.encode()):
                return f"the body is not the one whose SHA-256 is in its claim {scheme.body_claim}"
        return ""

    def rejected(self, call: Call, signature: bytes, fetched: bytes) -> tuple[str, str] | None:
        token = read_token(signature)
        assert token is not None
        audiences, claimed = self._scheme.audiences, token.claims.get("aud")
        if audiences and not any(_is_or_has(claimed, audience) for audience in audiences):
            return "signature_mismatch", f"the token's audience is not {' or '.join(audiences)}"
        if self._scheme.secret_claim != "aud" and not audiences:
            url = self._url(call).partition(b"?")[0].decode("utf-8", "replace")
            if not _is_or_has(claimed, url):
                return "signature_mismatch", f"the token's audience is not this webhook's URL, {url}"
        return _out_of_time(token, call.received_at, self._must_end)


def _out_of_time(token: SignedToken, now: float, must_end: bool) -> tuple[str, str] | None:
    """A code and words where a token is not valid yet or no more. A token is good for other calls, too, until it ends, so one
    whose age nothing else bounds must."""
    ends, begins = token.number("exp"), token.number("nbf")
    if ends is None and must_end:
        return "timestamp_missing", "the token does not say when it ends (exp)"
    if ends is not None and now > ends + SKEW:
        return "timestamp_expired", f"the token had ended {now - ends:.0f} s before it arrived"
    if begins is not None and now < begins - SKEW:
        return "timestamp_in_future", f"the token begins {begins - now:.0f} s after it arrived"
    return None


UNKNOWN_KEY = "its key is not in the sender's set of keys"


def _as_item(value: str | float) -> bytes:
    is_number = isinstance(value, float) and abs(value) < 1e15
    return str(int(value) if is_number else value).encode("utf-8", "surrogatepass")


def _is_or_has(claim: object, value: str) -> bool:
    return claim == value or (isinstance(claim, list) and value in claim)


@lru_cache(maxsize=16)
def keys_in(text: bytes, name: str) -> tuple[tuple[str | None, KeyOfPair], ...]:
    """The keys of a set that are of this algorithm, by their id. One that cannot be used is left out."""
    try:
        listed = _object(text).get("keys")
    except (ValueError, msgspec.DecodeError, RecursionError):
        return ()
    keys = []
    for entry in listed[:MOST_KEYS] if isinstance(listed, list) else ():
        if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
            continue
        key_id = entry.get("kid")
        try:
            key = _key_in(entry, name)
        except (ValueError, TypeError, KeyError, Error, AttributeError):
            continue
        if key is not None and isinstance(key_id, str | None):
            keys.append((key_id, key))
    return tuple(keys)


def _key_in(member: Document, name: str) -> KeyOfPair | None:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    def number(part: str) -> int:
        return int.from_bytes(_decoded(member[part].encode("ascii")))

    match name, member.get("kty"), member.get("crv"):
        case "RS256", "RSA", _:
            return KeyOfPair("rsa_sha256", rsa.RSAPublicNumbers(number("e"), number("n")).public_key())
        case "ES256", "EC", "P-256":
            numbers = ec.EllipticCurvePublicNumbers(number("x"), number("y"), ec.SECP256R1())
            return KeyOfPair("ecdsa_p256", numbers.public_key())
        case _:
            return None


def _in_der(signature: bytes) -> bytes:
    """A token's signature of a curve, which is two numbers in full, as the library reads it."""
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    if len(signature) != 64:
        return b""
    return encode_dss_signature(int.from_bytes(signature[:32]), int.from_bytes(signature[32:]))
