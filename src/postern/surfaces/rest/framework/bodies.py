"""Reads a request's JSON: counted while it streams, and nothing accepted that is not exactly JSON."""

import msgspec
from starlette.requests import ClientDisconnect, Request

from postern.core.calls.call import Call
from postern.core.calls.content import UnreadableContent, read_object
from postern.core.problems import Refused

LARGEST_BODY = 2 * 1024 * 1024
LARGEST_BODY_OF_STRANGERS = 16 * 1024
LARGEST_CONFIGURATION = 16 * 1024 * 1024


async def read_json(request: Request, largest: int = LARGEST_BODY) -> bytes:
    """Returns the text of the request's JSON object."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise Refused("unsupported_media_type", "Send JSON, with Content-Type: application/json.")
    body = await read_bytes(request, largest)
    # The rules for what a webhook's caller may send hold here too: character set, compression, depth.
    read = read_object(Call("POST", b"", b"", tuple(request.scope["headers"]), body, "", 0.0))
    if isinstance(read, UnreadableContent):
        raise Refused(read.code, _sentence(read.detail))
    try:
        msgspec.json.decode(read.text)  # read_object does not look into the members
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        said = str(error).partition(" - at ")[0]  # msgspec adds the place in a notation of its own
        raise Refused("malformed_json", _sentence(said)) from None
    return read.text


async def read_bytes(request: Request, largest: int) -> bytes:
    chunks, size = [], 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > largest:
                raise Refused("payload_too_large", f"A request may have {largest // 1024} KiB.")
            chunks.append(chunk)
    except ClientDisconnect:
        raise Refused("malformed_request", "The request ended early.") from None
    return b"".join(chunks)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
