"""Calls over HTTP: rejected ones that would pass now, and what workflows say of the call that began them: its answer, and how
they ended."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from starlette.requests import Request

from postern.surfaces.rest.framework.operation import Rows
from postern.surfaces.session import bearer
from postern.usecases.calls import readmission
from postern.usecases.calls.respond import delivery_of_token, report_end, respond
from postern.usecases.calls.views import Answered, EndNoted
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import WHOLE, Shape

webhooks_row = Rows("Webhooks")
history_row = Rows("History")


class ResponseAction(Shape):
    """What the waiting caller is to hear. Sent by other people's workflows: what else they say is passed
    over."""

    model_config = ConfigDict(extra="ignore")

    status: int | None = Field(None, ge=200, le=599)
    headers: dict[str, str] | None = None
    body: Any = None


class RunsEnded(Shape):
    """How the workflow of this call ended. Sent by other people's workflows: what else they say is passed over."""

    model_config = ConfigDict(extra="ignore")

    state: Literal["completed", "failed"]
    error: str | None = Field(None, max_length=20_000, description="Why it failed, in words.")


class AdmitAllRequest(Shape):
    expected: Annotated[
        Annotated[int, Field(ge=0), WHOLE] | None,
        Field(description="How many they were: refused where it is another number now."),
    ] = None


class AdmitRequest(Shape):
    invocation_ids: list[str] = Field(min_length=1, max_length=1000)


webhooks_row.of(
    readmission.recheck, "list_readmissible", "GET", "/webhooks/{webhook_id}/readmissible",
    "List rejected calls that would pass now",
)  # fmt: skip
webhooks_row.of(
    readmission.admit_all, "admit_readmissible", "POST", "/webhooks/{webhook_id}/readmissible",
    "Admit all rejected calls that pass now", body=AdmitAllRequest, refuses=("conflict",),
)  # fmt: skip
history_row.of(
    readmission.admit, "admit_invocations", "POST", "/readmissions", "Admit rejected calls that pass now",
    body=AdmitRequest, refuses=("not_found",),
)  # fmt: skip


async def _holds_response_token(gateway: Gateway, request: Request) -> None:
    await delivery_of_token(gateway, request.path_params["invocation_id"], bearer(request))


@history_row(
    "POST", "/invocations/{invocation_id}/response", "Answer the waiting caller",
    level=None, refuses=("not_authenticated", "gone"), security=[{"responseToken": []}], check=_holds_response_token,
)  # fmt: skip
async def answer_invocation(
    gateway: Gateway, request: Request, invocation_id: str, body: ResponseAction
) -> Answered:
    """Where the response action sends its answer. The first one in time wins."""
    await respond(gateway, invocation_id, bearer(request), body.status, body.headers, body.body)
    return Answered(status="answered")


@history_row(
    "POST", "/invocations/{invocation_id}/end", "Say how a workflow ended",
    level=None, refuses=("not_authenticated",), security=[{"responseToken": []}], check=_holds_response_token,
)  # fmt: skip
async def end_invocation(gateway: Gateway, request: Request, invocation_id: str, body: RunsEnded) -> EndNoted:
    """For engines that are started over HTTP and not asked how runs end. The first report counts."""
    await report_end(gateway, invocation_id, bearer(request), body.state, body.error or "")
    return EndNoted(status="noted")
