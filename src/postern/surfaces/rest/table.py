"""One row per operation: who may, what may be refused, what is answered. The description at /docs is made
from the same rows.

A row is checked in the order a stranger should be told: who are you, may you, is the path one of ours, are
the parameters known, is the body JSON, is it right. Only then does the use case run.
"""

import re
from collections.abc import Awaitable, Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from postern.core.access.accounts import Actor, Level
from postern.core.problems import PROBLEMS, FieldError, Refused
from postern.surfaces.rest.bodies import LARGEST_BODY, LARGEST_BODY_OF_STRANGERS, read_json
from postern.surfaces.rest.problems import MEDIA_TYPE
from postern.surfaces.session import SAFE, actor_of
from postern.usecases.access.idempotency import once
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.webhooks.configuration import field_errors

PREFIX = "/api/v1"

_ID = re.compile(r"[A-Za-z0-9_.-]{1,80}")
_KEY = re.compile(r"[\x20-\x7e]{1,200}")

Handle = Callable[[Request], Coroutine[Any, Any, Response]]
Door = Callable[[Gateway, Request], Awaitable[None]]


def _actor(request: Request) -> Actor:
    actor: Actor = request.state.actor
    return actor


Asking = Annotated[Actor, Depends(_actor)]
IfMatch = Annotated[
    str | None,
    Header(alias="If-Match", description='The ETag that was read, like "3", or *: refused with 412 when it has changed meanwhile.', max_length=1000),
]  # fmt: skip
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A text of your choice. The same request with the same key within 24 hours is answered the same and makes nothing twice.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[\\x20-\\x7e]*$"},
}


class Operation(APIRoute):
    door: Door | None = None
    """Asked before the body is read, where it is not an access level that says who may."""

    @property
    def extra(self) -> dict[str, Any]:
        return self.openapi_extra or {}

    def get_route_handler(self) -> Handle:
        handle = super().get_route_handler()
        needed = self.extra["x-access-level"]
        level: Level | None = None if needed == "none" else needed
        known = {field.alias for field in self.dependant.query_params}
        body: TypeAdapter[Any] | None = None
        if self.body_field is not None:
            shape: Any = self.body_field.field_info.annotation
            body = TypeAdapter(shape)
        idempotent = self.extra.get("x-idempotent", False)

        async def guarded(request: Request) -> Response:
            gateway: Gateway = request.app.state.gateway
            if level is not None:
                actor = request.state.actor = await actor_of(gateway, request)
                require(actor, level)
            if not all(_ID.fullmatch(value) for value in request.path_params.values()):
                raise Refused("not_found")
            _check_query(request, known)
            if self.door is not None:
                await self.door(gateway, request)
            if body is not None:
                known_to_us = level is not None or self.door is not None
                check_body(
                    body, await read_json(request, LARGEST_BODY if known_to_us else LARGEST_BODY_OF_STRANGERS)
                )
            key = request.headers.get("idempotency-key") if idempotent else None
            if key is None:
                return await handle(request)
            if not _KEY.fullmatch(key):
                raise Refused(
                    "invalid_request",
                    errors=[FieldError("Idempotency-Key", "has 1 to 200 printable ASCII characters")],
                )
            return await _once(gateway, request, key, handle, self.endpoint.__name__)

        return guarded


def check_body(shape: TypeAdapter[Any], text: bytes) -> None:
    """Strictly: a number that comes as a text is a mistake to be told of, as the description says."""
    try:
        shape.validate_json(text, strict=True)
    except ValidationError as error:
        raise Refused("invalid_request", errors=field_errors(error)) from None


def _check_query(request: Request, known: set[str]) -> None:
    errors = []
    for name in request.query_params:
        values = request.query_params.getlist(name)
        if name not in known:
            errors.append(FieldError(name[:100], "is not a known parameter"))
        elif len(values) > 1:
            errors.append(FieldError(name, "is given more than once"))
        elif "\0" in values[0]:
            errors.append(FieldError(name, "holds a NUL character"))
    if errors:
        raise Refused("invalid_request", errors=errors)


async def _once(gateway: Gateway, request: Request, key: str, handle: Handle, operation: str) -> Response:
    async def work() -> tuple[int, list[tuple[str, str]], bytes]:
        response = await handle(request)
        kept = [
            (name, response.headers[name])
            for name in ("content-type", "location", "etag")
            if name in response.headers
        ]
        return response.status_code, kept, bytes(response.body)

    asked = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
    said = b"\0".join([operation.encode(), asked.encode(), await request.body()])
    (status, headers, body), repeated = await once(gateway, request.state.actor, key, said, work)
    if repeated:
        headers = [*headers, ("idempotency-replayed", "true")]
    return Response(body, status, dict(headers))


Endpoint = Callable[..., Any]


class Table:
    def __init__(self, app: FastAPI, path: str = PREFIX, tag: str = "") -> None:
        self._app = app
        self._path = path
        self._tag = tag

    def of(self, tag: str, path: str = "") -> "Table":
        return Table(self._app, self._path + path, tag)

    def row(
        self,
        method: str,
        path: str,
        title: str,
        *,
        level: Level | None,
        answers: Any = None,
        status: int = 200,
        refuses: tuple[str, ...] = (),
        idempotent: bool = False,
        versioned: bool = False,
        media_type: str = "application/json",
        example: Any = None,
        extra: dict[str, Any] | None = None,
        door: Door | None = None,
    ) -> Callable[[Endpoint], Endpoint]:
        """``refuses``: the codes beyond those that follow from the row itself."""

        def enter(endpoint: Endpoint) -> Endpoint:
            openapi: dict[str, Any] = {"x-access-level": level or "none", **(extra or {})}
            if level is None:
                openapi["security"] = (extra or {}).get("security", [])
            if idempotent:
                openapi |= {"x-idempotent": True, "parameters": [IDEMPOTENCY_KEY]}
            self._app.router.add_api_route(
                self._path + path,
                endpoint,
                methods=[method],
                summary=title,
                operation_id=endpoint.__name__.replace("_", "-"),
                tags=[self._tag],
                status_code=status,
                response_class=JSONResponse,
                response_model=None,
                responses={status: _answer(answers, status, media_type, versioned, example)},
                openapi_extra=openapi,
                route_class_override=Operation,
            )
            route = self._app.router.routes[-1]
            assert isinstance(route, Operation)
            route.door = door
            route.responses |= _problems(_codes(route, method, level, idempotent, refuses))
            return endpoint

        return enter


def _codes(
    route: Operation, method: str, level: Level | None, idempotent: bool, more: tuple[str, ...]
) -> set[str]:
    """What follows from a row: whoever has to sign in can be refused, and so on."""
    codes = {"invalid_request", "temporarily_unavailable", *more}
    if level is not None:
        codes |= {"not_authenticated"}
        if level != "read" or method not in SAFE:
            codes |= {"access_denied"}
    if "{" in route.path:
        codes |= {"not_found"}
    if route.body_field is not None:
        codes |= {"malformed_json", "payload_not_an_object", "payload_too_large", "unsupported_media_type"}
    if any(field.alias == "If-Match" for field in route.dependant.header_params):
        codes |= {"version_conflict"}
    if idempotent:
        codes |= {"idempotency_mismatch", "conflict"}
    return codes


def _answer(shape: Any, status: int, media_type: str, versioned: bool, example: Any) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "description": {201: "Made.", 202: "Begun.", 204: "Done."}.get(status, "As asked.")
    }
    headers: dict[str, Any] = {}
    if status == 201:
        headers["Location"] = {"description": "Where it is now.", "schema": {"type": "string"}}
    if versioned:
        headers["ETag"] = {"description": "The version, for If-Match.", "schema": {"type": "string"}}
    if headers:
        answer["headers"] = headers
    if isinstance(shape, dict):
        answer["content"] = {media_type: {"schema": shape}}
    elif shape is not None:
        answer["model"] = shape
    if example is not None:
        answer.setdefault("content", {}).setdefault(media_type, {})["example"] = example
    return answer


def _problems(codes: set[str]) -> dict[int | str, dict[str, Any]]:
    by_status: dict[int | str, list[str]] = {}
    for code in sorted(codes):
        by_status.setdefault(PROBLEMS[code].status, []).append(code)
    return {
        status: {
            "description": " / ".join(PROBLEMS[code].title for code in codes),
            "content": {
                MEDIA_TYPE: {
                    "schema": {"$ref": "#/components/schemas/Problem"},
                    "examples": {code: {"value": _example(code)} for code in codes},
                }
            },
        }
        for status, codes in by_status.items()
    }


def _example(code: str) -> dict[str, Any]:
    problem = PROBLEMS[code]
    document: dict[str, Any] = {
        "type": f"/problems/{code}", "title": problem.title, "status": problem.status, "detail": problem.help, "code": code
    }  # fmt: skip
    if code == "invalid_request":
        document["errors"] = [{"field": "authentication.headerName", "message": "Host is reserved"}]
    return document
