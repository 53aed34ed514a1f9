"""The public half of a pair of keys. The sender keeps the other half to itself.

A public key is no secret: whoever has it can check signatures and make none. Where the private half itself was set, as
for trying things out, calls can be signed here, too.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error, unhexlify
from typing import Any

from postern.core.signatures.algorithms import RSA_BITS, Algorithm
from postern.core.signatures.keys.key import Key

_PEM = re.compile(rb"\s*-----BEGIN ([A-Z0-9 ]+)-----(.*)-----END \1-----\s*", re.DOTALL)
_ED25519 = 32
_HEX = re.compile(rb"[0-9A-Fa-f]{64}")


class KeyOfPair(Key):
    """The public half, or the private one, which has the public in it."""

    def __init__(self, algorithm: Algorithm, key: Any, can_sign: bool = False) -> None:
        self.can_sign, self._private = can_sign, key
        self._public = key.public_key() if can_sign else key
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


def read_key(text: bytes) -> tuple[Any, bool]:
    """Returns the key, and whether it is a private one. It may be PEM (also without its line breaks), base64 of DER, and for
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
            return Ed25519PublicKey.from_public_bytes(der), False
        if pem is not None and pem[1] == b"CERTIFICATE":
            return load_der_x509_certificate(der).public_key(), False
        if pem is None or not pem[1].endswith(b"PRIVATE KEY"):
            try:
                return serialization.load_der_public_key(der), False
            except ValueError:
                if pem is not None:
                    raise
        return serialization.load_der_private_key(der, None), True
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
            kinds = {"ed25519": "an Ed25519 key", "ecdsa_p256": "a key of the curve P-256"}
            of_rsa = f"an RSA key of {RSA_BITS[0]} to {RSA_BITS[-1]} bits"
            raise ValueError(f"{kinds.get(algorithm, of_rsa)} is wanted, and this is another one")
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
