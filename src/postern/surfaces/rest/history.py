"""Invocations over HTTP: what was called, why it was judged so, and having it happen again."""

from typing import Annotated, Any, Literal

from fastapi import Body, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse

from postern.core.deliveries.delivery import FIELD_NAMES
from postern.core.history.invocation import Status
from postern.surfaces.leaving import while_connected
from postern.surfaces.rest import history_shapes, shapes, signature_shapes
from postern.surfaces.rest.pages import Cursor, Limit, one_page
from postern.surfaces.rest.table import Asking, Table
from postern.usecases.calls import readmission
from postern.usecases.calls.respond import delivery_of_token, respond
from postern.usecases.history import history, volumes
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.signatures import signatures

Text = Annotated[str | None, Query(max_length=80)]
FieldPath = Annotated[
    str | None, Query(max_length=1000, description="A field path, like customer.email or items[0].sku.")
]
Moment = Annotated[
    str | None,
    Query(max_length=40, description="ISO 8601, or seconds since 1970.", examples=["2026-11-21T09:00:00Z"]),
]


def _response_token(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token if scheme.lower() == "bearer" else ""


async def _holds_response_token(gateway: Gateway, request: Request) -> None:
    await delivery_of_token(gateway, request.path_params["invocation_id"], _response_token(request))


def history_rows(table: Table, gateway: Gateway) -> None:
    row = table.of("History", "/invocations").row

    @row(
        "GET", "", "List invocations", level="read", answers=shapes.Listing[history_shapes.InvocationSummary]
    )
    async def list_invocations(
        request: Request,
        actor: Asking,
        webhook_id: Annotated[Text, Query(alias="webhookId")] = None,
        status: Annotated[Status | None, Query()] = None,
        code: Text = None,
        since: Moment = None,
        until: Moment = None,
        search: Annotated[
            str | None, Query(max_length=200, description="Text in the body, the headers or the query.")
        ] = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Any:
        wanted = history.filter_of(
            webhook_id=webhook_id, status=status, code=code, since=since, until=until, search=search
        )
        looking = history.listing(gateway, actor, wanted, limit, cursor)
        page = await (while_connected(request, looking) if search else looking)
        return one_page(page)

    @row("GET", "/{invocation_id}", "Show an invocation", level="read", answers=history_shapes.Invocation)
    async def show_invocation(actor: Asking, invocation_id: str) -> Any:
        """Headers masked, payload, verdict with its trace, deliveries with their attempts."""
        return JSONResponse(await history.show(gateway, actor, invocation_id))

    @row(
        "GET", "/{invocation_id}/curl", "Show an invocation as a curl command",
        level="read", answers={"type": "string"}, media_type="text/plain; charset=utf-8",
    )  # fmt: skip
    async def show_invocation_as_curl(actor: Asking, invocation_id: str) -> Any:
        """With placeholders where the secrets were."""
        return PlainTextResponse(await history.as_curl(gateway, actor, invocation_id))

    @row(
        "GET", "/{invocation_id}/preview", "Try a field mapping", level="read", answers=history_shapes.Preview
    )
    async def preview_mapping(
        actor: Asking,
        invocation_id: str,
        one: Annotated[FieldPath, Query(alias="fieldOne")] = None,
        two: Annotated[FieldPath, Query(alias="fieldTwo")] = None,
        three: Annotated[FieldPath, Query(alias="fieldThree")] = None,
        four: Annotated[FieldPath, Query(alias="fieldFour")] = None,
    ) -> Any:
        """What these field paths would take out of the recorded call; null where there is nothing. Nothing is
        changed."""
        paths = {name: path for name, path in zip(FIELD_NAMES, (one, two, three, four), strict=True) if path}
        return JSONResponse(await history.preview(gateway, actor, invocation_id, paths))

    @row(
        "POST", "/{invocation_id}/replay", "Replay an invocation",
        level="write", status=202, answers=history_shapes.Replayed, refuses=("conflict",), idempotent=True,
    )  # fmt: skip
    async def replay_invocation(
        actor: Asking,
        invocation_id: str,
        fields: Annotated[
            history.Values,
            Query(description="The four values as the mapping finds them now, or as they were recorded."),
        ] = "current",
    ) -> Any:
        """Starts the workflow again with the recorded payload. A call that was never started is refused, and
        the problem's detail says what to do instead."""
        return JSONResponse(await history.replay(gateway, actor, invocation_id, fields), 202)

    @row(
        "POST", "/{invocation_id}/response", "Answer the waiting caller",
        level=None, answers=history_shapes.Answered, refuses=("not_authenticated", "gone"),
        extra={"security": [{"responseToken": []}]}, door=_holds_response_token,
    )  # fmt: skip
    async def answer_invocation(
        request: Request, invocation_id: str, said: Annotated[history_shapes.ResponseAction, Body()]
    ) -> Any:
        """The response action's door. The first answer in time wins."""
        await respond(gateway, invocation_id, _response_token(request), said.status, said.headers, said.body)
        return JSONResponse({"status": "answered"})

    @row(
        "GET",
        "/{invocation_id}/explanation",
        "Explain a verdict",
        level="read",
        answers=signature_shapes.SignatureExplanation | signature_shapes.Explanation,
    )
    async def explain_invocation(actor: Asking, invocation_id: str) -> Any:
        """Why the call was judged so and what would fix it, checked against its webhook's present
        settings."""
        return JSONResponse(await signatures.explain(gateway, actor, invocation_id))

    more = table.of("History").row

    @more(
        "POST",
        "/readmissions",
        "Admit rejected calls that pass now",
        level="write",
        answers=history_shapes.Admitted,
        refuses=("not_found",),
    )
    async def admit_invocations(actor: Asking, request: history_shapes.AdmitRequest) -> Any:
        """Starts those of them that the present settings let in. What has been started meanwhile is left
        alone."""
        return JSONResponse(await readmission.admit(gateway, actor, request.invocation_ids))

    @more("GET", "/volumes", "Count calls over time", level="read", answers=history_shapes.Chart)
    async def show_volumes(
        actor: Asking,
        webhook_id: Annotated[str | None, Query(alias="webhookId", max_length=80)] = None,
        span: Annotated[Literal["hour", "day", "week", "month"], Query(alias="range")] = "day",
    ) -> Any:
        return JSONResponse(await volumes.chart(gateway, actor, webhook_id or None, span))
