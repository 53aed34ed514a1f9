"""Listeners over HTTP: listing and ending them, entering as one, taking calls and answering them."""

from starlette.requests import Request

from postern.core.access.accounts import Actor
from postern.surfaces.rest.framework.operation import Rows, ShortText
from postern.surfaces.session import address_of
from postern.usecases.listeners import listeners
from postern.usecases.listeners.views import Entered
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import Shape

row = Rows("Listeners")


class ReplayToListener(Shape):
    invocation_id: ShortText


row.of(listeners.listing, "list_listeners", "GET", "/listeners", "List who listens")


@row(
    "POST", "/listeners", "Be there as a listener",
    level="read", status=201, place="listeners", refuses=("rate_limited",),
    body_example={"name": "ada@thinkpad"},
)  # fmt: skip
async def enter_listener(
    gateway: Gateway, request: Request, actor: Actor, body: listeners.EnterRequest
) -> Entered:
    """The listener is there as long as it goes on asking for calls."""
    return await listeners.enter(gateway, actor, body, address_of(request) if request.client else "")


row.of(
    listeners.ask, "ask_for_calls", "POST", "/listeners/{listener_id}/calls", "Ask for calls",
    level="read", refuses=("conflict",), body_example={"known": [], "waitSeconds": 4},
)  # fmt: skip
row.of(
    listeners.answer, "answer_call", "POST", "/listeners/{listener_id}/calls/{handed_id}",
    "Tell how a listener's program answered", level="read", refuses=("conflict",),
    body_example={"status": 200, "ms": 12.5},
)  # fmt: skip
row.of(
    listeners.replay, "replay_to_listener", "POST", "/listeners/{listener_id}/replays", "Replay a call to a listener",
    body=ReplayToListener, refuses=("conflict",),
)  # fmt: skip
row.of(
    listeners.end, "end_listener", "DELETE", "/listeners/{listener_id}", "End a listener",
    level="read", status=204,
)  # fmt: skip
