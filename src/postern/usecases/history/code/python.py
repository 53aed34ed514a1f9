"""A recorded call as a Python program. It needs nothing but Python, and `http.client` sends exactly what it is given:
urllib and requests write headers and addresses anew."""

from urllib.parse import urlsplit

from postern.core.history.invocation import Invocation
from postern.usecases.history.code.recorded import Repeated, repeated


def python(base_url: str, invocation: Invocation) -> str:
    call = repeated(base_url, invocation)
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
