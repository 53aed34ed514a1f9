"""The yardstick: the gateway's own server and the bare ASGI interface in front of it, answering a constant. ``PORT`` as argument."""

import sys
from typing import Any

import uvloop

from postern.core import answer as say
from postern.surfaces.ingress import respond
from postern.surfaces.server import listen, serve

ANSWER = say.accepted("inv_019aa0b1c2d37e4f8a9b0c1d2e3f4a5b")


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    await respond(send, ANSWER)


if __name__ == "__main__":
    with listen("127.0.0.1", int(sys.argv[1])) as listener:
        uvloop.run(serve(app, listener, 30, lambda: None, lambda: 0))
