"""What a signature is checked with: a secret that both sides share, or the public half of a pair of keys of which the
sender keeps the other half to itself.

A public key is no secret: whoever has it can check signatures and make none. Where the private half itself was set, as
for trying things out, calls can be signed here, too.
"""

import hmac
import re
from base64 import b64decode
from binascii import Error, unhexlify
from collections.abc import Callable
from typing import Any, Literal, Protocol, assert_never, get_args

from postern.core.signatures.encoding import SecretEncoding, is_stand_in, signing_key
from postern.core.signatures.tokens import LONGEST_TOKEN, TOKENS

Algorithm = Literal[
    "hmac_sha1",
    "hmac_sha256",
    "hmac_sha512",
    "ed25519",
    "ecdsa_p256",
    "rsa_sha256",
    "rsa_sha512",
    "rsa_pss_sha256",
    "jwt_hs256",
    "jwt_rs256",
    "jwt_es256",
]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
ALGORITHM_WORDS: dict[Algorithm, str] = {
    "hmac_sha1": "HMAC-SHA1",
    "hmac_sha256": "HMAC-SHA256",
    "hmac_sha512": "HMAC-SHA512",
    "ed25519": "Ed25519",
    "ecdsa_p256": "ECDSA (P-256, SHA-256)",
    "rsa_sha256": "RSA with SHA-256",
    "rsa_sha512": "RSA with SHA-512",
    "rsa_pss_sha256": "RSA-PSS with SHA-256",
    "jwt_hs256": "signed token (JWT, HS256)",
    "jwt_rs256": "signed token (JWT, RS256)",
    "jwt_es256": "signed token (JWT, ES256)",
}
SIGNATURE_WORDS: dict[Algorithm, str] = {
    "hmac_sha1": "a SHA-1 digest",
    "hmac_sha256": "a SHA-256 digest",
    "hmac_sha512": "a SHA-512 digest",
    "ed25519": "an Ed25519 signature",
    "ecdsa_p256": "an ECDSA signature (DER)",
    "rsa_sha256": "an RSA signature",
    "rsa_sha512": "an RSA signature",
    "rsa_pss_sha256": "an RSA signature",
    "jwt_hs256": "a signed token (JWT)",
    "jwt_rs256": "a signed token (JWT)",
    "jwt_es256": "a signed token (JWT)",
}

_RSA_BITS = range(2048, 8193)
SIZES: dict[Algorithm, range] = {
    "hmac_sha1": range(20, 21),
    "hmac_sha256": range(32, 33),
    "hmac_sha512": range(64, 65),
    "ed25519": range(64, 65),
    "ecdsa_p256": range(8, 73),
    **dict.fromkeys(("rsa_sha256", "rsa_sha512", "rsa_pss_sha256"), range(256, 1025)),
    **dict.fromkeys(TOKENS, range(1, LONGEST_TOKEN + 1)),
}
"""How many bytes a signature has."""

Digest = Literal["sha1", "sha256", "sha512"]
DIGESTS: dict[Algorithm, Digest] = {"hmac_sha1": "sha1", "hmac_sha256": "sha256", "hmac_sha512": "sha512"}
"""Of the algorithms whose key is a shared secret."""

_PEM = re.compile(rb"\s*-----BEGIN ([A-Z0-9 ]+)-----(.*)-----END \1-----\s*", re.DOTALL)
_ED25519 = 32
_HEX = re.compile(rb"[0-9A-Fa-f]{64}")


def is_shared(algorithm: Algorithm) -> bool:
    """What is set is a secret, and callers sign with it."""
    return algorithm in DIGESTS or algorithm == "jwt_hs256"


def is_token(algorithm: Algorithm) -> bool:
    return algorithm in TOKENS


def is_pair(algorithm: Algorithm) -> bool:
    """What is set is the sender's public key."""
    return algorithm not in DIGESTS and algorithm not in TOKENS


class Key(Protocol):
    can_sign: bool

    def matches(self, content: bytes, signatures: list[bytes], fetched: bytes = b"") -> bool:
        """Whether one of them was made with this key, or with the other half of it, over this content. ``fetched``: the keys
        that are at the sender."""

    def sign(self, content: bytes) -> bytes:
        """The signature that a genuine sender would have made, where ``can_sign``."""


class SharedKey:
    can_sign = True

    def __init__(self, key: bytes, digest: Digest) -> None:
        # Keyed once and copied for each call: that costs less than a new HMAC, or the library's `digest`.
        self._keyed = hmac.new(key, digestmod=digest)

    def matches(self, content: bytes, signatures: list[bytes], fetched: bytes = b"") -> bool:
        keyed, found = self._keyed.copy(), False
        keyed.update(content)
        made = keyed.digest()
        # No early way out: every candidate is compared, so that the time taken tells nothing.
        for signature in signatures:
            found |= hmac.compare_digest(signature, made)
        return found

    def sign(self, content: bytes) -> bytes:
        keyed = self._keyed.copy()
        keyed.update(content)
        return keyed.digest()


class NoKey:
    """Of a sender whose key is not known here yet."""

    can_sign = False

    def matches(self, content: bytes, signatures: list[bytes], fetched: bytes = b"") -> bool:
        return False

    def sign(self, content: bytes) -> bytes:
        raise ValueError("the sender's key is not known here yet")


class KeyOfPair:
    """The public half, or the private one, which has the public in it."""

    def __init__(self, algorithm: Algorithm, text: bytes) -> None:
        private, key = _read(text)
        self.can_sign = private
        self._check, self._make = _functions(algorithm, key.public_key() if private else key, key)

    def matches(self, content: bytes, signatures: list[bytes], fetched: bytes = b"") -> bool:
        from cryptography.exceptions import InvalidSignature

        for signature in signatures:
            try:
                self._check(signature, content)
            except InvalidSignature:
                continue
            return True  # nothing about a public key is to be kept from anybody
        return False

    def sign(self, content: bytes) -> bytes:
        if not self.can_sign:
            raise ValueError("only the sender has the private key, with which calls are signed")
        return self._make(content)


def key_of(algorithm: Algorithm, secret: bytes, encoding: SecretEncoding, prefix: str) -> Key:
    """Raises ValueError, with words for whoever pasted it, where it can be no such key."""
    digest, is_awaited = DIGESTS.get(algorithm), is_stand_in(secret)
    if digest is not None:  # what stands in for a secret need not be written as one
        return SharedKey(secret if is_awaited else signing_key(secret, encoding, prefix), digest)
    return NoKey() if is_awaited else KeyOfPair(algorithm, secret)


def _read(text: bytes) -> tuple[bool, Any]:
    """Whether it is a private key, and the key: in PEM (its line breaks may have been lost), as base64 of DER, and for
    Ed25519 also as hex or base64 of its 32 bytes, with or without ``whpk_``."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.x509 import load_der_x509_certificate

    pem = _PEM.fullmatch(text)
    try:
        if pem is None:
            plain = text.strip().removeprefix(b"whpk_")
            der = (
                unhexlify(plain)
                if _HEX.fullmatch(plain)
                else b64decode(b"".join(plain.split()), validate=True)
            )
        else:
            der = b64decode(b"".join(pem[2].split()), validate=True)
        if len(der) == _ED25519:
            return False, Ed25519PublicKey.from_public_bytes(der)
        if pem is not None and pem[1] == b"CERTIFICATE":
            return False, load_der_x509_certificate(der).public_key()
        if pem is None or not pem[1].endswith(b"PRIVATE KEY"):
            try:
                return False, serialization.load_der_public_key(der)
            except ValueError:
                if pem is not None:
                    raise
        return True, serialization.load_der_private_key(der, None)
    except (Error, ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError(
            "this is not a public key in PEM, base64 or hex; copy it again, whole and with its first and last line"
        ) from None


def _functions(
    algorithm: Algorithm, public: Any, private: Any
) -> tuple[Callable[[bytes, bytes], None], Callable[[bytes], bytes]]:
    """What checks a signature and what makes one. Raises ValueError where the key is one of another algorithm."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
    from cryptography.hazmat.primitives.hashes import SHA256, SHA512, HashAlgorithm

    def by_rsa(
        pad: Any, signing: Any, digest: HashAlgorithm
    ) -> tuple[Callable[[bytes, bytes], None], Callable[[bytes], bytes]]:
        if not isinstance(public, rsa.RSAPublicKey) or public.key_size not in _RSA_BITS:
            raise ValueError(
                f"an RSA key of {_RSA_BITS[0]} to {_RSA_BITS[-1]} bits is wanted, and this is none"
            )
        return (
            lambda signature, content: public.verify(signature, content, pad, digest),
            lambda content: private.sign(content, signing, digest),
        )

    match algorithm:
        case "ed25519":
            if not isinstance(public, ed25519.Ed25519PublicKey):
                raise ValueError("an Ed25519 key is wanted, and this is one of another kind")
            return public.verify, lambda content: private.sign(content)
        case "ecdsa_p256":
            if not isinstance(public, ec.EllipticCurvePublicKey) or not isinstance(
                public.curve, ec.SECP256R1
            ):
                raise ValueError("a key of the curve P-256 is wanted, and this is one of another kind")
            how = ec.ECDSA(SHA256())
            return (
                lambda signature, content: public.verify(signature, content, how),
                lambda content: private.sign(content, how),
            )
        case "rsa_sha256":
            return by_rsa(padding.PKCS1v15(), padding.PKCS1v15(), SHA256())
        case "rsa_sha512":
            return by_rsa(padding.PKCS1v15(), padding.PKCS1v15(), SHA512())
        case "rsa_pss_sha256":
            mask = padding.MGF1(SHA256())
            salted, auto = padding.PSS(mask, padding.PSS.DIGEST_LENGTH), padding.PSS(mask, padding.PSS.AUTO)
            return by_rsa(auto, salted, SHA256())
        case "hmac_sha1" | "hmac_sha256" | "hmac_sha512" | "jwt_hs256" | "jwt_rs256" | "jwt_es256":
            raise ValueError("no key of a pair is set for this algorithm")
        case _:
            assert_never(algorithm)


def new_private_key(algorithm: Algorithm) -> str:
    """A new pair, for a sender of one's own: base64 of PKCS #8, on one line."""
    from base64 import b64encode

    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    key: Any
    match algorithm:
        case "ed25519":
            key = ed25519.Ed25519PrivateKey.generate()
        case "ecdsa_p256":
            key = ec.generate_private_key(ec.SECP256R1())
        case _:
            key = rsa.generate_private_key(65537, 2048)
    der = key.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return b64encode(der).decode()
