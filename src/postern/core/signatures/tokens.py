"""Tokens that a sender signs (JWT): read, and checked with a secret or with a set of public keys (JWKS).

The algorithm is the scheme's and never the token's, and a key comes from the set that the scheme names: what a token says
about its own algorithm, key or where that is to be fetched is compared, or not looked at.
"""

import hmac
import re
from base64 import urlsafe_b64decode
from binascii import Error
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from typing import Any, Literal, get_args

import msgspec

from postern.core.documents import Document
from postern.core.signatures.encoding import signing_key
from postern.core.signatures.key import Key

TokenAlgorithm = Literal["jwt_hs256", "jwt_rs256", "jwt_es256"]
TOKENS: tuple[TokenAlgorithm, ...] = get_args(TokenAlgorithm)
LONGEST_TOKEN = 8192
MOST_KEYS = 50
SKEW = 60
"""Seconds by which the sender's clock may differ."""

_NAMES: dict[TokenAlgorithm, str] = {"jwt_hs256": "HS256", "jwt_rs256": "RS256", "jwt_es256": "ES256"}
_PART = re.compile(rb"[A-Za-z0-9_-]*")
RSA_BITS = range(2048, 8193)


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
    # What must be understood (crit) is not understood here.
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

    def __init__(
        self,
        algorithm: TokenAlgorithm,
        secret: bytes,
        issuers: tuple[str, ...],
        body_claim: str,
        secret_claim: str,
    ) -> None:
        self._secret_claim = secret_claim
        self._algorithm = algorithm
        self._secret = signing_key(secret)
        self._issuers = issuers
        self._body_claim = body_claim

    def matches(self, content: bytes, signatures: list[bytes], fetched: bytes = b"") -> bool:
        return not self.trouble(content, signatures, fetched)

    def trouble(self, content: bytes, signatures: list[bytes], fetched: bytes = b"") -> str:
        """Returns why this token does not prove these bytes, or an empty text if it does."""
        token = read_token(signatures[0])
        if token is None:
            return "it is no signed token"
        if token.algorithm != _NAMES[self._algorithm]:
            return f"it says {token.algorithm[:20]!r} and not {_NAMES[self._algorithm]}"
        if self._algorithm == "jwt_hs256":
            made = hmac.digest(self._secret, token.signed, "sha256")
            if not hmac.compare_digest(made, token.signature):
                return "it was made with another secret"
        else:
            checks = [check for key_id, check in keys_in(fetched, self._algorithm) if key_id == token.key_id]
            if not checks:
                return UNKNOWN_KEY
            if not any(check(token.signature, token.signed) for check in checks):
                return "its signature is not that of the sender's key"
            if not is_or_has(token.claims.get(self._secret_claim), self._secret.decode("utf-8", "replace")):
                return f"its {self._secret_claim} is not what is set here"
            if self._secret_claim == "email" and token.claims.get("email_verified") is not True:
                return "its email is not verified"
        if self._issuers and token.claims.get("iss") not in self._issuers:
            return f"its issuer is not {' or '.join(self._issuers)}"
        if self._body_claim:
            digest = token.claims.get(self._body_claim)
            made_of = sha256(content).hexdigest()
            if not isinstance(digest, str) or not hmac.compare_digest(digest.encode(), made_of.encode()):
                return f"the body is not the one whose SHA-256 is in its claim {self._body_claim}"
        return ""


def out_of_time(token: SignedToken, now: float, must_end: bool) -> tuple[str, str] | None:
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


def is_or_has(claim: object, wanted: str) -> bool:
    return claim == wanted or (isinstance(claim, list) and wanted in claim)


Check = Callable[[bytes, bytes], bool]


@lru_cache(maxsize=16)
def keys_in(text: bytes, algorithm: TokenAlgorithm) -> tuple[tuple[str | None, Check], ...]:
    """The keys of a set that are of this algorithm, by their id. Nothing in it can be worse than left out."""
    try:
        listed = _object(text).get("keys")
    except (ValueError, msgspec.DecodeError, RecursionError):
        return ()
    found = []
    for one in listed[:MOST_KEYS] if isinstance(listed, list) else ():
        if not isinstance(one, dict) or one.get("use", "sig") != "sig":
            continue
        key_id = one.get("kid")
        try:
            check = _check_of(one, algorithm)
        except (ValueError, TypeError, KeyError, Error, AttributeError):
            continue
        if check is not None and isinstance(key_id, str | None):
            found.append((key_id, check))
    return tuple(found)


def _check_of(key: Document, algorithm: TokenAlgorithm) -> Check | None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
    from cryptography.hazmat.primitives.hashes import SHA256

    def number(name: str) -> int:
        return int.from_bytes(_decoded(key[name].encode("ascii")))

    public: Any
    how: tuple[Any, ...]
    if algorithm == "jwt_rs256" and key.get("kty") == "RSA":
        public = rsa.RSAPublicNumbers(number("e"), number("n")).public_key()
        if public.key_size not in RSA_BITS:
            return None
        how = padding.PKCS1v15(), SHA256()
    elif algorithm == "jwt_es256" and key.get("kty") == "EC" and key.get("crv") == "P-256":
        public = ec.EllipticCurvePublicNumbers(number("x"), number("y"), ec.SECP256R1()).public_key()
        how = (ec.ECDSA(SHA256()),)
    else:
        return None

    def check(signature: bytes, signed: bytes) -> bool:
        if algorithm == "jwt_es256":
            if len(signature) != 64:  # both numbers in full, and not DER
                return False
            halves = int.from_bytes(signature[:32]), int.from_bytes(signature[32:])
            signature = utils.encode_dss_signature(*halves)
        try:
            public.verify(signature, signed, *how)
        except InvalidSignature:
            return False
        return True

    return check
