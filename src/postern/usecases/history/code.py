"""A call as something to paste: into a shell for curl, or into Python.

In a shell, any bytes are a word that every POSIX shell, and fish, reads back as exactly them. Strangers wrote most of what
stands in these commands, so it must mean the same in every shell (`$'…'` does not), and nothing in it may run. A Python
program needs nothing but Python, and `http.client` sends exactly what it is given: urllib and requests write headers and
addresses anew.
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
    """A request that is to be made."""

    method: str
    url: str = field(repr=False)
    headers: list[tuple[str, bytes]] = field(repr=False)
    body: bytes = field(repr=False)
    body_gone: bool = False
    """It is no longer kept."""
    placeholders: tuple[str, ...] = ()
    """What whoever pastes it has to fill in."""

    @property
    def has_type(self) -> bool:
        return any(name.lower() == "content-type" for name, _ in self.headers)


def repeated(base_url: str, invocation: Invocation) -> Repeated:
    if not invocation.path.startswith(b"/"):  # fetched by a schedule: what is recorded is the source's answer
        return Repeated("GET", _url(invocation.path), [], b"")
    placeholders = ["YOUR_TOKEN"] if MASK.encode() in invocation.query else []
    query = invocation.query.replace(MASK.encode(), b"YOUR_TOKEN")
    headers = []
    for name, value in invocation.header_pairs:
        if name.lower() in {*OF_THE_CONNECTION, "accept-encoding"} or not _HEADER_NAME.fullmatch(name):
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
        tuple(dict.fromkeys(placeholders)),
    )


def _url(target: bytes) -> str:
    """As it was sent, but for the bytes that no URL holds, and a # that its sender would keep to itself."""
    return re.sub(rb"[^!-~]|#", lambda found: b"%%%02X" % ord(found[0]), target).decode("ascii")


def _placeholder(name: str) -> str:
    return "".join(char if char.isalnum() else "_" for char in name.upper())


# Linux takes 128 KiB for one argument of a program; what is built into a shell, as printf is, has no such limit.
LONGEST_ARGUMENT = 100_000


_READ_BY_FISH = re.compile(r"\\(?:['\\]|\Z)")
"""In fish a backslash before a quote keeps what is quoted from ending there, so what follows would run."""


def argument(value: bytes) -> str:
    text = plain(value)
    return f'"$({printed(value)})"' if text is None else shlex.quote(text)


def plain(value: bytes) -> str | None:
    """Text that can stand in single quotes and be looked at in a terminal; None where it cannot."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    if "\n" in text and "!" in text:
        return None  # bash's history looks for ! at each line of its own, and misses that it is quoted
    if _READ_BY_FISH.search(text):
        return None
    return text if all(char.isprintable() or char == "\n" for char in text) else None


def printed(value: bytes) -> str:
    """By the one tool that every shell has for them."""
    return "printf '" + re.sub(rb"[^ -~]|[!%'\\]|^-", _octal, value).decode("ascii") + "'"


def _octal(found: re.Match[bytes]) -> bytes:
    return b"\\%03o" % ord(found[0])


def curl(call: Repeated, *options: str) -> str:
    """curl must take what is written there as it is: no file for an @, no series of URLs for brackets."""
    words = ["curl", *options]
    if call.method == "HEAD":
        words.append("--head")  # `-X HEAD` would wait for the body that never comes
    elif call.method != ("POST" if call.body or call.body_gone else "GET"):
        words.append(f"-X {shlex.quote(call.method)}")
    if set("[]{}") & set(call.url):
        words.append("--globoff")
    lines = [" ".join([*words, argument(call.url.encode())])]
    for name, value in call.headers:
        header = name.encode() + (b": " + value if value else b";")
        lines.append(f"-H {argument(header)}")
    if call.body and not call.has_type:
        lines.append("-H Content-Type:")  # or curl would call it a form
    if call.body_gone:
        lines.append("--data-raw THE_BODY_IS_NO_LONGER_KEPT")
    elif call.body and len(call.body) <= LONGEST_ARGUMENT and (text := plain(call.body)) is not None:
        lines.append(f"--data-raw {shlex.quote(text)}")
    elif call.body:
        lines[0] = f"{printed(call.body)} | {lines[0]}"
        lines.append("--data-binary @-")
    return " \\\n  ".join(lines)


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
        *_body(call),
        "answer = connection.getresponse()",
        "print(answer.status, answer.reason)",
        'print(answer.read().decode("utf-8", "replace"))',
    ]
    return "\n".join(lines)


def _body(call: Repeated) -> list[str]:
    if not call.body:
        return ["connection.endheaders()"]
    return [
        f"body = {_value(call.body)}",
        'connection.putheader("Content-Length", str(len(body)))',
        "connection.endheaders(body)",
    ]


def _value(value: bytes) -> str:
    """Readable where it is text, and bytes wherever that would not be the same."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return repr(value)
    if text.isascii():
        return repr(value)
    return f"{text!r}.encode()"


WRITERS: dict[Language, Callable[[Repeated], str]] = {"curl": curl, "python": python}
