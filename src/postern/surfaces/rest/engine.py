"""What the engine knows, over HTTP."""

from typing import Annotated, Any

from fastapi import Query

from postern.surfaces.rest import history_shapes, shapes
from postern.surfaces.rest.pages import Limit, whole
from postern.surfaces.rest.table import Asking, Table
from postern.usecases.operations import engine
from postern.usecases.runtime.gateway import Gateway

DeliveryKey = Annotated[
    str | None, Query(alias="deliveryKey", max_length=80, description="Only the runs of one delivery.")
]


def engine_rows(table: Table, gateway: Gateway) -> None:
    row = table.of("Engine").row

    @row(
        "GET",
        "/workflows",
        "List workflows",
        level="read",
        answers=shapes.Listing[history_shapes.Workflow],
        refuses=("conflict",),
    )
    async def list_workflows(actor: Asking) -> Any:
        return whole(await engine.workflows(gateway, actor))

    @row(
        "GET",
        "/runs",
        "List runs",
        level="read",
        answers=shapes.Listing[history_shapes.Run],
        refuses=("conflict",),
    )
    async def list_runs(actor: Asking, limit: Limit = 50, delivery_key: DeliveryKey = None) -> Any:
        return whole(await engine.runs(gateway, actor, limit, delivery_key))
