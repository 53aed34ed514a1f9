"""The gateway's status and settings, the webhooks as one document, and the engine's workflows and runs, over
HTTP."""

from typing import Any, Literal

from pydantic import Field

from postern.core.access.accounts import Actor
from postern.surfaces.rest.framework.bodies import LARGEST_CONFIGURATION
from postern.surfaces.rest.framework.operation import Limit, Rows, ShortText
from postern.usecases.operations import engine, readiness, settings
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import Shape
from postern.usecases.webhooks import as_code
from postern.usecases.webhooks.views import Applied

row = Rows("Configuration")
engine_row = Rows("Engine")


class ReferencedSecret(Shape):
    """The secret that `{env: NAME}` or `{file: PATH}` in a document names."""

    kind: Literal["env", "file"]
    name: str = Field(min_length=1, max_length=4096)
    value: str = Field(min_length=1, max_length=65_536, repr=False)


class ApplyRequest(Shape):
    """``document`` as `GET /configuration` answers it."""

    document: Any
    secrets: list[ReferencedSecret] = Field([], max_length=100_000, repr=False)
    prune: bool = Field(default=False, description="Delete the webhooks that the document does not name.")
    dry_run: bool = Field(default=False, description="Only say what would be changed.")


row.of(as_code.export, "export_configuration", "GET", "/configuration", "Export every webhook")


@row(
    "POST", "/configuration", "Make the webhooks what a document says",
    refuses=("version_conflict", "not_found"), largest_body=LARGEST_CONFIGURATION,
)  # fmt: skip
async def apply_configuration(gateway: Gateway, actor: Actor, body: ApplyRequest) -> Applied:
    """Checks all of the document before it changes anything, and leaves alone what is right already. `secrets`
    holds the values of the document's references; a stored secret whose reference is not among them stays."""
    values = {(str(secret.kind), secret.name): secret.value for secret in body.secrets}
    return await as_code.apply(
        gateway,
        actor,
        body.document,
        lambda kind, name: values.get((kind, name)),
        prune=body.prune,
        dry_run=body.dry_run,
    )


class RunsQuery(Shape):
    limit: Limit = 50
    delivery_key: ShortText | None = Field(
        default=None,
        description="Only the runs of one delivery, with their steps: the invocation's id, a dot and the delivery's emission.",
    )


row.of(readiness.status, "show_status", "GET", "/status", "Show how the gateway is")
row.of(settings.in_force, "list_settings", "GET", "/settings", "List the gateway's settings", level="admin")
engine_row.of(
    engine.workflows, "list_workflows", "GET", "/workflows", "List workflows", refuses=("conflict",)
)
engine_row.of(engine.runs, "list_runs", "GET", "/runs", "List runs", query=RunsQuery, refuses=("conflict",))
