"""The one field of the page Calls: words, and tokens like ``status:failed``, as parts of the filter that the address holds."""

import re
from collections.abc import Mapping
from urllib.parse import urlencode

from msgspec import Struct

from postern.core.history.invocation import STATUSES, HistoryFilter
from postern.core.problems import invalid
from postern.surfaces.console import words
from postern.usecases.answers import Time

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
"""The word before the colon, and the part of the filter that it sets."""

GROUPS = ("delivered", "waiting", "failed", "rejected")
"""The four words for the state of nearly every call, offered first."""

PARTS = tuple(TOKENS.values())
LIVE_PARTS = {"webhook", "status", "address"}
"""The parts that are known of a call when it arrives."""
MARKED = "bookmarked"

_OF_A_LIST = ("status", "reason", "answer", "is")
_WORD = re.compile(r'(?:(\w+):)?(?:"([^"]*)"?|(\S+))')


def read(text: str) -> dict[str, str]:
    """Reads the typed text: each token sets its part, and the other words are the value to look for."""
    parts: dict[str, str] = {}
    left = []
    for match in _WORD.finditer(text):
        name, value = (match[1] or "").lower(), match[2] if match[2] is not None else match[3]
        if name in TOKENS and value:
            if TOKENS[name] in parts:
                raise invalid(name, "is there twice; a call has to meet all parts, so write it once")
            parts[TOKENS[name]] = value.lower() if name in _OF_A_LIST else value
        else:
            left.append(match[0] if match[2] is None else value)
    if left:
        parts["value"] = " ".join(left)
    return parts


def chosen_in(fields: Mapping[str, str], typed: str = "") -> dict[str, str]:
    """The parts of a filter in an address or a form, and what is typed on top of them."""
    return {name: fields.get(name, "").strip() for name in PARTS} | read(typed)


def query_of(chosen: Mapping[str, str]) -> str:
    """The filter as the address of the list has it."""
    return urlencode({name: value for name, value in chosen.items() if value})


class Chip(Struct, frozen=True):
    """A part that is set: how it is typed, and the list's address without it."""

    name: str
    text: str
    without: str
    at: Time | None
    """The time, if the part is one: it is shown in the reader's zone."""


def chips(chosen: Mapping[str, str], meant: HistoryFilter, named: Mapping[str, str]) -> list[Chip]:
    """``named``: the names of the webhooks that the filter is about."""
    moments = {"since": Time.maybe(meant.since), "until": Time.maybe(meant.until)}
    return [
        Chip(
            token,
            named.get(chosen[part], _shortened(chosen[part])),
            query_of({name: value for name, value in chosen.items() if name != part}),
            moments.get(part) if chosen[part][4:5] == "-" else None,
        )
        for token, part in TOKENS.items()
        if chosen.get(part)
    ]


def _shortened(value: str) -> str:
    """Ids of marked calls are counted."""
    if value.startswith("inv_") and "," in value:
        return words.plural(value.count(",") + 1, "marked call")
    return value


def offered(reasons: list[str]) -> dict[str, list[str]]:
    """The values to offer for each token. Tokens that take any text have none."""
    known: dict[str, list[str]] = {
        "status": list(dict.fromkeys([*GROUPS, *STATUSES])),
        "reason": reasons,
        "answer": ["2xx", "4xx", "5xx", "502", "504", "gone"],
        "after": ["1h", "24h", "7d", "30d"],
        "is": [MARKED],
    }
    return {token: known.get(token, []) for token in TOKENS}


def checked(chosen: Mapping[str, str]) -> None:
    if chosen["marked"] not in ("", MARKED, "on"):
        raise invalid("is", f"choose one of: {MARKED}")
