"""Two calls compared."""

from typing import Any, Literal

from postern.core.history.compare import Difference, Differences
from postern.usecases.answers import View


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


def body_comparison(compared: Any, found: Differences | None = None) -> BodyComparison:
    found = found or Differences()
    return BodyComparison(compared=compared, count=found.count, items=found.items)
