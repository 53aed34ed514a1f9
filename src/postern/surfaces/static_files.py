"""Files of the program, answered from memory: a caller that reads slowly holds neither an open file nor a copy."""

import hashlib
import mimetypes
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

mimetypes.add_type("font/woff2", ".woff2")  # not known to each machine


@cache
def content_of(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None


@cache
def mark_of(content: bytes) -> str:
    """Returns a few characters that change with the content."""
    return hashlib.sha256(content).hexdigest()[:10]


def file_response(request: Request, content: bytes, name: str, cache_control: str = "no-cache") -> Response:
    headers = {
        "etag": f'"{mark_of(content)}"',
        "cache-control": cache_control,
        "x-content-type-options": "nosniff",
    }
    if request.headers.get("if-none-match", "").removeprefix("W/") == headers["etag"]:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=mimetypes.guess_type(name)[0])
