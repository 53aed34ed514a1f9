"""Secrets and digests as text: hex, base64 and its URL-safe form, or the plain characters."""

import base64
import binascii
import re
import unicodedata
from collections.abc import Callable
from hashlib import sha1, sha256
from typing import Literal, get_args

Decode = Callable[[bytes], bytes | None]
Encoding = Literal["hex", "base64", "base64url", "auto"]
SecretEncoding = Literal["utf8", "utf8_nfkd", "base64", "hex", "sha1"]
"""NFKD takes letters and their accents apart, as EasyPost does with its secret; Braintree's key is the SHA-1 of the text."""

ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)
SECRET_ENCODINGS: tuple[SecretEncoding, ...] = get_args(SecretEncoding)

_DIGEST_SIZES = range(sha256().digest_size, sha256().digest_size + 1)
STAND_IN = "whsec_" + base64.b64encode(b"stand-in for").decode()
"""The beginning of a stand-in for a secret that is not known here yet. Nobody signs with it. It says itself what it is, so
nothing has to be kept beside it, and cleared, wherever a secret is set, promoted or taken over."""
_URL_SAFE = bytes.maketrans(b"-_", b"+/")


def is_stand_in(secret: bytes) -> bool:
    return secret.startswith(STAND_IN.encode())


def signing_key(secret: bytes, encoding: SecretEncoding = "utf8", prefix: str = "") -> bytes:
    """The pasted secret as key bytes. Raises ValueError, with words for whoever pasted it, if it cannot be one."""
    text = secret.removeprefix(prefix.encode())
    try:
        match encoding:
            case "utf8":
                pass
            case "base64":
                text = text.strip().translate(_URL_SAFE)
                text = binascii.a2b_base64(text + b"=" * (-len(text) % 4), strict_mode=True)
            case "utf8_nfkd":
                text = unicodedata.normalize("NFKD", text.decode()).encode()
            case "hex":
                text = binascii.unhexlify(text.strip())
            case "sha1":
                text = sha1(text, usedforsecurity=False).digest() if text.strip(b"\0") else b""
    except (binascii.Error, ValueError):
        raise ValueError(
            f"the secret is not {encoding}; copy it again, whole and without anything around it"
        ) from None
    if not text.strip(b"\0"):
        # HMAC pads a key with zero bytes: a key of zeros is the empty key, and everybody knows that one.
        raise ValueError("the secret is empty; an empty one would let everybody in")
    return text


def decoder(encoding: Encoding, sizes: range = _DIGEST_SIZES) -> Decode:
    """Reads digests and signatures of that many bytes; None for what is none. One can be spelt in more than one way."""

    def hexadecimal(text: bytes) -> bytes | None:
        try:
            return binascii.unhexlify(text) if fewest <= len(text) <= most else None
        except binascii.Error:
            return None

    def base_64(text: bytes) -> bytes | None:
        if len(text) > longest:
            return None
        try:
            decoded = binascii.a2b_base64(text + b"=" * (-len(text) % 4), strict_mode=True)
        except (binascii.Error, ValueError):
            return None
        return decoded if len(decoded) in sizes else None

    def url_safe(text: bytes) -> bytes | None:
        return None if b"+" in text or b"/" in text else base_64(text.translate(_URL_SAFE))

    fewest, most = 2 * sizes[0], 2 * sizes[-1]
    longest = (sizes[-1] + 2) // 3 * 4
    match encoding:
        case "hex":
            return hexadecimal
        case "base64":
            return base_64
        case "base64url":
            return url_safe
        case "auto":
            return lambda text: hexadecimal(text) if fewest <= len(text) <= most else base_64(text)


_plain_digest = decoder("auto")
_CONTENT_DIGEST = re.compile(rb"(?:^|,)\s*sha-256=:?([A-Za-z0-9+/=]+):?\s*(?:,|$)", re.IGNORECASE)


def decode_digest(text: bytes) -> bytes | None:
    """A SHA-256 digest in hex or base64, told apart by its length, or that of a ``Content-Digest`` (RFC 9530)."""
    member = _CONTENT_DIGEST.search(text)
    return _plain_digest(member[1] if member else text)


def within(form: str, decode: Decode) -> Decode:
    """Decodes what stands in the place of ``{signature}`` in this form. A * there is any text, up to what follows it."""
    before, _, after = form.encode().partition(b"{signature}")
    head, star, tail = before.partition(b"*")

    def read(text: bytes) -> bytes | None:
        if not (text.startswith(head) and text.endswith(after)):
            return None
        inner = text[len(head) : len(text) - len(after)]
        if star:
            _, divider, inner = inner.partition(tail)
            if not divider:
                return None
        return decode(inner)

    return read


def encoding_words(encoding: Encoding, sizes: range) -> str:
    words = {"hex": "hex", "base64": "base64", "base64url": "URL-safe base64", "auto": "hex or base64"}[
        encoding
    ]
    if encoding == "auto" or len(sizes) > 1:
        return words
    written = write_digest(bytes(sizes[0]), encoding)
    return f"{words} ({len(written)} {'digits' if encoding == 'hex' else 'characters'})"


def write_digest(digest: bytes, encoding: Encoding) -> str:
    """Writes a digest in the encoding of a sender. *auto* writes hex."""
    if encoding == "base64":
        return base64.b64encode(digest).decode()
    if encoding == "base64url":
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")
    return digest.hex()
