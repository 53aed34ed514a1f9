"""How the gateway is, what it was started with and what the engine knows, over HTTP."""

from typing import Annotated

from pydantic import Field

from postern.core.access.accounts import Actor
from postern.core.operations.shown_setting import ShownSetting
from postern.surfaces.rest.framework.operation import Limit, Rows, Text
from postern.usecases.answers import Listing, whole
from postern.usecases.operations import engine, readiness, settings
from postern.usecases.operations.views import Run, Status, Workflows
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import Shape

configuration_row = Rows("Configuration")
engine_row = Rows("Engine")


class RunsQuery(Shape):
    limit: Limit = 50
    delivery_key: Annotated[Text | None, Field(description="Only the runs of one delivery.")] = None


@configuration_row("GET", "/status", "Show how the gateway is", level="read")
async def show_status(gateway: Gateway, actor: Actor) -> Status:
    """Its version, its public address, and whether it can do its work."""
    return await readiness.status(gateway, actor)


@configuration_row("GET", "/settings", "List the gateway's settings", level="admin")
async def list_settings(gateway: Gateway, actor: Actor) -> Listing[ShownSetting]:
    """What the process was started with. Of secrets only whether they are set."""
    return whole(await settings.in_force(gateway, actor))


@engine_row("GET", "/workflows", "List workflows", level="read", refuses=("conflict",))
async def list_workflows(gateway: Gateway, actor: Actor) -> Workflows:
    return await engine.workflows(gateway, actor)


@engine_row("GET", "/runs", "List runs", level="read", refuses=("conflict",))
async def list_runs(gateway: Gateway, actor: Actor, query: RunsQuery) -> Listing[Run]:
    return whole(await engine.runs(gateway, actor, query.limit, query.delivery_key))
