"""Replaying many over HTTP: plan, run, watch, cancel."""

from typing import Annotated

from pydantic import Field

from postern.core.access.accounts import Actor
from postern.surfaces.rest.framework.operation import OnePage, Rows
from postern.surfaces.rest.history.history import ReplayQuery
from postern.usecases.deliveries import replays
from postern.usecases.deliveries.views import Replay
from postern.usecases.history.filters import FilterRequest
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import Shape

row = Rows("History")


class ReplayFilter(FilterRequest):
    """Which invocations: every part that is given must hold. Only calls that were accepted, or admitted
    later, can be replayed; the others are skipped."""


class ReplayRequest(Shape):
    filter: ReplayFilter
    include_completed: Annotated[
        bool, Field(description="Also calls whose workflow has completed. They are left out otherwise.")
    ] = False


@row("POST", "/replays", "Plan a replay of many", status=201, place="replays", idempotent=True)
async def plan_replay(gateway: Gateway, actor: Actor, body: ReplayRequest) -> Replay:
    """Counts what the filter finds; nothing is started yet. What comes in later is not part of it, and what has
    completed already only with `includeCompleted`."""
    return await replays.plan(gateway, actor, body.filter.wanted("filter."), body.include_completed)


row.of(replays.listing, "list_replays", "GET", "/replays", "List replays", query=OnePage)
row.of(replays.show, "show_replay", "GET", "/replays/{replay_id}", "Show a replay's progress")
row.of(
    replays.begin, "run_replay", "POST", "/replays/{replay_id}/run", "Run a planned replay",
    query=ReplayQuery, status=202, refuses=("conflict",),
)  # fmt: skip
row.of(
    replays.cancel, "cancel_replay", "POST", "/replays/{replay_id}/cancel", "Cancel a replay",
    refuses=("conflict",),
)  # fmt: skip
