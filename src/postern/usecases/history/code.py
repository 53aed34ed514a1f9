"""A recorded call as a command for curl, or as a Python program.

Strangers wrote most of what stands in such a command, so every POSIX shell and fish must read exactly these bytes (`$'…'`
does not mean the same in all), and nothing in it may run. The Python program uses `http.client`, which sends exactly what
it is given: urllib and requests rewrite headers and addresses.
"""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, get_args
from urllib.parse import urlsplit

from postern.core.history.invocation import Invocation
from postern.core.names import OF_THE_CONNECTION
from postern.core.signatures.redact import MASK

Language = Literal["curl", "python"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class Repeated:
    """The request to repeat. ``body_gone``: its body is no longer kept. ``placeholders``: whoever pastes it replaces them."""

    method: str
    url: str = field(repr=False)
    headers: list[tuple[str, bytes]] = field(repr=False)
    body: bytes = field(repr=False)
    body_gone: bool = False
    placeholders: tuple[str, ...] = ()


def repeated(base_url: str, invocation: Invocation) -> Repeated:
    if not invocation.path.startswith(b"/"):  # fetched by a schedule: the source's answer is recorded
        return Repeated("GET", _url(invocation.path), [], b"")
    placeholders = ["YOUR_TOKEN"] if MASK.encode() in invocation.query else []
    query = invocation.query.replace(MASK.encode(), b"YOUR_TOKEN")
    headers = []
    for name, value in invocation.header_pairs:
        if name.lower() in {*OF_THE_CONNECTION, "accept-encoding"} or not _HEADER_NAME.fullmatch(name):
            continue
        if value == MASK:
            value = "YOUR_" + re.sub(r"[^A-Z0-9]", "_", name.upper())
            placeholders.append(value)
        headers.append((name, value.strip(" \t").encode("latin-1", "replace")))
    return Repeated(
        invocation.method,
        base_url + _url(invocation.path + (b"?" + query if query else b"")),
        headers,
        invocation.body or b"",
        invocation.body_is_gone,
        tuple(dict.fromkeys(placeholders)),
    )


def _url(target: bytes) -> str:
    """As it was sent, with bytes that no URL holds encoded, and #, which a client would not send."""
    return re.sub(rb"[^!-~]|#", lambda match: b"%%%02X" % ord(match[0]), target).decode("ascii")


# Linux takes 128 KiB for one argument of a program. For what is built into a shell, like printf, there is no such limit.
LONGEST_ARGUMENT = 100_000

_READ_BY_FISH = re.compile(r"\\(?:['\\]|\Z)")
"""In fish a quote after a backslash does not end the quoted text, so what follows would run."""


def argument(value: bytes) -> str:
    text = plain(value)
    return f'"$({printed(value)})"' if text is None else shlex.quote(text)


def plain(value: bytes) -> str | None:
    """The text, if it can stand in single quotes and be shown in a terminal."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    if "\n" in text and "!" in text:
        return None  # bash's history expands ! in each line, and does not see that it is quoted
    if _READ_BY_FISH.search(text):
        return None
    return text if all(char.isprintable() or char == "\n" for char in text) else None


def printed(value: bytes) -> str:
    """A command that prints any bytes. Every shell has printf."""
    escaped = re.sub(rb"[^ -~]|[!%'\\]|^-", lambda match: b"\\%03o" % ord(match[0]), value)
    return f"printf '{escaped.decode('ascii')}'"


def curl(call: Repeated, *options: str) -> str:
    """curl must take everything literally: no file for an @, no series of URLs for brackets."""
    words = ["curl", *options]
    if call.method == "HEAD":
        words.append("--head")  # `-X HEAD` would wait for a body that never comes
    elif call.method != ("POST" if call.body or call.body_gone else "GET"):
        words.append(f"-X {shlex.quote(call.method)}")
    if set("[]{}") & set(call.url):
        words.append("--globoff")
    lines = [" ".join([*words, argument(call.url.encode())])]
    for name, value in call.headers:
        header = name.encode() + (b": " + value if value else b";")
        lines.append(f"-H {argument(header)}")
    if call.body and not any(name.lower() == "content-type" for name, _ in call.headers):
        lines.append("-H Content-Type:")  # or curl would call it a form
    if call.body_gone:
        lines.append("--data-raw THE_BODY_IS_NO_LONGER_KEPT")
    elif call.body and len(call.body) <= LONGEST_ARGUMENT and (text := plain(call.body)) is not None:
        lines.append(f"--data-raw {shlex.quote(text)}")
    elif call.body:
        lines[0] = f"{printed(call.body)} | {lines[0]}"
        lines.append("--data-binary @-")
    return " \\\n  ".join(lines)


_WITH_BODY = ('connection.putheader("Content-Length", str(len(body)))', "connection.endheaders(body)")


def python(call: Repeated) -> str:
    parts = urlsplit(call.url)
    secure = parts.scheme == "https"
    kind = "HTTPSConnection" if secure else "HTTPConnection"
    target = call.url[len(parts.scheme) + len("://") + len(parts.netloc) :] or "/"
    lines = [f"from http.client import {kind}", ""]
    if call.placeholders:
        lines.append(f"# Masked when the call was stored, to be filled in: {', '.join(call.placeholders)}")
    if call.body_gone:
        lines.append("# The body is no longer kept: this call goes without it.")
    lines += [
        f"connection = {kind}({parts.netloc!r}, timeout=60)",
        f"connection.putrequest({call.method!r}, {target!r}, skip_accept_encoding=True)",
        *(f"connection.putheader({name!r}, {_value(value)})" for name, value in call.headers),
        *([f"body = {_value(call.body)}", *_WITH_BODY] if call.body else ["connection.endheaders()"]),
        "answer = connection.getresponse()",
        "print(answer.status, answer.reason)",
        'print(answer.read().decode("utf-8", "replace"))',
    ]
    return "\n".join(lines)


def _value(value: bytes) -> str:
    """The bytes as Python writes them, readable if they are text."""
    try:
        return repr(value) if value.isascii() else f"{value.decode()!r}.encode()"
    except UnicodeDecodeError:
        return repr(value)


WRITERS: dict[Language, Callable[[Repeated], str]] = {"curl": curl, "python": python}
