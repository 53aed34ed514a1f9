"""What a request's head must be before anybody looks what it asks for (RFC 9112). The parser lets more through,
and where a proxy in front reads a request differently, one request becomes two."""

from collections.abc import Sequence

LARGEST_HEAD = 32 * 1024
_HOST = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,;=:%[]"


def wrong_with(version: str, headers: Sequence[tuple[bytes, bytes]]) -> str | None:
    """The code of the refusal, or None. Names are lower-case."""
    names = [name for name, _ in headers]
    hosts = names.count(b"host")
    if version not in ("1.1", "1.0") or hosts > 1 or (hosts == 0 and version == "1.1"):
        return "malformed_request"
    if hosts and headers[names.index(b"host")][1].translate(None, _HOST):
        return "malformed_request"
    if b"transfer-encoding" not in names:
        return None
    named = [value.split(b",") for name, value in headers if name == b"transfer-encoding"]
    codings = [coding for value in named for one in value if (coding := one.strip(b" \t").lower())]
    if version == "1.0" or codings[-1:] != [b"chunked"] or codings.count(b"chunked") > 1:
        return "malformed_request"
    return "unsupported_transfer_coding" if len(codings) > 1 else None


def is_http(request_line: tuple[bytes, bytes], received: bytes) -> bool:
    """The parser takes RTSP and ICE for HTTP as well, and does not say so. ``request_line`` is the method and
    the target, ``received`` what the head came in."""
    for protocol in (b" RTSP/", b" ICE/"):
        if protocol in received and b" ".join(request_line) + protocol in received:
            return False
    return True
