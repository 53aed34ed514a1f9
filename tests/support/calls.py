"""Calls and webhooks for the tests of the core, made with as few words as possible."""

from typing import Any

from postern.core.calls.call import Call
from postern.core.calls.content import Mapping
from postern.core.signatures.credential import Credential, NoCredential
from postern.core.signatures.redact import Mask
from postern.core.webhooks.webhook import Webhook

NOW = 1_700_000_000.0


def call(
    body: bytes = b"{}",
    *headers: tuple[str, str | bytes],
    method: str = "POST",
    query: bytes = b"",
    address: str = "192.0.2.1",
    at: float = NOW,
) -> Call:
    pairs = tuple(
        (name.lower().encode("latin-1"), value if isinstance(value, bytes) else value.encode("latin-1"))
        for name, value in headers
    )
    return Call(method, b"/webhook/abc", query, pairs, body, address, at, "https://hooks.example.com")


def webhook(
    credential: Credential | None = None, mapping: dict[str, str] | None = None, **settings: Any
) -> Webhook:
    credential = credential or NoCredential()
    return Webhook(
        id="wh_1",
        addresses=["abc"],
        name="Orders",
        version=1,
        enabled=settings.pop("enabled", True),
        credential=credential,
        mapping=Mapping(mapping or {}),
        mask=Mask(credential),
        **settings,
    )
