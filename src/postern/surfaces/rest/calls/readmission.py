"""Rejected calls that would pass now, over HTTP."""

from typing import Annotated

from pydantic import Field

from postern.core.access.accounts import Actor
from postern.surfaces.rest.framework.operation import Rows
from postern.usecases.calls import readmission
from postern.usecases.calls.views import Admitted, Recheck
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import WHOLE, Shape

webhooks_row = Rows("Webhooks")
history_row = Rows("History")


class AdmitAllRequest(Shape):
    expected: Annotated[
        Annotated[int, Field(ge=0), WHOLE] | None,
        Field(description="How many they were: refused where it is another number now."),
    ] = None


class AdmitRequest(Shape):
    invocation_ids: list[str] = Field(min_length=1, max_length=1000)


@webhooks_row(
    "GET", "/webhooks/{webhook_id}/readmissible", "List rejected calls that would pass now", level="read"
)
async def list_readmissible(gateway: Gateway, actor: Actor, webhook_id: str) -> Recheck:
    """Judged by the webhook's current settings, at the time they were received. Nothing is started."""
    return await readmission.recheck(gateway, actor, webhook_id)


@webhooks_row(
    "POST", "/webhooks/{webhook_id}/readmissible", "Admit all rejected calls that pass now",
    level="write", refuses=("conflict",),
)  # fmt: skip
async def admit_readmissible(
    gateway: Gateway, actor: Actor, webhook_id: str, body: AdmitAllRequest
) -> Admitted:
    """The oldest first, as if each had been named."""
    return await readmission.admit_all(gateway, actor, webhook_id, body.expected)


@history_row(
    "POST", "/readmissions", "Admit rejected calls that pass now", level="write", refuses=("not_found",)
)
async def admit_invocations(gateway: Gateway, actor: Actor, body: AdmitRequest) -> Admitted:
    """Starts those of them that the current settings let in. What has been started meanwhile is left alone."""
    return await readmission.admit(gateway, actor, body.invocation_ids)
