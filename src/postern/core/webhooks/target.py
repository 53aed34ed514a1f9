"""A webhook's own target: where its calls go instead of the gateway's engine."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from postern.core.deliveries.delivery import FIELD_NAMES, Original
from postern.core.names import OF_THE_CONNECTION, is_header_name
from postern.core.signatures.redact import MASK, TEST_CALL
from postern.core.webhooks.settings import Forward

VARIABLES = (*FIELD_NAMES, "webhookId", "invocationId")
LONGEST_FILLED = 1000
"""Characters of a call's value in a header."""
_PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))
_NAMED = re.compile(r"\{([A-Za-z]\w*)\}")
is_variable = re.compile(rf"\{{({'|'.join(VARIABLES)})\}}").fullmatch
_LEFT_OUT = {*OF_THE_CONNECTION, "accept-encoding", TEST_CALL.decode()}


@dataclass(frozen=True, slots=True)
class OwnTarget:
    url: str = field(repr=False)
    forward: Forward
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    timeout: float
    signing_secret: str = field(repr=False)


def value_problem(value: str) -> str | None:
    """Says what is wrong with a header's value, in which a call's own values may stand."""
    unknown = next((name for name in _NAMED.findall(value) if name not in VARIABLES), None)
    if unknown is None:
        return None
    return f"there is no {{{unknown}}}: write {', '.join(f'{{{variable}}}' for variable in VARIABLES)}"


def filled(value: str, variables: Mapping[str, str]) -> str:
    """The header's value for one call. A caller chooses what stands in it, and must not write a header by it."""

    def of_call(match: re.Match[str]) -> str:
        # Without `surrogatepass` half of a pair, which JSON may hold, would have no bytes.
        text = variables.get(match[1], "")[:LONGEST_FILLED].encode("utf-8", "surrogatepass")
        return quote(text, safe=_PRINTABLE)

    return _NAMED.sub(of_call, value).strip()


def original_of(method: str, query: bytes, headers: Iterable[tuple[str, str]], body: bytes) -> Original:
    """The recorded call as it is sent on: without what belongs to the connection, what is masked, and what this program's
    client cannot write."""
    pairs = [(name.lower(), value) for name, value in headers]
    named = {
        option.strip().lower() for name, value in pairs if name == "connection" for option in value.split(",")
    }
    kept: dict[str, str] = {}
    for name, value in pairs:
        is_writable = is_header_name(name) and value.isascii() and value.replace("\t", " ").isprintable()
        if (
            name in _LEFT_OUT
            or name in named
            or name.startswith("proxy-")
            or value == MASK
            or not is_writable
        ):
            continue
        kept[name] = f"{kept[name]}, {value}" if name in kept else value
    parts = [part for part in query.split(b"&") if MASK.encode() not in part.split(b"=", 1)]
    # A fetched document is no call: it came by GET, and has a body.
    sent_by = "POST" if body and method in ("GET", "HEAD") else method
    return Original(sent_by, b"&".join(parts), kept, body)
