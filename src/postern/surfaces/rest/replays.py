"""Replaying many over HTTP: plan, run, watch, cancel."""

from typing import Annotated

from pydantic import Field

from postern.core.access.accounts import Actor
from postern.surfaces.rest.framework.operation import OnePage, Rows
from postern.surfaces.rest.history.history import ReplayQuery
from postern.usecases.answers import Listing
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


@row("POST", "/replays", "Plan a replay of many", level="write", status=201, place="replays", idempotent=True)
async def plan_replay(gateway: Gateway, actor: Actor, body: ReplayRequest) -> Replay:
    """Counts what the filter finds; nothing is started yet. What comes in later is not part of it, and what has
    completed already only with `includeCompleted`."""
    return await replays.plan(gateway, actor, body.filter.wanted("filter."), body.include_completed)


@row("GET", "/replays", "List replays", level="read")
async def list_replays(gateway: Gateway, actor: Actor, query: OnePage) -> Listing[Replay]:
    return await replays.listing(gateway, actor, query.limit, query.cursor)


@row("GET", "/replays/{replay_id}", "Show a replay's progress", level="read")
async def show_replay(gateway: Gateway, actor: Actor, replay_id: str) -> Replay:
    return await replays.show(gateway, actor, replay_id)


@row(
    "POST",
    "/replays/{replay_id}/run",
    "Run a planned replay",
    level="write",
    status=202,
    refuses=("conflict",),
)
async def run_replay(gateway: Gateway, actor: Actor, replay_id: str, query: ReplayQuery) -> Replay:
    """In the background, the oldest call first, each from the first step of its workflow, with the values that its mapping finds now, or with those
    that were recorded."""
    return await replays.begin(gateway, actor, replay_id, query.fields)


@row("POST", "/replays/{replay_id}/cancel", "Cancel a replay", level="write", refuses=("conflict",))
async def cancel_replay(gateway: Gateway, actor: Actor, replay_id: str) -> Replay:
    """What has been queued by then is started; the rest is not."""
    return await replays.cancel(gateway, actor, replay_id)
