"""The one field of the page Calls: words, and tokens like ``status:failed``, as parts of the filter that the address holds."""

import re
from collections.abc import Mapping
from urllib.parse import urlencode

from msgspec import Struct

from postern.core.history.invocation import STATUSES
from postern.core.problems import invalid
from postern.surfaces.console import words

TOKENS = {
    "status": "status",
    "webhook": "webhook",
    "value": "value",
    "from": "address",
    "after": "since",
    "before": "until",
    "answer": "answer",
    "reason": "code",
    "header": "header",
    "field": "field",
    "text": "search",
    "is": "marked",
    "replay": "replay",
    "error": "error",
}
"""What is typed before the colon, and the part of the filter that it sets."""

PARTS = tuple(TOKENS.values())
LIVE_PARTS = {"webhook", "status", "address"}
"""Those that can be told of a call as it comes."""
MARKED = "bookmarked"

_WORD = re.compile(r'(?:(\w+):)?(?:"([^"]*)"?|(\S+))')


def read(text: str) -> dict[str, str]:
    """What was typed: each token as its part, and the words that are left as the value to look for."""
    parts: dict[str, str] = {}
    left = []
    for found in _WORD.finditer(text):
        name, value = found[1], found[2] if found[2] is not None else found[3]
        if name in TOKENS and value:
            parts[TOKENS[name]] = value
        else:
            left.append(found[0] if found[2] is None else value)
    if left:
        parts["value"] = " ".join(left)
    return parts


def chosen_in(fields: Mapping[str, str]) -> dict[str, str]:
    """The parts of a filter in an address or a form, and what is typed on top of them."""
    chosen = {name: fields.get(name, "").strip() for name in PARTS}
    return chosen | read(fields.get("q", ""))


def query_of(chosen: Mapping[str, str], columns: str | None = None) -> str:
    """The filter and the columns as the address of the list has them."""
    given = {name: value for name, value in chosen.items() if value}
    return urlencode(given | ({"columns": columns} if columns else {}))


class Chip(Struct, frozen=True):
    """A part that is set: how it is typed, and the list's address without it."""

    name: str
    text: str
    without: str


def chips(chosen: Mapping[str, str], columns: str | None, named: Mapping[str, str]) -> list[Chip]:
    """``named``: the names of the webhooks that the filter is about."""
    return [
        Chip(
            token,
            named.get(chosen[part], chosen[part]),
            query_of({name: value for name, value in chosen.items() if name != part}, columns),
        )
        for token, part in TOKENS.items()
        if chosen[part]
    ]


def offered() -> dict[str, list[str]]:
    """What is offered while somebody types, by token; those that take any text have nothing."""
    reasons = [code for code in words.CODE_WORDS if code not in words.STATUS_WORDS]
    known: dict[str, list[str]] = {
        "status": list(STATUSES),
        "reason": reasons,
        "answer": ["2xx", "4xx", "5xx", "502", "504", "gone"],
        "after": ["1h", "24h", "7d", "30d"],
        "is": [MARKED],
    }
    return {token: known.get(token, []) for token in TOKENS}


def checked(chosen: Mapping[str, str]) -> None:
    if chosen["marked"] not in ("", MARKED, "on"):
        raise invalid("is", f"choose one of: {MARKED}")
