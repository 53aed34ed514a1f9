"""How the gateway is, what it was started with and what the engine knows, over HTTP."""

from typing import Annotated

from pydantic import Field

from postern.surfaces.rest.framework.operation import Limit, Rows, Text
from postern.usecases.operations import engine, readiness, settings
from postern.usecases.shapes import Shape

configuration_row = Rows("Configuration")
engine_row = Rows("Engine")


class RunsQuery(Shape):
    limit: Limit = 50
    delivery_key: Annotated[Text | None, Field(description="Only the runs of one delivery.")] = None


configuration_row.of(readiness.status, "show_status", "GET", "/status", "Show how the gateway is")
configuration_row.of(
    settings.in_force, "list_settings", "GET", "/settings", "List the gateway's settings", level="admin"
)
engine_row.of(
    engine.workflows, "list_workflows", "GET", "/workflows", "List workflows", refuses=("conflict",)
)
engine_row.of(engine.runs, "list_runs", "GET", "/runs", "List runs", query=RunsQuery, refuses=("conflict",))
