"""The yardstick: the gateway's own server answering a constant, in both of its ways. ``PORT`` as argument."""

import socket
import sys
from functools import partial
from typing import Any, cast

import uvloop

from postern.core import answer as answers
from postern.surfaces.http.app_exchange import AppExchange, AppTurns
from postern.surfaces.http.call_exchange import CallExchange
from postern.surfaces.http.server import listen, serve
from postern.usecases.calls.intake import IncomingCall, Intake

ANSWER = answers.stored("accepted", "inv_019aa0b1c2d37e4f8a9b0c1d2e3f4a5b")


class ConstantCall(IncomingCall):
    """Reads the call whole, as the gateway does, and looks at nothing."""

    def head(self, *_: Any, **__: Any) -> None: ...

    def piece(self, piece: bytes) -> bool:
        return True

    def end(self) -> None:
        self._answer(ANSWER)


class Constant(CallExchange):
    makes = ConstantCall


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    headers = [*ANSWER.headers, (b"content-length", str(len(ANSWER.body)).encode())]
    await send({"type": "http.response.start", "status": ANSWER.status, "headers": headers})
    await send({"type": "http.response.body", "body": ANSWER.body})


async def _serve(listener: socket.socket) -> None:
    pages = partial(AppExchange, app, AppTurns())
    await serve(partial(Constant, cast(Intake, None)), pages, listener, 30, False, lambda: None, lambda: 0)


if __name__ == "__main__":
    with listen("127.0.0.1", int(sys.argv[1])) as listener:
        uvloop.run(_serve(listener))
