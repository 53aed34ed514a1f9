"""Replaying many over HTTP: plan, run, watch, cancel."""

from typing import Any

from starlette.responses import JSONResponse

from postern.surfaces.rest import history_shapes, shapes
from postern.surfaces.rest.pages import Cursor, Limit, one_page
from postern.surfaces.rest.table import PREFIX, Asking, Table
from postern.usecases.deliveries import replays
from postern.usecases.history import history
from postern.usecases.runtime.gateway import Gateway


def replay_rows(table: Table, gateway: Gateway) -> None:
    row = table.of("History", "/replays").row

    @row(
        "POST",
        "",
        "Plan a replay of many",
        level="write",
        status=201,
        answers=history_shapes.Replay,
        idempotent=True,
    )
    async def plan_replay(actor: Asking, request: history_shapes.ReplayRequest) -> Any:
        """Counts what the filter finds; nothing is started yet. What comes in later is not part of it."""
        plan = await replays.plan(
            gateway, actor, history.filter_of(**request.filter.model_dump(), within="filter.")
        )
        return JSONResponse(plan, 201, {"location": f"{PREFIX}/replays/{plan['id']}"})

    @row("GET", "", "List replays", level="read", answers=shapes.Listing[history_shapes.Replay])
    async def list_replays(actor: Asking, limit: Limit = 50, cursor: Cursor = None) -> Any:
        page = await replays.listing(gateway, actor, limit, cursor)
        return one_page(page)

    @row("GET", "/{replay_id}", "Show a replay's progress", level="read", answers=history_shapes.Replay)
    async def show_replay(actor: Asking, replay_id: str) -> Any:
        return JSONResponse(await replays.show(gateway, actor, replay_id))

    @row(
        "POST",
        "/{replay_id}/run",
        "Run a planned replay",
        level="write",
        status=202,
        answers=history_shapes.Replay,
        refuses=("conflict",),
    )
    async def run_replay(actor: Asking, replay_id: str) -> Any:
        """In the background, the oldest call first, each with the mapping as it is now."""
        return JSONResponse(await replays.begin(gateway, actor, replay_id), 202)

    @row(
        "POST",
        "/{replay_id}/cancel",
        "Cancel a replay",
        level="write",
        answers=history_shapes.Replay,
        refuses=("conflict",),
    )
    async def cancel_replay(actor: Asking, replay_id: str) -> Any:
        """What has been queued by then is started; the rest is not."""
        return JSONResponse(await replays.cancel(gateway, actor, replay_id))
