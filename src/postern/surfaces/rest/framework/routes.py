"""Which operation is meant by a path and a method."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

Handler = Callable[[Request], Awaitable[Response]]


class WholePath(Route):
    """All methods of a path. The first path that matches answers, or refuses the method: else `GET /webhooks/many` would
    be a webhook with the id "many", and a refusal would name methods that are another path's."""

    def __init__(self, path: str, by_method: dict[str, Handler]) -> None:
        async def handle(request: Request) -> Response:
            return await by_method["GET" if request.method == "HEAD" else request.method](request)

        super().__init__(path, handle, methods=list(by_method))

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        return (Match.NONE if match is Match.NONE else Match.FULL), child
