"""The yardstick: the gateway's own server answering a constant, in both of its ways. ``PORT`` as argument."""

import sys
from functools import partial
from typing import Any, cast

import uvloop

from postern.core import answer as say
from postern.core.calls.call import Headers
from postern.surfaces.http.exchange import Exchange
from postern.surfaces.http.ingress import Ingress
from postern.surfaces.http.server import listen, serve

ANSWER = say.accepted("inv_019aa0b1c2d37e4f8a9b0c1d2e3f4a5b")


class Constant(Exchange):
    """Reads the call whole, as the gateway does, and looks at nothing."""

    def head(self, method: str, path: bytes, query: bytes, headers: Headers, peer: str | None) -> None: ...

    def body(self, piece: bytes) -> None: ...

    def end(self) -> None:
        self.answer(ANSWER)


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    headers = [*ANSWER.headers, (b"content-length", str(len(ANSWER.body)).encode())]
    await send({"type": "http.response.start", "status": ANSWER.status, "headers": headers})
    await send({"type": "http.response.body", "body": ANSWER.body})


if __name__ == "__main__":
    with listen("127.0.0.1", int(sys.argv[1])) as listener:
        uvloop.run(
            serve(partial(Constant, cast(Ingress, None)), app, listener, 30, False, lambda: None, lambda: 0)
        )
