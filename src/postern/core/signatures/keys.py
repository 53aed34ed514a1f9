"""The keys with which signatures are checked: a secret that both sides share, or the public half of a pair of keys. The sender
keeps the other half to itself.

A public key is no secret: whoever has it can check signatures and make none. Where the private half itself was set, as
for trying things out, calls can be signed here, too.
"""

import hmac
import re
from base64 import b64decode, b64encode
from binascii import Error, unhexlify
from typing import Any, Literal, get_args

from msgspec import Struct

from postern.core.signatures.certificates import CERTIFICATES
from postern.core.signatures.encoding import SecretEncoding, is_stand_in, signing_key
from postern.core.signatures.key import Key
from postern.core.signatures.tokens import LONGEST_TOKEN, RSA_BITS, TOKENS

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
    "certificate_sha1",
    "certificate_sha256",
]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
Digest = Literal["sha1", "sha256", "sha512"]


class AlgorithmKind(Struct, frozen=True):
    words: str
    signature_words: str
    sizes: range
    """The numbers of bytes that a signature may have."""
    digest: Digest | None = None
    """The digest of an HMAC; None for every other algorithm."""


_RSA_SIZES = range(256, 1025)
_TOKEN_SIZES = range(1, LONGEST_TOKEN + 1)
ALGORITHM_KINDS: dict[Algorithm, AlgorithmKind] = {
    "hmac_sha1": AlgorithmKind("HMAC-SHA1", "a SHA-1 digest", range(20, 21), "sha1"),
    "hmac_sha256": AlgorithmKind("HMAC-SHA256", "a SHA-256 digest", range(32, 33), "sha256"),
    "hmac_sha512": AlgorithmKind("HMAC-SHA512", "a SHA-512 digest", range(64, 65), "sha512"),
    "ed25519": AlgorithmKind("Ed25519", "an Ed25519 signature", range(64, 65)),
    "ecdsa_p256": AlgorithmKind("ECDSA (P-256, SHA-256)", "an ECDSA signature (DER)", range(8, 73)),
    "rsa_sha256": AlgorithmKind("RSA with SHA-256", "an RSA signature", _RSA_SIZES),
    "rsa_sha512": AlgorithmKind("RSA with SHA-512", "an RSA signature", _RSA_SIZES),
    "rsa_pss_sha256": AlgorithmKind("RSA-PSS with SHA-256", "an RSA signature", _RSA_SIZES),
    "jwt_hs256": AlgorithmKind("signed token (JWT, HS256)", "a signed token (JWT)", _TOKEN_SIZES),
    "jwt_rs256": AlgorithmKind("signed token (JWT, RS256)", "a signed token (JWT)", _TOKEN_SIZES),
    "jwt_es256": AlgorithmKind("signed token (JWT, ES256)", "a signed token (JWT)", _TOKEN_SIZES),
    "certificate_sha1": AlgorithmKind("RSA, certificate, SHA-1 or SHA-256", "an RSA signature", _RSA_SIZES),
    "certificate_sha256": AlgorithmKind("RSA, certificate, SHA-256", "an RSA signature", _RSA_SIZES),
}
DIGESTS: dict[Algorithm, Digest] = {name: one.digest for name, one in ALGORITHM_KINDS.items() if one.digest}
"""The digests of the HMAC algorithms."""

_PEM = re.compile(rb"\s*-----BEGIN ([A-Z0-9 ]+)-----(.*)-----END \1-----\s*", re.DOTALL)
_ED25519 = 32
_HEX = re.compile(rb"[0-9A-Fa-f]{64}")


def is_shared(algorithm: Algorithm) -> bool:
    """Returns whether a secret is set, with which callers sign."""
    return algorithm in DIGESTS or algorithm == "jwt_hs256"


def is_token(algorithm: Algorithm) -> bool:
    return algorithm in TOKENS


def is_certificate(algorithm: Algorithm) -> bool:
    return algorithm in CERTIFICATES


def is_pair(algorithm: Algorithm) -> bool:
    """Returns whether the sender's public key is set."""
    return not (algorithm in DIGESTS or is_token(algorithm) or is_certificate(algorithm))


class SharedKey(Key):
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


class KeyOfPair(Key):
    """The public half, or the private one, which has the public in it."""

    def __init__(self, algorithm: Algorithm, text: bytes) -> None:
        self.can_sign, self._private = _read(text)
        self._public = self._private.public_key() if self.can_sign else self._private
        self._checking, self._signing = _how(algorithm, self._public)

    def matches(self, content: bytes, signatures: list[bytes], fetched: bytes = b"") -> bool:
        from cryptography.exceptions import InvalidSignature

        for signature in signatures:
            try:
                self._public.verify(signature, content, *self._checking)
            except InvalidSignature:
                continue
            return True  # nothing about a public key is to be kept from anybody
        return False

    def sign(self, content: bytes) -> bytes:
        if not self.can_sign:
            raise ValueError("only the sender has the private key, with which calls are signed")
        signature: bytes = self._private.sign(content, *self._signing)
        return signature


def key_of(algorithm: Algorithm, secret: bytes, encoding: SecretEncoding, prefix: str) -> Key:
    """Raises ValueError, with words for whoever pasted it, where it can be no such key."""
    digest, is_awaited = DIGESTS.get(algorithm), is_stand_in(secret)
    if digest is not None:  # what stands in for a secret need not be written as one
        return SharedKey(secret if is_awaited else signing_key(secret, encoding, prefix), digest)
    return Key() if is_awaited else KeyOfPair(algorithm, secret)


def _read(text: bytes) -> tuple[bool, Any]:
    """Returns whether it is a private key, and the key. It may be PEM (also without its line breaks), base64 of DER, and for
    Ed25519 hex or base64 of its 32 bytes, with or without ``whpk_``."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.x509 import load_der_x509_certificate

    pem = _PEM.fullmatch(text)
    try:
        plain = text.strip().removeprefix(b"whpk_") if pem is None else pem[2]
        is_hex = _HEX.fullmatch(plain)
        der = unhexlify(plain) if is_hex else b64decode(b"".join(plain.split()), validate=True)
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


def _how(algorithm: Algorithm, public: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The library's further arguments for checking and for making a signature. Raises ValueError for another algorithm's key."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
    from cryptography.hazmat.primitives.hashes import SHA256, SHA512

    plain: tuple[Any, ...]
    match algorithm, public:
        case "ed25519", ed25519.Ed25519PublicKey():
            plain = ()
        case "ecdsa_p256", ec.EllipticCurvePublicKey(curve=ec.SECP256R1()):
            plain = (ec.ECDSA(SHA256()),)
        case "rsa_pss_sha256", rsa.RSAPublicKey(key_size=size) if size in RSA_BITS:
            mask, digest = padding.MGF1(SHA256()), padding.PSS.DIGEST_LENGTH
            return (padding.PSS(mask, padding.PSS.AUTO), SHA256()), (padding.PSS(mask, digest), SHA256())
        case "rsa_sha256" | "rsa_sha512", rsa.RSAPublicKey(key_size=size) if size in RSA_BITS:
            plain = padding.PKCS1v15(), SHA512() if algorithm == "rsa_sha512" else SHA256()
        case _:
            wanted = {"ed25519": "an Ed25519 key", "ecdsa_p256": "a key of the curve P-256"}
            of_rsa = f"an RSA key of {RSA_BITS[0]} to {RSA_BITS[-1]} bits"
            raise ValueError(f"{wanted.get(algorithm, of_rsa)} is wanted, and this is another one")
    return plain, plain


def new_private_key(algorithm: Algorithm) -> str:
    """A new pair, for a sender of one's own: base64 of PKCS #8, on one line."""
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
