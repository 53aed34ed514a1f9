"""A recorded call as a curl command. What was masked when it was stored becomes a placeholder to fill in.

Strangers wrote most of it, so it must mean the same in every POSIX shell (`$'…'` does not), and curl must take
it as it is: no file for an @, no series of URLs for brackets.
"""

import re
import shlex

import msgspec

from postern.core.calls.redact import MASK
from postern.core.history.invocation import Invocation

# curl sets these itself, or they belonged to the connection they came over.
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
# Linux takes 128 KiB for one argument of a program; what is built into a shell, as printf is, has no such limit.
_LONGEST_ARGUMENT = 100_000


def curl(base_url: str, invocation: Invocation) -> str:
    if not invocation.path.startswith(b"/"):  # fetched by a schedule: what is recorded is the source's answer
        return f"curl --globoff --url {shlex.quote(_url(invocation.path))}"
    query = invocation.query.replace(MASK.encode(), b"YOUR_TOKEN")
    url = base_url + _url(invocation.path + (b"?" + query if query else b""))
    body = invocation.body or b""
    # `-X HEAD` would wait for the body that never comes.
    method = "--head" if invocation.method == "HEAD" else f"-X {shlex.quote(invocation.method)}"
    lines = [f"curl {method} --globoff --url {shlex.quote(url)}"]
    named = set()
    for name, value in msgspec.json.decode(invocation.headers):
        if name.lower() in _OWN or not _HEADER_NAME.fullmatch(name):
            continue
        named.add(name.lower())
        value = f"YOUR_{_placeholder(name)}" if value == MASK else value.strip()
        header = f"{name}: {value}" if value else f"{name};"
        lines.append(f"-H {_argument(header.encode('latin-1'))}")
    if body and "content-type" not in named:
        lines.append("-H Content-Type:")  # or curl would call it a form
    if invocation.body is None and invocation.body_size:
        lines.append("--data-raw THE_BODY_IS_NO_LONGER_KEPT")
    elif body and len(body) <= _LONGEST_ARGUMENT and (text := _plain(body)) is not None:
        lines.append(f"--data-raw {shlex.quote(text)}")
    elif body:
        lines[0] = f"{_printed(body)} | {lines[0]}"
        lines.append("--data-binary @-")
    return " \\\n  ".join(lines)


def _argument(value: bytes) -> str:
    text = _plain(value)
    return f'"$({_printed(value)})"' if text is None else shlex.quote(text)


def _plain(value: bytes) -> str | None:
    """Text that can stand in single quotes and be looked at in a terminal; None where it cannot."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    if "\n" in text and "!" in text:
        return None  # bash's history looks for ! at each line of its own, and misses that it is quoted
    return text if all(char.isprintable() or char == "\n" for char in text) else None


def _printed(value: bytes) -> str:
    """Any bytes, by the one tool that every shell has for them."""
    return "printf '" + re.sub(rb"[^ -~]|[!%'\\]|^-", _octal, value).decode("ascii") + "'"


def _octal(found: re.Match[bytes]) -> bytes:
    return b"\\%03o" % ord(found[0])


def _url(target: bytes) -> str:
    """As it was sent, but for the bytes that no URL holds, and a # that curl would keep to itself."""
    return re.sub(rb"[^!-~]|#", lambda found: b"%%%02X" % ord(found[0]), target).decode("ascii")


def _placeholder(name: str) -> str:
    return "".join(char if char.isalnum() else "_" for char in name.upper())
