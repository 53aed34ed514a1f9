"""Turns: how many of a webhook's calls are at work at once, which follow each other, and which give way to a newer one."""

from hashlib import blake2s

from msgspec import Struct

from postern.core.calls.content import Payload
from postern.core.calls.paths import Path, as_text, parse_path, path_problem, walk_members
from postern.core.deliveries.delivery import FIELD_NAMES, invocation_of_key
from postern.core.moment import iso
from postern.core.webhooks.bounds import place_of_key

MOST_AT_ONCE = 1000
LONGEST_QUIET = 86_400
LONGEST_WAIT_FOR_QUIET = 7 * 86_400
TIMES_AS_LONG = 10
"""So many times the quiet is the longest wait where none is set: a sender that is never quiet must not stop its workflow."""

UNTOLD = ""
"""The turn of calls that nothing tells apart: they are counted only."""


def by_problem(by: str) -> str | None:
    """Says why calls cannot follow each other by the value at this place."""
    if by in FIELD_NAMES:
        return None
    if place_of_key(by)[0] == "header":
        return "calls follow each other by a value in the body: write a path, or fieldOne to fieldFour"
    return path_problem(by)


class TurnRules(Struct, frozen=True):
    at_once: int | None = None
    by: str | None = None
    path: Path | None = None
    """None where ``by`` is a mapped field, or nothing."""
    quiet: float | None = None
    """Seconds without a newer call of the same value, after which the newest starts."""
    longest: float = 0.0

    @property
    def in_order(self) -> bool:
        """Whether only one of a value is at work at once."""
        return self.by is not None or self.quiet is not None

    def of(self, payload: Payload, fields: dict[str, str]) -> tuple[str, str]:
        """The turn of a call, and what to say in its trace. It is short, however long the value is."""
        if self.by is None:
            return (UNTOLD if self.quiet is None else _short("")), "with all calls of this webhook"
        value = walk_members(payload.members, self.path) if self.path is not None else None
        text = fields.get(self.by, "") if self.path is None else as_text(value) if value is not None else ""
        if not text:
            return _short(""), f"{self.by} is not there: with all calls that have nothing there"
        return _short(text), f"with calls that have the same {self.by}"


def turns(at_once: int | None, by: str | None, quiet: float | None, longest: float | None) -> TurnRules:
    path = None if by is None or by in FIELD_NAMES else parse_path(by)
    return TurnRules(at_once, by, path, quiet, longest or (quiet or 0.0) * TIMES_AS_LONG)


def _short(text: str) -> str:
    return blake2s(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


class WaitsBehind(Struct, frozen=True):
    """Others that a delivery in turn waits for."""

    before: int
    """How many wait with the same turn, and came before it."""
    newer: int
    """How many came after it."""
    at_work: int
    """How many of the webhook are at work."""
    first_at: float
    """Since when the first with the same turn waits."""
    holder: str | None
    """The one with the same turn that is at work."""


def waits_for(turns: TurnRules, ahead: WaitsBehind, since: float) -> str:
    """For what a call waits, and since when."""
    reasons = []
    if turns.in_order and ahead.holder is not None:
        reasons.append(f"{invocation_of_key(ahead.holder)} is at work")
    if turns.at_once is not None and ahead.at_work >= turns.at_once:
        reasons.append(f"{ahead.at_work} are at work, and {turns.at_once} may be")
    if turns.quiet is not None:
        latest = iso(ahead.first_at + turns.longest)
        quiet = f"after {turns.quiet:g} s without another, at the latest at {latest}"
        reasons.append(f"{'a newer one' if ahead.newer else 'it'} starts {quiet}")
    elif ahead.before:
        reasons.append(f"{ahead.before} before it")
    whose = f" among calls with the same {turns.by}" if turns.by is not None else ""
    return f"its turn{whose} since {iso(since)}: {'; '.join(reasons) or 'it is the next'}"
