"""A recorded call as a curl command. What was masked when it was stored becomes a placeholder to fill in."""

import shlex

import msgspec

from postern.core.invocation import Invocation
from postern.core.redact import MASK

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


def curl(base_url: str, invocation: Invocation) -> str:
    query = invocation.query.decode("latin-1").replace(MASK, "YOUR_TOKEN")
    url = base_url + invocation.path.decode("latin-1") + (f"?{query}" if query else "")
    lines = [f"curl -X {_quoted(invocation.method)} {_quoted(url)}"]
    for name, value in msgspec.json.decode(invocation.headers):
        if name.lower() in _OWN:
            continue
        value = f"YOUR_{_placeholder(name)}" if value == MASK else value
        lines.append(f"-H {_quoted(f'{name}: {value}' if value else f'{name};')}")
    if invocation.body is None and invocation.body_size:
        lines.append("--data-binary 'THE_BODY_IS_NO_LONGER_KEPT'")
    elif invocation.body:
        try:
            lines.append(f"--data-binary {_quoted(invocation.body.decode())}")
        except UnicodeDecodeError:
            escaped = "".join(f"\\x{byte:02x}" for byte in invocation.body)
            return f"printf '{escaped}' | " + " \\\n  ".join([*lines, "--data-binary @-"])
    return " \\\n  ".join(lines)


def _quoted(text: str) -> str:
    """For a shell; a NUL cannot be in an argument, and a stranger's control characters are not for a
    terminal."""
    if all(char.isprintable() or char in "\n\t" for char in text):
        return shlex.quote(text)
    escapes = {"\\": "\\\\", "'": "\\'"}
    return (
        "$'"
        + "".join(
            escapes.get(
                char,
                char
                if char.isprintable()
                else f"\\u{ord(char):04x}"
                if ord(char) > 127
                else f"\\x{ord(char):02x}",
            )
            for char in text
        )
        + "'"
    )


def _placeholder(name: str) -> str:
    return "".join(char if char.isalnum() else "_" for char in name.upper())
