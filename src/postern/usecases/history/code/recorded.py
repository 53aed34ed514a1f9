"""What every language is to repeat of a recorded call, and the placeholders where its secrets were."""

import re
from dataclasses import dataclass, field

import msgspec

from postern.core.history.invocation import Invocation
from postern.core.signatures.redact import MASK

# Whoever sends the call sets these itself, or they belonged to the connection it came over.
_OWN = {
    "host",
    "content-length",
    "connection",
    "transfer-encoding",
    "accept-encoding",
    "expect",
    "keep-alive",
    "te",
    "upgrade",
}
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class Repeated:
    method: str
    url: str = field(repr=False)
    headers: list[tuple[str, bytes]] = field(repr=False)
    body: bytes = field(repr=False)
    body_gone: bool
    """It is no longer kept."""
    placeholders: list[str]
    """What whoever pastes it has to fill in."""

    @property
    def has_type(self) -> bool:
        return any(name.lower() == "content-type" for name, _ in self.headers)


def repeated(base_url: str, invocation: Invocation) -> Repeated:
    if not invocation.path.startswith(b"/"):  # fetched by a schedule: what is recorded is the source's answer
        return Repeated("GET", _url(invocation.path), [], b"", False, [])
    placeholders = ["YOUR_TOKEN"] if MASK.encode() in invocation.query else []
    query = invocation.query.replace(MASK.encode(), b"YOUR_TOKEN")
    headers = []
    for name, value in msgspec.json.decode(invocation.headers):
        if name.lower() in _OWN or not _HEADER_NAME.fullmatch(name):
            continue
        if value == MASK:
            value = f"YOUR_{_placeholder(name)}"
            placeholders.append(value)
        headers.append((name, value.strip(" \t").encode("latin-1")))
    return Repeated(
        invocation.method,
        base_url + _url(invocation.path + (b"?" + query if query else b"")),
        headers,
        invocation.body or b"",
        invocation.body_is_gone,
        list(dict.fromkeys(placeholders)),
    )


def _url(target: bytes) -> str:
    """As it was sent, but for the bytes that no URL holds, and a # that its sender would keep to itself."""
    return re.sub(rb"[^!-~]|#", lambda found: b"%%%02X" % ord(found[0]), target).decode("ascii")


def _placeholder(name: str) -> str:
    return "".join(char if char.isalnum() else "_" for char in name.upper())
