"""The API's OpenAPI 3.1 document, made from the table, and a page that shows it and loads nothing from
elsewhere."""

import re
from collections.abc import Sequence
from pathlib import Path
from types import UnionType
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from postern.core.problems import PROBLEMS, FieldError, Refused
from postern.surfaces.rest.framework.operation import JSON, Operation
from postern.surfaces.rest.framework.problems import MEDIA_TYPE, Problem, problem_of
from postern.surfaces.session import SAFE
from postern.surfaces.static_files import content_of, file_response
from postern.usecases.answers import Schema, as_json, schemas
from postern.usecases.webhooks.requests import WebhookRequest

REFERENCE = "#/components/schemas/{model}"

VENDOR = Path(__file__).parents[2] / "console" / "static" / "vendor"
ASSETS = ("swagger-ui.js", "swagger-ui.css")

START = """
SwaggerUIBundle({url: "/api/v1/openapi.json", dom_id: "#api", deepLinking: true, validatorUrl: null});
"""
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Postern API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
<main id="api"><h1>Postern API</h1><p>The description is at <a href="/api/v1/openapi.json">/api/v1/openapi.json</a>.</p></main>
<script src="/docs/swagger-ui.js"></script>
<script src="/docs/start.js"></script>
</html>
"""
# Swagger UI shows images as data; scripts and styles come from here alone.
POLICY = "default-src 'self'; style-src 'self'; img-src 'self' data:; frame-ancestors 'none'"

DESCRIPTION = """Manages webhooks, reads their history, replays calls.

Send an API key as `Authorization: Bearer pk_…`; a signed-in console session works too. Times are ISO 8601 in UTC.
Errors are problem documents (RFC 9457) with a stable `code`. Lists are newest first, a page at a time.
"""

SECURITY = {
    "apiKey": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key with an access level: read, write or admin.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "postern_session",
        "description": "A signed-in browser.",
    },
    "responseToken": {
        "type": "http",
        "scheme": "bearer",
        "description": "The one-time token a workflow was given to answer with.",
    },
}


def description(operations: Sequence[Operation]) -> Schema:
    answers: dict[Any, Schema] = {kind: {} for operation in operations for kind in answer_types(operation)}
    roots, components = schemas([Problem, *answers], REFERENCE.format(model="{name}"))
    answers |= dict(zip([Problem, *answers], roots, strict=True))
    bodies: dict[Any, Schema] = {operation.body: {} for operation in operations if operation.body is not None}
    models = [kind for kind in bodies if isinstance(kind, type) and issubclass(kind, BaseModel)]
    references, whole = models_json_schema(
        [(model, "validation") for model in models], ref_template=REFERENCE
    )
    bodies |= {model: references[model, "validation"] for model in models}
    components = _as_makers_of_clients_read_it(components | whole["$defs"])
    for name, component in components.items():
        component["title"] = name
    request = WebhookRequest.model_json_schema(ref_template=REFERENCE)
    patch = patch_schema(request, request.pop("$defs", {}))
    paths: dict[str, Schema] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(
            operation, answers, bodies
        )
    return {
        "openapi": "3.1.0",
        "info": {"title": "Postern", "description": DESCRIPTION, "version": "1"},
        "servers": [{"url": "/"}],
        "security": [{"apiKey": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": components | {"WebhookPatch": patch | {"title": "WebhookPatch"}},
            "securitySchemes": SECURITY,
        },
    }


def _as_makers_of_clients_read_it(schema: Any) -> Any:
    """Removes what client generators misread: a default of null, which they take for a value that is always
    there, and `items: false`, which the number of items says already."""
    if isinstance(schema, dict):
        unread = [("default", None), ("items", False)]
        kept = {name: member for name, member in schema.items() if (name, member) not in unread}
        return {name: _as_makers_of_clients_read_it(member) for name, member in kept.items()}
    return (
        [_as_makers_of_clients_read_it(member) for member in schema] if isinstance(schema, list) else schema
    )


def answer_types(operation: Operation) -> tuple[Any, ...]:
    """Returns the types of the answer. Some operations have several."""
    answers = operation.answers
    return (
        get_args(answers) if isinstance(answers, UnionType) else () if answers in (None, str) else (answers,)
    )


def _operation(operation: Operation, answers: dict[Any, Schema], bodies: dict[Any, Schema]) -> Schema:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", operation.path)
    ]
    described: Schema = {
        "tags": [operation.tag],
        "summary": operation.title,
        "description": operation.description,
        "operationId": operation.id,
        "parameters": [*in_path, *_query_parameters(operation), *_headers(operation)],
        "requestBody": _request_body(operation, bodies),
        "responses": {
            str(operation.status): _answer(operation, answers),
            **_problems(problem_codes(operation)),
        },
        "security": [] if operation.level is None and operation.security is None else operation.security,
        "x-access-level": operation.level or "none",
        "x-idempotent": operation.idempotent or None,
    }
    return {
        name: value
        for name, value in described.items()
        if value or (name == "security" and value is not None)
    }


def _query_parameters(operation: Operation) -> list[Schema]:
    if operation.query is None:
        return []
    schema = _as_makers_of_clients_read_it(operation.query.model_json_schema())
    return [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "schema": {key: value for key, value in field.items() if key != "description"},
            **({"description": field["description"]} if "description" in field else {}),
        }
        for name, field in schema["properties"].items()
    ]


def _headers(operation: Operation) -> list[Schema]:
    return [
        {
            "name": header.name,
            "in": "header",
            "required": False,
            "description": header.description,
            "schema": header.schema,
        }
        for header in operation.headers
    ]


def _request_body(operation: Operation, bodies: dict[Any, Schema]) -> Schema | None:
    if operation.body is None:
        return None
    schemas = operation.body_schema or {JSON: bodies[operation.body]}
    example = {} if operation.body_example is None else {"examples": [operation.body_example]}
    return {
        "required": True,
        "content": {kind: {"schema": schema | example} for kind, schema in schemas.items()},
    }


def _answer(operation: Operation, answers: dict[Any, Schema]) -> Schema:
    headers = {
        **({"Location": {"description": "Where it is now.", "schema": {"type": "string"}}} if operation.status == 201 else {}),
        **({"ETag": {"description": "The version, for If-Match.", "schema": {"type": "string"}}} if operation.versioned else {}),
    }  # fmt: skip
    answer: Schema = {
        "description": {201: "Made.", 202: "Begun.", 204: "Done."}.get(operation.status, "As asked.")
    }
    if headers:
        answer["headers"] = headers
    if operation.answers is not None:
        kinds = [answers[kind] for kind in answer_types(operation)] or [{"type": "string"}]
        answer["content"] = {
            operation.media_type: {"schema": kinds[0] if len(kinds) == 1 else {"anyOf": kinds}}
        }
    return answer


def problem_codes(operation: Operation) -> set[str]:
    """Returns the problems that an operation can answer. Most follow from its row: if it needs a level, it can
    refuse the actor."""
    codes = {"invalid_request", "temporarily_unavailable", *operation.refuses}
    if operation.level is not None:
        codes |= {"not_authenticated"}
        if operation.level != "read" or operation.method not in SAFE:
            codes |= {"access_denied"}
    if "{" in operation.path:
        codes |= {"not_found"}
    if operation.body is not None:
        codes |= {"malformed_json", "payload_not_an_object", "payload_too_large", "unsupported_media_type"}
    if "seen_version" in operation.takes:
        codes |= {"version_conflict"}
    if operation.idempotent:
        codes |= {"idempotency_mismatch", "conflict"}
    return codes


def _problems(codes: set[str]) -> dict[str, Schema]:
    by_status: dict[int, list[str]] = {}
    for code in sorted(codes):
        by_status.setdefault(PROBLEMS[code].status, []).append(code)
    return {
        str(status): {
            "description": " / ".join(PROBLEMS[code].title for code in codes),
            "content": {
                MEDIA_TYPE: {
                    "schema": {"$ref": REFERENCE.format(model="Problem")},
                    "examples": {code: {"value": _example(code)} for code in codes},
                }
            },
        }
        for status, codes in by_status.items()
    }


def _example(code: str) -> Problem:
    wrong = [FieldError("authentication.headerName", "Host is reserved")] if code == "invalid_request" else []
    return problem_of(Refused(code, errors=wrong))


async def docs(_: Request) -> Response:
    return HTMLResponse(PAGE, headers={"content-security-policy": POLICY})


async def asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name == "start.js":
        return Response(START, media_type="text/javascript")
    content = content_of(VENDOR / name) if name in ASSETS else None
    if content is None:
        raise Refused("not_found")
    return file_response(request, content, name)


def document_route(operations: Sequence[Operation]) -> Any:
    made = b""

    async def openapi(_: Request) -> Response:
        nonlocal made
        made = made or as_json(description(operations))
        return Response(made, media_type=JSON)

    return openapi


def patch_schema(whole: Schema, shapes: dict[str, Schema]) -> Schema:
    """Returns the schema of a merge patch. ``shapes`` holds the schemas that ``whole`` refers to."""
    whole = followed(whole, shapes)
    if "oneOf" in whole:
        # Without its method, an authentication's settings are those of any method.
        return {"type": "object", "anyOf": [patch_schema(choice, shapes) for choice in whole["oneOf"]]}
    if "anyOf" in whole:
        return whole | {"anyOf": [patch_schema(choice, shapes) for choice in whole["anyOf"]]}
    if whole.get("type") != "object" or "properties" not in whole:
        return whole
    patch = {
        name: value
        for name, value in whole.items()
        if name not in ("required", "properties", "discriminator", "title")
    }
    patch["properties"] = {
        name: _nullable(patch_schema(value, shapes)) for name, value in whole["properties"].items()
    }
    return patch


def _nullable(schema: Schema) -> Schema:
    schema = {name: value for name, value in schema.items() if name != "default"}
    if "const" in schema or ({"type": "null"} in schema.get("anyOf", ()) and "properties" not in schema):
        return schema
    return {"anyOf": [schema, {"type": "null"}]}


def followed(schema: Schema, shapes: dict[str, Schema]) -> Schema:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    return {
        **shapes[reference.rpartition("/")[2]],
        **{name: value for name, value in schema.items() if name != "$ref"},
    }
