"""Rejected calls, checked again with the settings as they are now: after a corrected secret nothing need be sent
again."""

from collections import Counter

from starlette.responses import Response

from postern.core.history.invocation import HistoryFilter
from postern.identity import time_of
from postern.surfaces.console.views.history import sentences
from postern.surfaces.console.views.history.listing import rows_of
from postern.surfaces.console.views.webhooks.webhook import loaded, tab
from postern.surfaces.console.visit import Visit
from postern.usecases.calls import readmission
from postern.usecases.calls.views import Admitted
from postern.usecases.history import history

SHOWN = 50


async def show(visit: Visit, result: Admitted | None = None) -> Response:
    head = await loaded(visit)
    found = await readmission.recheck(visit.gateway, visit.actor, head.webhook.id)
    passing = {one.invocation_id for one in found.would_pass}
    # From the newest of them on: many that do not pass may have come since.
    until = time_of(found.would_pass[-1].invocation_id) + 1 if passing else None
    rejected = await history.listing(
        visit.gateway, visit.actor, HistoryFilter(head.webhook.id, "rejected", until=until), 200
    )
    return tab(
        visit,
        "calls",
        head,
        shown="rejected",
        passing=len(passing),
        again=found.came_again,
        failing=found.still_rejected,
        not_kept=found.not_kept,
        result=result,
        reasons=Counter(one.reason for one in result.items if not one.admitted).most_common(10)
        if result
        else [],
        rows=rows_of([item for item in rejected.items if item.id in passing][:SHOWN]),
        reason=sentences.reason,
        names={},
        after=None,
        kept="",
    )


async def admit(visit: Visit) -> Response:
    """All that pass now, the oldest first. What has been admitted meanwhile, or came again, is left alone."""
    done = await readmission.admit_all(visit.gateway, visit.actor, visit.at("webhook"))
    return await show(visit, done)
