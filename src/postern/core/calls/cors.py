"""CORS: which pages of other origins may call, and the headers that tell their browsers so."""

import re

from postern.core.answer import HeaderPair
from postern.core.calls.call import Call

_EXACT = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9]([a-z0-9.-]*[a-z0-9])?)(:\d{1,5})?")
_WILD = re.compile(r"(https?)://\*\.([a-z0-9]([a-z0-9.-]*[a-z0-9])?\.[a-z0-9-]+)(:\d{1,5})?")
_HEADER_NAMES = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~, -]{0,1000}")


def origin_problem(origin: str) -> str | None:
    if origin == "*" or _EXACT.fullmatch(origin.lower()) or _WILD.fullmatch(origin.lower()):
        return None
    shown = "".join(character if character.isprintable() else "?" for character in origin[:60])
    return (
        f'"{shown}" is no origin: write an origin like https://shop.example.com, https://*.example.com or *; '
        "no path, no trailing slash"
    )


class Cors:
    """The origins of one webhook. Origins that are listed by name may send credentials, because browsers send a beacon of
    JSON only so. A webhook looks at no cookie; a caller proves itself in the call."""

    def __init__(self, origins: tuple[str, ...]) -> None:
        lowered = [origin.lower() for origin in origins]
        self._any = "*" in lowered
        self._exact = {origin.encode() for origin in lowered if "*" not in origin}
        wild = [match for match in map(_WILD.fullmatch, lowered) if match]
        # One or more labels before the suffix. The suffix alone is another origin, with an entry of its own.
        self._wild = [
            re.compile(
                f"{match[1]}://[a-z0-9-]+(\\.[a-z0-9-]+)*\\.{re.escape(match[2])}{match[4] or ''}".encode()
            )
            for match in wild
        ]

    def allows(self, origin: bytes) -> bool:
        origin = origin.lower()
        return (
            self._any
            or origin in self._exact
            or (len(origin) < 300 and any(pattern.fullmatch(origin) for pattern in self._wild))
        )

    def headers(self, call: Call) -> list[HeaderPair]:
        """Every answer of this webhook has them, errors too: without them a page's script cannot read the reason."""
        origin = call.first_header(b"origin")
        vary = [(b"vary", b"Origin")]
        if origin is None or not self.allows(origin):
            return vary
        allowed = b"*" if self._any else origin
        credentials = [] if self._any else [(b"access-control-allow-credentials", b"true")]
        return [
            *vary,
            (b"access-control-allow-origin", allowed),
            *credentials,
            (b"access-control-expose-headers", b"X-Invocation-Id, Retry-After"),
        ]

    def preflight(self, call: Call) -> list[HeaderPair]:
        """The headers for a browser that asks before it sends."""
        requested = call.first_header(b"access-control-request-headers") or b"content-type"
        names = requested if _HEADER_NAMES.fullmatch(requested) else b"content-type"
        return [
            *self.headers(call),
            (b"access-control-allow-methods", b"POST"),
            (b"access-control-allow-headers", names),
            (b"access-control-max-age", b"600"),
        ]


def is_preflight(call: Call) -> bool:
    return (
        call.method == "OPTIONS"
        and call.first_header(b"origin") is not None
        and call.first_header(b"access-control-request-method") is not None
    )
