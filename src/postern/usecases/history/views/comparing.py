"""Two calls compared."""

from typing import Any, Literal

from postern.core.history.compare import Changes
from postern.usecases.answers import View, shown


class Difference(View):
    """``kind``: as seen from the call that is compared with."""

    place: str
    kind: Literal["added", "removed", "changed"]
    before: str | None
    after: str | None


class Differences(View):
    """The first ones; ``count`` is how many there are."""

    count: int
    items: list[Difference]


class BodyComparison(View):
    """``compared``: by path in JSON, by line in text; ``written differently`` is JSON of the same values. Without
    differences it says why none are shown."""

    compared: Literal[
        "same", "json", "written differently", "text", "bytes", "too large", "too different", "gone"
    ]
    count: int
    items: list[Difference]


class Comparison(View):
    invocation_id: str
    compared_with: str
    same_webhook: bool
    request: Differences
    query: Differences
    headers: Differences
    values: Differences
    body: BodyComparison


def differences_of(found: Changes) -> Differences:
    return Differences(count=found.count, items=_differences(found))


def body_comparison(compared: Any, found: Changes | None = None) -> BodyComparison:
    return BodyComparison(
        compared=compared, count=found.count if found else 0, items=_differences(found) if found else []
    )


def _differences(found: Changes) -> list[Difference]:
    return [shown(Difference, one) for one in found.shown]
