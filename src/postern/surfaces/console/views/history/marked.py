"""Actions on several calls that were marked in the list."""

from collections import Counter
from collections.abc import AsyncIterator

from starlette.responses import Response

from postern.core.problems import Refused, invalid
from postern.surfaces.console.views.history import exported
from postern.surfaces.console.visit import Visit, read_pairs
from postern.usecases.calls import readmission
from postern.usecases.history import history
from postern.usecases.history.filters import filter_of

MOST = 100


async def do(visit: Visit) -> Response:
    pairs = await read_pairs(visit.request)
    calls = list(dict.fromkeys(value for name, value in pairs if name == "call"))
    fields = dict(pairs)
    if not 0 < len(calls) <= MOST:
        raise invalid("call", f"mark 1 to {MOST} calls")
    match fields.get("do"):
        case "export":
            return exported.answer("csv", "", _lines(visit, calls))
        case "replay":
            done, refused = await _replayed(visit, calls)
        case "admit":
            found = await readmission.admit(visit.gateway, visit.actor, calls)
            done = found.admitted
            refused = Counter(
                one.reason or "it was started already" for one in found.items if not one.admitted
            )
        case _:
            raise invalid("do", "choose replay, admit or export")
    back = fields.get("back", "")
    return visit.page(
        "calls/done.html",
        what="replayed" if fields["do"] == "replay" else "admitted",
        done=done,
        of=len(calls),
        refused=refused.most_common(),
        back=back if back.startswith(("/calls", "/webhooks/")) else "/calls",
    )


async def _replayed(visit: Visit, calls: list[str]) -> tuple[int, Counter[str]]:
    refused: Counter[str] = Counter()
    for one in calls:
        try:
            await history.replay(visit.gateway, visit.actor, one)
        except Refused as problem:
            refused[problem.detail or problem.problem.title] += 1
    return len(calls) - refused.total(), refused


async def _lines(visit: Visit, calls: list[str]) -> AsyncIterator[str]:
    for one in calls:
        async for line in exported.lines(visit, filter_of(value=one), "csv"):
            yield line
