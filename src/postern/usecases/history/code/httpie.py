"""A recorded call as an HTTPie command. HTTPie reads `Name:value` by rules of its own, and sends text only: what it
cannot send as it came is left out, and a line in front says so."""

import shlex

from postern.core.history.invocation import Invocation
from postern.usecases.history.code.recorded import repeated
from postern.usecases.history.code.shell import LONGEST_ARGUMENT, argument, plain, printed

_SPECIAL = frozenset(":;=@")


def httpie(base_url: str, invocation: Invocation) -> str:
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
