"""Any bytes as a word that every POSIX shell, and fish, reads back as exactly them. Strangers wrote most of what stands in
these commands, so it must mean the same in every shell (`$'…'` does not), and nothing in it may run."""

import re
import shlex

from postern.core.history.invocation import Invocation
from postern.usecases.history.code.recorded import repeated

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


def curl(base_url: str, invocation: Invocation) -> str:
    """curl must take what is written there as it is: no file for an @, no series of URLs for brackets."""
    call = repeated(base_url, invocation)
    if not invocation.path.startswith(b"/"):
        return f"curl --globoff --url {argument(call.url.encode())}"
    # `-X HEAD` would wait for the body that never comes.
    method = "--head" if call.method == "HEAD" else f"-X {shlex.quote(call.method)}"
    lines = [f"curl {method} --globoff --url {argument(call.url.encode())}"]
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


_SPECIAL = frozenset(":;=@")


def httpie(base_url: str, invocation: Invocation) -> str:
    """HTTPie reads `Name:value` by rules of its own, and sends text only: what it cannot send as it came is left out, and a line
    in front says so."""
    call = repeated(base_url, invocation)
    if not (call.method.isascii() and call.method.isalpha()):
        return _comment("HTTPie sends no method like that of this call. Copy as curl repeats it.")
    items, left_out = [], []
    for name, value in call.headers:
        item = _item(name, value)
        if item is None:
            left_out.append(name)
        else:
            items.append(item)
    if call.body and not call.has_type:
        items.append("Content-Type:")  # without its own
    words, piped = ["http"], ""
    if call.body_gone:
        words += ["--ignore-stdin", "--raw=THE_BODY_IS_NO_LONGER_KEPT"]
    elif not call.body:
        words.append("--ignore-stdin")
    elif len(call.body) <= LONGEST_ARGUMENT and (text := plain(call.body)) is not None:
        words += ["--ignore-stdin", f"--raw={shlex.quote(text)}"]
    else:
        piped = f"{printed(call.body)} | "
    words += [call.method, argument(call.url.encode())]
    if any(item.startswith("-") for item in items):
        words.append("--")  # they are no options
    lines = [piped + " ".join(words), *(argument(item.encode()) for item in items)]
    command = " \\\n  ".join(lines)
    if left_out:
        names = ", ".join(dict.fromkeys(left_out))
        command = f"{_comment(f'Left out, for HTTPie cannot send them as they came: {names}')}\n{command}"
    return command


def _comment(text: str) -> str:
    """A line that does nothing in any shell. A # begins a comment in most of them only, and a stranger may have
    chosen the names in it."""
    return f": {shlex.quote(text)}"


def _item(name: str, value: bytes) -> str | None:
    """The header as HTTPie takes it; None where it cannot."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    if not text:
        return f"{name};"
    item = f"{name}:{chr(92) if text[0] in '=@' else ''}{text}"
    return item if text.strip() == text and _as_read(item) == (name, text) else None


def _as_read(item: str) -> tuple[str, str]:
    """Name and value as HTTPie finds them in an item whose first separator is a colon by itself."""
    read, characters = [], iter(item)
    for char in characters:
        if char != "\\":
            read.append(char)
            continue
        following = next(characters, "")
        read.append(following if following in _SPECIAL and following else char + following)
    name, _, value = "".join(read).partition(":")
    return name, value
