"""The operations of the API, a row for each: who may use it, its problems, its answer. The document at /docs is
made from the same rows.

An operation runs a use case, or a function here that calls one. Its arguments are found by their names: the
parts of the path, the version from If-Match, the fields of the query and of the body, or these two whole.
"""

import re
from collections.abc import Awaitable, Callable, Coroutine
from inspect import cleandoc, signature
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from msgspec import Struct
from pydantic import Field, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from postern.core.access.accounts import Level
from postern.core.problems import FieldError, Refused, invalid, refuse_wrong
from postern.observe.changes import may_have_changed
from postern.surfaces.rest.framework.bodies import (
    LARGEST_BODY,
    LARGEST_BODY_OF_STRANGERS,
    read_bytes,
    read_json,
)
from postern.surfaces.session import actor_of
from postern.surfaces.streaming import while_connected
from postern.usecases.access.idempotency import KeptAnswer, once
from postern.usecases.answers import Listing, Schema, as_json, whole
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.shapes import Shape, field_errors
from postern.usecases.webhooks import webhooks

PREFIX = "/api/v1"
JSON = "application/json"

_ID = re.compile(r"[A-Za-z0-9_.-]{1,80}")

Endpoint = Callable[..., Coroutine[Any, Any, Any]]
BodyCheck = Callable[[Gateway, Request], Awaitable[None]]
Arguments = dict[str, Any]


class Header(Struct, frozen=True):
    name: str
    wrong: str
    """The error for a value that does not match."""
    description: str
    schema: Schema
    matches: re.Pattern[str]

    def read(self, request: Request) -> str | None:
        value = request.headers.get(self.name.lower())
        if value is not None and not self.matches.fullmatch(value):
            raise invalid(self.name, self.wrong)
        return value


INVOCATION_ID = "^inv_[0-9a-f]{32}$"

HEADERS = {
    "seen_version": Header(
        "If-Match",
        "has at most 1000 characters",
        'The ETag that was read, like "3", or *: refused with 412 when it has changed meanwhile.',
        {"anyOf": [{"type": "string", "maxLength": 1000}, {"type": "null"}]},
        re.compile(".{0,1000}", re.DOTALL),
    ),
    "last_event_id": Header(
        "Last-Event-ID",
        "is not a cursor of this list",
        "The last event that was seen.",
        {"anyOf": [{"type": "string", "pattern": INVOCATION_ID}, {"type": "null"}]},
        re.compile("inv_[0-9a-f]{32}"),
    ),
}
"""The headers by the name of the argument that takes their value."""
IDEMPOTENCY_KEY = Header(
    "Idempotency-Key",
    "has 1 to 200 printable ASCII characters",
    "A text of your choice. The same request with the same key within 24 hours is answered the same and makes nothing twice.",
    {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[\\x20-\\x7e]*$"},
    re.compile(r"[\x20-\x7e]{1,200}"),
)


# A page goes on where the last one ended: an id is all that takes, and callers need not know.
Cursor = Annotated[
    Annotated[str, Field(pattern="^[a-z]{2,4}_[0-9a-f]{32}$")] | None,
    Field(description="nextCursor of the page before."),
]
Limit = Annotated[int, Field(ge=1, le=200, description="How many at most.")]
ShortText = Annotated[str, Field(max_length=80)]


class OnePage(Shape):
    limit: Limit = 50
    cursor: Cursor = None


class Operation(Struct, frozen=True):
    tag: str
    method: str
    path: str
    title: str
    level: Level | None
    """None: no access level is needed. ``check`` says who may, or everybody may."""
    name: str
    endpoint: Endpoint
    takes: dict[str, str]
    """The source of each argument: the name of a part of every request, or, like ``query.limit``, a field of
    one."""
    query: type[Shape] | None
    body: Any
    """The type of the body, or None if there is none."""
    answers: Any
    """The type of the answer, or None if it has no body."""
    status: int = 200
    refuses: tuple[str, ...] = ()
    """The problem codes that do not follow from the row itself."""
    idempotent: bool = False
    versioned: bool = False
    """The answer's version becomes its ETag."""
    place: str = ""
    """The path under which a new object is found by its id."""
    media_type: str = JSON
    body_example: Any = None
    body_schema: dict[str, Schema] | None = None
    """The schema by media type, if the type of ``body`` does not say it."""
    security: list[dict[str, list[str]]] | None = None
    check: BodyCheck | None = None
    """Called before the body is read."""
    largest_body: int = LARGEST_BODY
    may_take_long: Callable[[Any], bool] | None = None
    """Says whether this query may take long: it is then cancelled when the client leaves."""

    @property
    def id(self) -> str:
        return self.name.replace("_", "-")

    @property
    def description(self) -> str:
        paragraphs = cleandoc(self.endpoint.__doc__ or "").split("\n\n")
        return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)

    @property
    def headers(self) -> list[Header]:
        taken = [header for name, header in HEADERS.items() if name in self.takes]
        return [*taken, IDEMPOTENCY_KEY] if self.idempotent else taken

    async def run(self, given: Arguments) -> Any:
        """``given`` holds the gateway, the actor, the parts of the path and the other parts of the request."""
        arguments = {}
        for name, place in self.takes.items():
            whole_one, _, field = place.partition(".")
            arguments[name] = getattr(given[whole_one], field) if field else given[whole_one]
        answer = await self.endpoint(**arguments)
        return whole(answer) if isinstance(answer, list) else answer


class Rows:
    """The operations of a topic."""

    def __init__(self, tag: str) -> None:
        self.operations: list[Operation] = []
        self._tag = tag

    def __call__(self, method: str, path: str, title: str, **how: Any) -> Callable[[Endpoint], Endpoint]:
        """Decorates a function that is an operation; the options are those of ``of`` and of ``Operation``.
        ``answers`` is needed only if the function makes the response itself."""

        def enter(endpoint: Endpoint) -> Endpoint:
            self.of(endpoint, endpoint.__name__, method, path, title, **how)
            return endpoint

        return enter

    def of(
        self,
        endpoint: Endpoint,
        name: str,
        method: str,
        path: str,
        title: str,
        *,
        level: Any = ...,
        query: type[Shape] | None = None,
        body: Any = None,
        answers: Any = ...,
        **how: Any,
    ) -> None:
        """``level`` defaults to read for GET, and else to write. ``query`` and ``body`` are for functions that
        take their fields; each field must be taken."""
        if level is ...:
            level = "read" if method == "GET" else "write"
        hints = get_type_hints(endpoint)
        returned = hints.pop("return")
        query = query or hints.get("query")
        body = body or next(
            (kind for parameter, kind in hints.items() if parameter == "body" or _is_body(parameter, kind)),
            None,
        )
        places = {
            parameter: _place_of(parameter, kind, path, query, body) for parameter, kind in hints.items()
        }
        taken = {parameter: place for parameter, place in places.items() if place}
        for part, shape in (("query", query), ("body", body)):
            if part not in taken.values() and shape is not None:
                lost = [field for field in shape.model_fields if f"{part}.{field}" not in taken.values()]
                assert not lost, f"{name} does not take {lost}"
        signature(endpoint).bind(**taken)  # fails if a parameter without default is missing
        if answers is ...:
            answers = Page[get_args(returned)] if get_origin(returned) is list else returned
        if answers is type(None) or how.get("status") == 204:
            answers = None
        operation = Operation(
            self._tag, method, PREFIX + path, title, level, name, endpoint, taken, query, body, answers, **how
        )
        self.operations.append(operation)


Page: Any = Listing


def _is_body(name: str, kind: Any) -> bool:
    return name != "query" and isinstance(kind, type) and issubclass(kind, Shape)


def _place_of(name: str, kind: Any, path: str, query: type[Shape] | None, body: Any) -> str:
    """Returns an empty text for an argument that keeps its default."""
    if kind == body:
        return "body"
    if name in ("gateway", "actor", "request", "query", *HEADERS) or f"{{{name}}}" in path:
        return name
    if query is not None and name in query.model_fields:
        return f"query.{name}"
    return f"body.{name}" if name in getattr(body, "model_fields", ()) else ""


def handler(gateway: Gateway, operation: Operation) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of an operation.

    The checks have this order, so that a stranger learns as little as possible: the actor, the level, the path,
    the parameters, the body. Only then does the use case run.
    """
    query = TypeAdapter(operation.query) if operation.query is not None else None
    known = {field.alias for field in operation.query.model_fields.values()} if operation.query else set()
    body = TypeAdapter(operation.body) if operation.body is not None else None
    for_everybody = operation.level is None and operation.check is None
    largest = LARGEST_BODY_OF_STRANGERS if for_everybody else operation.largest_body

    async def handle(request: Request) -> Response:
        given: Arguments = {"gateway": gateway, "request": request, **request.path_params}
        if operation.level is not None:
            given["actor"] = await actor_of(gateway, request)
            require(given["actor"], operation.level)
        if not all(_ID.fullmatch(value) for value in request.path_params.values()):
            raise Refused("not_found")
        _check_query(request, known)
        if operation.check is not None:
            await operation.check(gateway, request)
        text = b""
        if body is not None:
            text = await read_json(request, largest)
            # Strictly: a number in quotes is refused, as the description says.
            given["body"] = _valid(operation.body, body.validate_json, text, strict=True)
        elif request.method != "GET" and (await read_bytes(request, largest)).strip() not in (b"", b"{}"):
            # Its fields would be passed over without a word, and more be done than was asked for.
            where = f"as parameters: {', '.join(sorted(map(str, known)))}" if known else "without"
            raise Refused("invalid_request", f"This takes no body. Ask {where}.")
        if query is not None:
            given["query"] = _valid(None, query.validate_python, dict(request.query_params))
        given |= {name: header.read(request) for name, header in HEADERS.items() if name in operation.takes}
        if "seen_version" in given:
            given["seen_version"] = await _version(given, given["seen_version"])

        may_have_changed.set(False)

        async def answered() -> Response:
            if operation.may_take_long is not None and operation.may_take_long(given["query"]):
                return _response(operation, await while_connected(request, operation.run(given)))
            return _response(operation, await operation.run(given))

        key = IDEMPOTENCY_KEY.read(request) if operation.idempotent else None
        if key is None:
            return await answered()
        target = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
        whole = b"\0".join([operation.name.encode(), target.encode(), text])
        return await _once(gateway, given["actor"], key, whole, answered)

    return handle


async def _version(given: Arguments, if_match: str | None) -> int | None:
    """Returns the version that If-Match requires, or None if any will do."""
    if if_match is None or if_match.strip() == "*":
        return None
    versions = [int(tag) for tag in re.findall(r'(?<!W/)"(\d{1,9})"', if_match)]
    if len(versions) == 1:
        return versions[0]
    present = (await webhooks.show(given["gateway"], given["actor"], given["webhook_id"])).version
    if present not in versions:
        raise Refused("version_conflict")
    return present


def _check_query(request: Request, known: set[str | None]) -> None:
    errors = []
    for name in request.query_params:
        values = request.query_params.getlist(name)
        if name not in known:
            errors.append(FieldError(name[:100], "is not a known parameter"))
        elif len(values) > 1:
            errors.append(FieldError(name, "is given more than once"))
        elif "\0" in values[0]:
            errors.append(FieldError(name, "holds a NUL character"))
    refuse_wrong(errors)


def _valid(model: Any, validate: Callable[..., Any], given: object, **how: bool) -> Any:
    try:
        return validate(given, **how)
    except ValidationError as error:
        raise Refused("invalid_request", errors=field_errors(error, model)) from None


def _response(operation: Operation, answer: Any) -> Response:
    if isinstance(answer, Response):
        return answer
    if operation.answers is None:
        return Response(status_code=operation.status)
    if isinstance(answer, str):
        return PlainTextResponse(answer, operation.status, media_type=operation.media_type)
    headers = {}
    if operation.versioned:
        headers["etag"] = f'"{answer.version}"'
    if operation.place:
        headers["location"] = f"{PREFIX}/{operation.place}/{answer.id}"
    return Response(as_json(answer), operation.status, headers, JSON)


async def _once(
    gateway: Gateway, actor: Any, key: str, request: bytes, answered: Callable[[], Awaitable[Response]]
) -> Response:
    async def work() -> KeptAnswer:
        response = await answered()
        kept = [
            (name, response.headers[name])
            for name in ("content-type", "location", "etag")
            if name in response.headers
        ]
        return response.status_code, kept, bytes(response.body)

    (status, headers, body), repeated = await once(gateway, actor, key, request, work)
    if repeated:
        headers = [*headers, ("idempotency-replayed", "true")]
    return Response(body, status, dict(headers))
