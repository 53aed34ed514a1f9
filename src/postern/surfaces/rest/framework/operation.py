"""One row per operation: who may, what may be refused, what is answered. The description at /docs is made
from the same rows.

What an operation is asked with is what its function takes: the parts of its path by their names, ``query`` and
``body`` as the type they are declared with, the headers of ``HEADERS``. What it answers is what its function
returns.
"""

import re
from collections.abc import Awaitable, Callable, Coroutine
from inspect import cleandoc
from typing import Annotated, Any, get_type_hints

from msgspec import Struct
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from postern.core.access.accounts import Actor, Level
from postern.core.problems import FieldError, Refused
from postern.surfaces.leaving import while_connected
from postern.surfaces.rest.framework.bodies import LARGEST_BODY, LARGEST_BODY_OF_STRANGERS, read_json
from postern.usecases.access.idempotency import KeptAnswer, once
from postern.usecases.answers import Schema, as_json
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.shapes import Shape, field_errors

PREFIX = "/api/v1"
JSON = "application/json"

_ID = re.compile(r"[A-Za-z0-9_.-]{1,80}")

Endpoint = Callable[..., Coroutine[Any, Any, Any]]
Check = Callable[[Gateway, Request], Awaitable[None]]
Arguments = dict[str, Any]


class Header(Struct, frozen=True):
    name: str
    wrong: str
    """The problem of a value that does not match."""
    description: str
    schema: Schema
    matches: re.Pattern[str]

    def read(self, request: Request) -> str | None:
        value = request.headers.get(self.name.lower())
        if value is not None and not self.matches.fullmatch(value):
            raise Refused("invalid_request", errors=[FieldError(self.name, self.wrong)])
        return value


HEADERS = {
    "if_match": Header(
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
        {"anyOf": [{"type": "string", "pattern": "^inv_[0-9a-f]{32}$"}, {"type": "null"}]},
        re.compile("inv_[0-9a-f]{32}"),
    ),
}
"""By the name of the argument."""
IDEMPOTENCY_KEY = Header(
    "Idempotency-Key",
    "has 1 to 200 printable ASCII characters",
    "A text of your choice. The same request with the same key within 24 hours is answered the same and makes nothing twice.",
    {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[\\x20-\\x7e]*$"},
    re.compile(r"[\x20-\x7e]{1,200}"),
)


_CURSOR = "^[a-z]{2,4}_[0-9a-f]{32}$"
INVOCATION_ID = "^inv_[0-9a-f]{32}$"


def _is_a_cursor(value: str) -> str:
    if not re.fullmatch(_CURSOR, value):
        raise ValueError("is not a cursor of this list")
    return value


# A page goes on where the last one ended: an id is all that takes, and callers need not know.
Cursor = Annotated[
    Annotated[str, AfterValidator(_is_a_cursor), Field(json_schema_extra={"pattern": _CURSOR})] | None,
    Field(description="nextCursor of the page before."),
]
Limit = Annotated[int, Field(ge=1, le=200, description="How many at most.")]
Text = Annotated[str, Field(max_length=80)]


class OnePage(Shape):
    limit: Limit = 50
    cursor: Cursor = None


class Operation(Struct, frozen=True):
    tag: str
    method: str
    path: str
    title: str
    level: Level | None
    """None: there is no access level for it; ``check`` says who may, or everybody may."""
    endpoint: Endpoint
    takes: Arguments
    """The types of the function's arguments."""
    answers: Any
    """The type of the answer; None where it has no body."""
    status: int = 200
    refuses: tuple[str, ...] = ()
    """The codes beyond those that follow from the row itself."""
    idempotent: bool = False
    versioned: bool = False
    """The answer's version is its ETag."""
    place: str = ""
    """Of what is made: the path that its id is found under."""
    media_type: str = JSON
    body_example: Any = None
    body_schema: dict[str, Schema] | None = None
    """By media type, where the type of ``body`` does not say it."""
    security: list[dict[str, list[str]]] | None = None
    check: Check | None = None
    """Asked before the body is read."""
    largest_body: int = LARGEST_BODY
    may_take_long: Callable[[Any], bool] | None = None
    """Whether this query may: it is then given up when the client leaves."""

    @property
    def id(self) -> str:
        return self.endpoint.__name__.replace("_", "-")

    @property
    def description(self) -> str:
        paragraphs = cleandoc(self.endpoint.__doc__ or "").split("\n\n")
        return "\n\n".join(" ".join(one.split()) for one in paragraphs)

    @property
    def query(self) -> type[Shape] | None:
        return self.takes.get("query")

    @property
    def headers(self) -> list[Header]:
        taken = [header for name, header in HEADERS.items() if name in self.takes]
        return [*taken, IDEMPOTENCY_KEY] if self.idempotent else taken


class Rows:
    """The operations of a topic."""

    def __init__(self, tag: str) -> None:
        self.operations: list[Operation] = []
        self._tag = tag

    def __call__(
        self, method: str, path: str, title: str, *, level: Level | None, answers: Any = ..., **how: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """``answers`` only where the function makes the response itself; see ``Operation`` for that and the rest."""

        def enter(endpoint: Endpoint) -> Endpoint:
            takes = get_type_hints(endpoint)
            returned = takes.pop("return")
            body = _body_type(returned if answers is ... else answers)
            one = Operation(self._tag, method, PREFIX + path, title, level, endpoint, takes, body, **how)
            self.operations.append(one)
            return endpoint

        return enter


def _body_type(answers: Any) -> Any:
    return None if answers is type(None) else answers


def handler(
    gateway: Gateway, operation: Operation, who: Callable[[Gateway, Request], Awaitable[Actor]]
) -> Callable[[Request], Awaitable[Response]]:
    """Checked in this order, so that a stranger learns as little as possible: who are you, may you, is the path one of ours, are the
    parameters known, is the body JSON, is it right. Only then does the use case run."""
    query = TypeAdapter(operation.query) if operation.query is not None else None
    known = {field.alias for field in operation.query.model_fields.values()} if operation.query else set()
    body = TypeAdapter(operation.takes["body"]) if "body" in operation.takes else None
    for_everybody = operation.level is None and operation.check is None
    largest = LARGEST_BODY_OF_STRANGERS if for_everybody else operation.largest_body

    async def handle(request: Request) -> Response:
        given: Arguments = {"gateway": gateway, "request": request, **request.path_params}
        if operation.level is not None:
            given["actor"] = await who(gateway, request)
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
            given["body"] = _valid(operation.takes["body"], body.validate_json, text, strict=True)
        if query is not None:
            given["query"] = _valid(None, query.validate_python, dict(request.query_params))
        given |= {name: header.read(request) for name, header in HEADERS.items() if name in operation.takes}
        asked = {name: given[name] for name in operation.takes}

        async def answered() -> Response:
            work = operation.endpoint(**asked)
            if operation.may_take_long is not None and operation.may_take_long(given["query"]):
                return _response(operation, await while_connected(request, work))
            return _response(operation, await work)

        key = IDEMPOTENCY_KEY.read(request) if operation.idempotent else None
        if key is None:
            return await answered()
        target = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
        whole = b"\0".join([operation.endpoint.__name__.encode(), target.encode(), text])
        return await _once(gateway, given["actor"], key, whole, answered)

    return handle


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
    if errors:
        raise Refused("invalid_request", errors=errors)


def _valid(asked: Any, validate: Callable[..., Any], given: object, **how: bool) -> Any:
    try:
        return validate(given, **how)
    except ValidationError as error:
        raise Refused("invalid_request", errors=field_errors(error, asked)) from None


def _response(operation: Operation, answer: Any) -> Response:
    if isinstance(answer, Response):
        return answer
    if answer is None:
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
