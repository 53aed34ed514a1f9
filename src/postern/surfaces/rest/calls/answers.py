"""What workflows say of the call that began them, over HTTP: its answer, and how they ended."""

from typing import Any, Literal

from pydantic import ConfigDict, Field
from starlette.requests import Request

from postern.surfaces.rest.framework.operation import Rows
from postern.surfaces.session import bearer
from postern.usecases.calls.respond import delivery_of_token, report_end, respond
from postern.usecases.calls.views import Answered, EndNoted
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import Shape

row = Rows("History")


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


async def _holds_response_token(gateway: Gateway, request: Request) -> None:
    await delivery_of_token(gateway, request.path_params["invocation_id"], bearer(request))


@row(
    "POST", "/invocations/{invocation_id}/response", "Answer the waiting caller",
    level=None, refuses=("not_authenticated", "gone"), security=[{"responseToken": []}], check=_holds_response_token,
)  # fmt: skip
async def answer_invocation(
    gateway: Gateway, request: Request, invocation_id: str, body: ResponseAction
) -> Answered:
    """Where the response action sends its answer. The first one in time wins."""
    await respond(gateway, invocation_id, bearer(request), body.status, body.headers, body.body)
    return Answered(status="answered")


@row(
    "POST", "/invocations/{invocation_id}/end", "Say how a workflow ended",
    level=None, refuses=("not_authenticated",), security=[{"responseToken": []}], check=_holds_response_token,
)  # fmt: skip
async def end_invocation(gateway: Gateway, request: Request, invocation_id: str, body: RunsEnded) -> EndNoted:
    """For engines that are started over HTTP and not asked how runs end. The first report counts."""
    await report_end(gateway, invocation_id, bearer(request), body.state, body.error or "")
    return EndNoted(status="noted")
