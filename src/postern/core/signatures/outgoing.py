"""Signatures that the gateway itself makes, as Standard Webhooks says."""

import base64
import binascii
import hmac


def signing_key(secret: str) -> bytes:
    """The bytes of a Standard Webhooks secret: base64, usually behind ``whsec_``."""
    text = secret.strip().removeprefix("whsec_")
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("a signing secret must be whsec_ followed by base64") from error
    if len(key) < 16:
        raise ValueError("a signing secret is too short; 24 to 64 bytes are usual")
    return key


def signature(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """The value of ``webhook-signature`` as Standard Webhooks has it."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
