"""How secrets and digests are written as text: hex, base64 and its URL-safe form, or the plain characters."""

import base64
import binascii
import unicodedata
from collections.abc import Callable
from hashlib import sha256
from typing import Literal, get_args

Encoding = Literal["hex", "base64", "base64url", "auto"]
SecretEncoding = Literal["utf8", "utf8_nfkd", "base64", "hex"]
"""NFKD takes letters and their accents apart, as EasyPost does with its secret."""

ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)
SECRET_ENCODINGS: tuple[SecretEncoding, ...] = get_args(SecretEncoding)
ENCODING_WORDS: dict[Encoding, str] = {
    "hex": "hex (64 digits)",
    "base64": "base64 (44 characters)",
    "base64url": "URL-safe base64 (43 characters)",
    "auto": "hex or base64",
}

_BYTES = sha256().digest_size
_HEX_DIGITS = 2 * _BYTES
_URL_SAFE = bytes.maketrans(b"-_", b"+/")


def signing_key(secret: bytes, encoding: SecretEncoding = "utf8", prefix: str = "") -> bytes:
    """The pasted secret as key bytes. Raises ValueError, with words for whoever pasted it, where it cannot be
    one."""
    text = secret.removeprefix(prefix.encode())
    try:
        if encoding == "base64":
            text = text.strip().translate(_URL_SAFE)
            text = binascii.a2b_base64(text + b"=" * (-len(text) % 4), strict_mode=True)
        elif encoding == "utf8_nfkd":
            text = unicodedata.normalize("NFKD", text.decode()).encode()
        elif encoding == "hex":
            text = binascii.unhexlify(text.strip())
    except (binascii.Error, ValueError):
        raise ValueError(
            f"the secret is not {encoding}; copy it again, whole and without anything around it"
        ) from None
    if not text.strip(b"\0"):
        # HMAC pads a key with zero bytes: a key of zeros is the empty key, and everybody knows that one.
        raise ValueError("the secret is empty; an empty one would let everybody in")
    return text


def _hex(text: bytes) -> bytes | None:
    try:
        return binascii.unhexlify(text) if len(text) == _HEX_DIGITS else None
    except binascii.Error:
        return None


def _base64(text: bytes) -> bytes | None:
    if len(text) == 43:
        text += b"="
    try:
        digest = binascii.a2b_base64(text, strict_mode=True) if len(text) == 44 else b""
    except (binascii.Error, ValueError):
        return None
    return digest if len(digest) == _BYTES else None


def _base64url(text: bytes) -> bytes | None:
    return None if b"+" in text or b"/" in text else _base64(text.translate(_URL_SAFE))


def decode_digest(text: bytes) -> bytes | None:
    """A SHA-256 digest in hex or base64, told apart by its length."""
    return _hex(text) if len(text) == _HEX_DIGITS else _base64(text)


def write_digest(digest: bytes, encoding: Encoding) -> str:
    """As a sender writes it that uses this encoding."""
    if encoding == "base64":
        return base64.b64encode(digest).decode()
    if encoding == "base64url":
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")
    return digest.hex()


DIGEST_DECODERS: dict[Encoding, Callable[[bytes], bytes | None]] = {
    "hex": _hex,
    "base64": _base64,
    "base64url": _base64url,
    "auto": decode_digest,
}
"""Digests are decoded, then compared as bytes: the same digest has more than one spelling."""
