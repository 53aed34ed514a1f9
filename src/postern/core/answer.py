"""The answers that callers get."""

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from postern.core.names import is_header_name
from postern.core.problems import PROBLEMS, FieldRefused

JSON = (b"content-type", b"application/json")
PROBLEM_JSON = (b"content-type", b"application/problem+json")
NOSNIFF = (b"x-content-type-options", b"nosniff")

HeaderPair = tuple[bytes, bytes]


class CallerAnswer(msgspec.Struct):
    status: int
    headers: list[HeaderPair] = msgspec.field(default_factory=list)
    body: bytes = b""


def stored(status: Literal["accepted", "duplicate", "completed"], invocation_id: str) -> CallerAnswer:
    """It is on disk. A duplicate has the id of the first call."""
    name = invocation_id.encode()
    return CallerAnswer(
        200,
        [JSON, (b"x-invocation-id", name)],
        b'{"status":"' + status.encode() + b'","invocationId":"' + name + b'"}',
    )


def problem(
    code: str,
    invocation_id: str | None = None,
    *,
    challenge: bytes | None = None,
    retry_after: int | None = None,
    allow: bytes | None = None,
) -> CallerAnswer:
    """A problem document (RFC 9457), with the code and its sentence; the owner's details stay in the history."""
    entry = PROBLEMS[code]
    document: dict[str, object] = {
        "type": f"/problems/{code}",
        "title": entry.title,
        "status": entry.status,
        "detail": entry.help,
        "code": code,
    }
    headers = [PROBLEM_JSON]
    if invocation_id is not None:
        document["invocationId"] = invocation_id
        headers.append((b"x-invocation-id", invocation_id.encode()))
    if challenge is not None and entry.status == 401:
        headers.append((b"www-authenticate", challenge))
    wait = retry_after if retry_after is not None else entry.retry_after
    if wait is not None:
        headers.append((b"retry-after", str(wait).encode()))
    if allow is not None:
        headers.append((b"allow", allow))
    return CallerAnswer(entry.status, headers, msgspec.json.encode(document))


# --- what a workflow's response action may say -----------------------------------------------------------------------

LARGEST_RESPONSE = 1024 * 1024
_ALLOWED = {
    "content-type",
    "content-language",
    "content-disposition",
    "cache-control",
    "etag",
    "last-modified",
    "expires",
    "location",
    "retry-after",
    "link",
    "vary",
    "age",
    "allow",
}
# Among the X-… headers these are orders to a browser or to a proxy on the way: which type a body has, which file
# of the server to send in its place.
_FORBIDDEN = re.compile(
    r"x-(invocation-id|content-type-options|sendfile|(accel|lighttpd|litespeed|reproxy)-.*)", re.DOTALL
)
_SERVERS_OWN = {"x-powered-by"}
_TOKEN = r"[A-Za-z0-9!#$&^_.+-]{1,127}"
# No comma: a browser would read what stands behind one as the type.
_CONTENT_TYPE = re.compile(rf'{_TOKEN}/{_TOKEN}( *; *{_TOKEN}=({_TOKEN}|"[^",\\]*"))* *')
_SANDBOX = (
    b"content-security-policy",
    b"sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data: https:",
)


class InvalidResponse(FieldRefused):
    """The workflow's answer cannot be sent."""


class WorkflowResponse(msgspec.Struct, frozen=True):
    """The answer that a workflow's response action gave, as it is stored and sent."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def content_type_problem(value: str) -> str | None:
    is_one = len(value) <= 200 and value.isascii() and _CONTENT_TYPE.fullmatch(value)
    return None if is_one else "must be one media type, like text/html; charset=utf-8"


def workflow_response(status: object, headers: object, body: object) -> WorkflowResponse:
    """Checks what a workflow answers: no line breaks, no headers that steer the connection."""
    if isinstance(status, bool) or not isinstance(status, int) or not 200 <= status <= 599:
        raise InvalidResponse("status", "status must be a number from 200 to 599")
    if not isinstance(headers, dict):
        raise InvalidResponse("headers", "headers must be an object of texts")
    kept: list[tuple[str, str]] = []
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str) or not is_header_name(name):
            raise InvalidResponse("headers", "headers must be an object of texts")
        lower = name.lower()
        if not (lower in _ALLOWED or lower.startswith("x-")) or _FORBIDDEN.fullmatch(lower):
            raise InvalidResponse(
                "headers",
                f"the header {name} may not be set; allowed are {', '.join(sorted(_ALLOWED))} and most X-…",
            )
        if len(value) > 4096 or not value.isprintable() or not value.isascii():
            raise InvalidResponse("headers", f"the header {name} may hold printable ASCII on one line only")
        if lower == "content-type" and not _CONTENT_TYPE.fullmatch(value):
            raise InvalidResponse(
                "headers", "Content-Type must be one media type, like text/html; charset=utf-8"
            )
        kept.append((lower, value))
    if isinstance(body, str):
        content, kind = body.encode("utf-8", "replace"), "text/plain; charset=utf-8"
    else:
        content, kind = msgspec.json.encode(body), "application/json"
    if status in (204, 304):
        content = b""
    if len(content) > LARGEST_RESPONSE:
        raise InvalidResponse("body", "the body may have 1 MiB")
    if content and not any(name == "content-type" for name, _ in kept):
        kept.insert(0, ("content-type", kind))
    return WorkflowResponse(status, tuple(kept), content)


def response_of_http(status: int, headers: Iterable[tuple[str, str]], body: bytes) -> WorkflowResponse:
    """Makes a workflow's answer of a program's HTTP answer. The body stays as it is; headers that a server adds by itself (cookies,
    its name, its policies) and a workflow may not set are left out."""
    kept: dict[str, str] = {}
    for given, value in headers:
        name = given.lower()
        if name in _SERVERS_OWN:
            continue
        try:
            workflow_response(200, {name: value}, "")
        except InvalidResponse:
            continue
        kept[name] = value
    checked = workflow_response(status, kept, "")
    if len(body) > LARGEST_RESPONSE:
        raise InvalidResponse("body", "the body may have 1 MiB")
    content = b"" if status in (204, 304) else body
    untyped = content and "content-type" not in kept
    own = (("content-type", "application/octet-stream"),) if untyped else ()
    return WorkflowResponse(status, (*own, *checked.headers), content)


def as_set(status: int, content_type: str, body: str, invocation_id: str) -> CallerAnswer:
    """Returns the answer that the webhook's owner has set for accepted calls."""
    content = body.replace("{invocationId}", invocation_id)
    headers = (("content-type", content_type),) if content else ()
    return responded(
        WorkflowResponse(status, headers, b"" if status == 204 else content.encode()), invocation_id
    )


def responded(response: WorkflowResponse, invocation_id: str) -> CallerAnswer:
    """It is served from the gateway's own origin: without the sandbox its scripts could act as the console's
    user. Which types run scripts is for browsers to know, so every answer is put into it."""
    headers = [(name.encode(), value.encode()) for name, value in response.headers]
    headers += [NOSNIFF, _SANDBOX, (b"x-invocation-id", invocation_id.encode())]
    return CallerAnswer(response.status, headers, response.body)
