"""Conditions: the rows that say which of a webhook's calls start a workflow. All must hold; the first that does not gives the reason.

They judge what the history keeps: a header whose value is masked there is ``***`` here too. So no reason tells a secret, and
recorded calls are judged as they were when they came.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from itertools import islice
from operator import gt, lt
from typing import Literal

import msgspec
from msgspec import Struct

from postern.core.calls.call import Call
from postern.core.calls.content import MOST_ELEMENTS, Payload, elements_of
from postern.core.calls.paths import Path, as_text, parse_path, path_problem, walk, walk_members, walker
from postern.core.signatures.redact import Mask
from postern.core.visible import visible
from postern.core.webhooks.bounds import place_of_key

Operator = Literal["oneOf", "notOneOf", "contains", "beginsWith", "greater", "less", "there", "notThere"]
ValuesTaken = Literal["texts", "number", "nothing"]
"""The values of a row: one or more texts, one number, or none."""

MOST_ROWS, MOST_VALUES, LONGEST_VALUE = 20, 100, 500
MOST_STARS = 3
LONGEST_SHOWN, MOST_SHOWN = 80, 3
EVERY = "[*]"

# As JSON writes numbers, so that 007 stays a text. Bounded: a number of a million digits is compared as a text.
_is_number = re.compile(r"-?(?:0|[1-9][0-9]{0,99})(?:\.[0-9]{1,100})?(?:[eE][+-]?[0-9]{1,4})?").fullmatch
_HEADER = re.compile(r"[A-Za-z0-9_-]{1,100}")
PlaceValue = bytes | str | None
"""JSON from the body, a header's or the event's text; None for what is not there."""
ReadPlace = Callable[[Call, Payload], "PlaceValue | list[PlaceValue]"]
"""Not a list for each: most paths stand for one value, and rows are judged at every call."""
Judge = Callable[[str], bool]


class RowValues:
    """The values of a row, made ready to judge texts: once, for all calls."""

    def __init__(self, values: Sequence[str]) -> None:
        self.texts = tuple(values)
        self._numbers = [number for value in values if (number := number_of(value)) is not None]

    def equal(self) -> Judge:
        known, numbers = frozenset(self.texts), self._numbers
        if not numbers:
            return known.__contains__
        return lambda text: text in known or number_of(text) in numbers

    def number(self, compare: Callable[[Decimal, Decimal], bool]) -> Judge:
        (limit,) = self._numbers

        def judge(text: str) -> bool:
            number = number_of(text)
            return number is not None and compare(number, limit)

        return judge


class Comparison(Struct, frozen=True):
    judge: Callable[[RowValues], Judge]
    not_so: str
    """Follows the value that did not hold, before the row's values."""
    takes: ValuesTaken = "texts"
    holds_for_nothing: bool = False


def _opposite(judge: Judge) -> Judge:
    return lambda text: not judge(text)


COMPARISONS: dict[Operator, Comparison] = {
    "oneOf": Comparison(RowValues.equal, "which is not one of"),
    "notOneOf": Comparison(
        lambda values: _opposite(values.equal()), "which is one of", holds_for_nothing=True
    ),
    "contains": Comparison(
        lambda values: lambda text: any(value in text for value in values.texts), "which contains none of"
    ),
    "beginsWith": Comparison(
        lambda values: lambda text: text.startswith(values.texts), "which begins with none of"
    ),
    "greater": Comparison(lambda values: values.number(gt), "which is no number greater than", "number"),
    "less": Comparison(lambda values: values.number(lt), "which is no number less than", "number"),
    "there": Comparison(lambda values: lambda text: True, "", "nothing"),
    "notThere": Comparison(
        lambda values: lambda text: False, "where nothing may be", "nothing", holds_for_nothing=True
    ),
}
ON_NOTHING = " and ".join(name for name, comparison in COMPARISONS.items() if comparison.holds_for_nothing)


def number_of(text: str) -> Decimal | None:
    """Every digit counts: of two ids with thirty digits neither is the other."""
    return Decimal(text) if _is_number(text) else None


def place_checked(of: str) -> str:
    """Raises ``ValueError`` if this is no place of a call that a row can read."""
    kind, name = place_of_key(of)
    if kind == "header":
        if not _HEADER.fullmatch(name) or not name.strip("-_"):
            raise ValueError("write header: and a header's name, like header:X-Topic")
        return of
    first, *rest = name.split(EVERY)
    if len(rest) > MOST_STARS:
        raise ValueError(f"{EVERY} may stand {MOST_STARS} times in a path")
    for part in (first, *(piece.removeprefix(".") for piece in rest if piece)):
        if problem := path_problem(part):
            raise ValueError(problem)
    return of


def values_problem(operator: Operator, values: Sequence[str]) -> str | None:
    match COMPARISONS[operator].takes:
        case "texts":
            return None if values else "write one value or more"
        case "number":
            is_one = len(values) == 1 and number_of(values[0]) is not None
            return None if is_one else "write one number, like 100 or 9.50"
        case "nothing":
            return "takes no values" if values else None


class CompiledRow:
    """A row made ready. ``event``: the places of the event's name (``Preset.event``)."""

    def __init__(
        self,
        of: str,
        operator: Operator,
        values: Sequence[str] = (),
        ignore_case: bool = False,
        *,
        mask: Mask,
        event: tuple[str, ...] = (),
    ) -> None:
        self.place, self._find = _finder(of, mask, event)
        self._comparison, self._values = COMPARISONS[operator], tuple(values)
        if ignore_case:
            folded = self._comparison.judge(RowValues([value.casefold() for value in values]))
            self._holds: Judge = lambda text: folded(text.casefold())
        else:
            self._holds = self._comparison.judge(RowValues(values))

    def problem(self, call: Call, payload: Payload) -> str:
        """Why it does not hold, or an empty text. Where its path stands for several values, one that holds is enough."""
        at_place = self._find(call, payload)
        if type(at_place) is bytes or type(at_place) is str:  # nearly always; isinstance takes longer
            text = as_text(at_place) if isinstance(at_place, bytes) else at_place
            return "" if self._holds(text) else self._why_none([at_place])
        values = at_place if isinstance(at_place, list) else [None]
        if self._comparison.holds_for_nothing and None in values:
            return ""
        there = [value for value in values if value is not None]
        if any(self._holds(as_text(value) if isinstance(value, bytes) else value) for value in there):
            return ""
        return self._why_none(there)

    def _why_none(self, values: Sequence[bytes | str]) -> str:
        if not values:
            return f"{self.place} is not there, which holds only for {ON_NOTHING}"
        said = " ".join((shown(values[0]) + ",", self._comparison.not_so, *self._wanted()))
        if len(values) == 1:
            return f"{self.place} is {said}"
        return f"{self.place} has {len(values)} values and none of them holds; the first is {said}"

    def _wanted(self) -> Iterator[str]:
        if self._values:
            more = len(self._values) - MOST_SHOWN
            yield ", ".join(map(shown, self._values[:MOST_SHOWN])) + (f" and {more} more" if more > 0 else "")


def shown(value: bytes | str) -> str:
    """A value in a sentence: short, on one line, a text in quotes."""
    text = value if isinstance(value, str) else as_text(value)
    cut = text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
    is_word = isinstance(value, str) or value[:1] == b'"'
    is_plain = text in ("true", "false") or number_of(text) is not None
    return f'"{visible(cut, "")}"' if is_word and not is_plain else visible(cut, "")


def _finder(of: str, mask: Mask, event: tuple[str, ...]) -> tuple[str, ReadPlace]:
    if of == "event":
        places = [_finder(place, mask, ())[1] for place in event]

        def named(call: Call, payload: Payload) -> PlaceValue | list[PlaceValue]:
            for find in places:
                value = find(call, payload)
                if value and value != b'""':
                    return value
            return None

        return "the event", named
    kind, name = place_of_key(of)
    if kind == "header":
        seen = mask.reader(name.lower().encode())

        def sent(call: Call, payload: Payload) -> PlaceValue:
            value = seen(call)
            return None if value is None else value.decode("utf-8", "replace").strip()

        return f"the header {name}", sent
    if EVERY not in name:
        walked = walker(parse_path(name))

        def there(call: Call, payload: Payload) -> PlaceValue:
            value = walked(payload.members)
            return None if value == b"null" else value

        return name, there
    first, *rest = (parse_path(part.removeprefix(".")) if part else () for part in name.split(EVERY))

    def several(call: Call, payload: Payload) -> list[PlaceValue]:
        member = walk_members(payload.members, first)
        return list(islice(_every(member, rest), MOST_ELEMENTS))

    return name, several


def _every(value: bytes | None, rest: Sequence[Path]) -> Iterator[bytes | None]:
    """The values behind each element of an array; None where there is nothing, so that an empty array is one nothing."""
    if not rest:
        yield None if value == b"null" else value
        return
    try:
        elements = elements_of(value) if value is not None else []
    except msgspec.DecodeError:
        elements = []
    if not elements:
        yield None
    for element in elements:
        yield from _every(walk(element, rest[0]), rest[1:])


class Conditions:
    """The rows of one webhook."""

    def __init__(self, rows: Sequence[CompiledRow]) -> None:
        self._rows = tuple(rows)
        self.all_hold = f"{'all ' if len(rows) > 1 else ''}{len(rows)} of {len(rows)} hold"

    def problem(self, call: Call, payload: Payload) -> str:
        """The first row that does not hold, with the value that decided; an empty text if all hold."""
        for place, row in enumerate(self._rows, 1):
            if problem := row.problem(call, payload):
                return f"row {place}: {problem}"
        return ""
