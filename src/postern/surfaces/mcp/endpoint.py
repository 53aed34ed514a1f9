"""The endpoint /mcp. It checks the API key before it loads or reads anything else."""

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from postern.core.problems import Refused
from postern.extras import missing
from postern.surfaces.mcp import load_sdk
from postern.surfaces.rest.framework.problems import problem_response
from postern.surfaces.session import ACTOR, bearer
from postern.usecases.access.accounts import actor_of_key
from postern.usecases.runtime.gateway import Gateway

PATH = "/mcp"


class McpEndpoint:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._server: Any = None
        self._opening = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        try:
            if request.method != "POST":
                raise Refused(
                    "method_not_allowed",
                    "MCP is spoken with POST here: nothing is kept between two requests.",
                )
            if not (key := bearer(request)):
                raise Refused("not_authenticated", "Send an API key as Authorization: Bearer pk_….")
            if sentence := missing("mcp", "The Model Context Protocol"):
                raise Refused("not_found", sentence)
            scope[ACTOR] = await actor_of_key(self._gateway, key)
        except Refused as refused:
            response = problem_response(refused)
            if refused.code == "method_not_allowed":
                response.headers["allow"] = "POST"
            await response(scope, receive, send)
            return
        async with self._opening:
            if self._server is None:
                # In a thread: the import takes a second, and calls must not wait for it.
                sdk = await asyncio.to_thread(load_sdk)
                self._server = sdk.make_server(self._gateway, lambda context: context.request.scope[ACTOR])
                self._serve, self._security = sdk.serve_http, sdk.security_for(self._gateway.site.base_url)
        await self._serve(
            self._server, self._security, {**scope, "path": PATH, "raw_path": PATH.encode()}, receive, send
        )
