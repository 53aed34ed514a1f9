"""Listeners over HTTP: who is there, being one, being given calls and saying what came of them."""

from starlette.requests import Request

from postern.core.access.accounts import Actor
from postern.surfaces.rest.framework.operation import Rows, Text
from postern.surfaces.session import address_of
from postern.usecases.answers import Listing, whole
from postern.usecases.history.views.calls import LocalRun
from postern.usecases.listeners import listeners
from postern.usecases.listeners.views import Entered, HandedCalls, Listener, Taken
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import Shape

row = Rows("Listeners")


class ReplayToListener(Shape):
    invocation_id: Text


@row("GET", "/listeners", "List who listens", level="read")
async def list_listeners(gateway: Gateway, actor: Actor) -> Listing[Listener]:
    """Each `postern listen` that is connected now, the oldest first."""
    return whole(await listeners.listing(gateway, actor))


@row(
    "POST", "/listeners", "Be there as a listener", level="read", status=201, place="listeners",
    refuses=("conflict", "not_found", "rate_limited"), body_example={"name": "ada@thinkpad"},
)  # fmt: skip
async def enter_listener(
    gateway: Gateway, request: Request, actor: Actor, body: listeners.EnterRequest
) -> Entered:
    """For as long as it goes on asking for calls. With `answers` it answers the calls of that webhook in the place of
    the workflow, which needs the access level write; one listener at a time can."""
    return await listeners.enter(gateway, actor, body, address_of(request) if request.client else "")


@row(
    "POST", "/listeners/{listener_id}/calls", "Ask for calls", level="read", refuses=("conflict",),
    body_example={"known": [], "waitSeconds": 4},
)  # fmt: skip
async def ask_for_calls(
    gateway: Gateway, actor: Actor, listener_id: str, body: listeners.AskRequest
) -> HandedCalls:
    """What was handed to the listener and is not among those it says it knows. Where there is nothing, the answer comes
    when there is, or after a moment."""
    return await listeners.ask(gateway, actor, listener_id, body)


@row(
    "POST", "/listeners/{listener_id}/calls/{handed_id}", "Answer a call as a listener", level="read", refuses=("conflict",),
    body_example={"status": 200, "headers": [["Content-Type", "text/plain"]], "bodyBase64": "b2s=", "ms": 12.5},
)  # fmt: skip
async def answer_call(
    gateway: Gateway, actor: Actor, listener_id: str, handed_id: str, body: listeners.LocalAnswer
) -> Taken:
    """What the listener's program answered. A caller who waits hears it, under the rules for a workflow's answer; that needs the access level write."""
    return await listeners.answer(gateway, actor, listener_id, handed_id, body)


@row(
    "POST",
    "/listeners/{listener_id}/replays",
    "Replay a call to a listener",
    level="write",
    refuses=("conflict",),
)
async def replay_to_listener(
    gateway: Gateway, actor: Actor, listener_id: str, body: ReplayToListener
) -> LocalRun:
    """No workflow is started. How its program answered stands at the call, under `localRuns`."""
    return await listeners.replay(gateway, actor, listener_id, body.invocation_id)


@row("DELETE", "/listeners/{listener_id}", "End a listener", level="read", status=204)
async def end_listener(gateway: Gateway, actor: Actor, listener_id: str) -> None:
    """From now on the engine is given its webhook's calls again. Somebody else's needs the access level write."""
    await listeners.end(gateway, actor, listener_id)
