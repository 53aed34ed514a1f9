"""What the engine knows, over HTTP."""

from postern.core.access.accounts import Actor
from postern.surfaces.rest.framework.table import Rows
from postern.surfaces.rest.requests import RunsQuery
from postern.usecases.answers import Listing, whole
from postern.usecases.operations import engine
from postern.usecases.operations.views import Run, Workflow
from postern.usecases.runtime.gateway import Gateway

row = Rows("Engine")


@row("GET", "/workflows", "List workflows", level="read", refuses=("conflict",))
async def list_workflows(gateway: Gateway, actor: Actor) -> Listing[Workflow]:
    return whole(await engine.workflows(gateway, actor))


@row("GET", "/runs", "List runs", level="read", refuses=("conflict",))
async def list_runs(gateway: Gateway, actor: Actor, query: RunsQuery) -> Listing[Run]:
    return whole(await engine.runs(gateway, actor, query.limit, query.delivery_key))
