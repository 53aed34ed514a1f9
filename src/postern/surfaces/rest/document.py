"""The API's description (OpenAPI 3.1), made from the table, and a page to read it on that loads nothing from
elsewhere."""

from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response

from postern.core.problems import Refused
from postern.surfaces.rest.patch import patch_schema
from postern.surfaces.rest.shapes import Problem
from postern.usecases.webhooks.configuration import WebhookRequest

VENDOR = Path(__file__).parent.parent / "console" / "static" / "vendor"
ASSETS = {"swagger-ui.js": "text/javascript", "swagger-ui.css": "text/css"}

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
# Swagger UI writes style attributes and shows images as data; scripts come from here alone.
POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'"

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


def description(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(title="Postern", version="1", description=DESCRIPTION, routes=app.routes)
    document["servers"] = [{"url": "/"}]
    document["security"] = [{"apiKey": []}, {"session": []}]
    components = document["components"]
    components["securitySchemes"] = SECURITY
    schemas = components["schemas"]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    template = "#/components/schemas/{model}"
    whole = Problem.model_json_schema(ref_template=template, mode="serialization")
    schemas.update(whole.pop("$defs", {}))
    schemas["Problem"] = whole
    request = WebhookRequest.model_json_schema(ref_template=template)
    schemas["WebhookPatch"] = patch_schema(request, request.pop("$defs", {})) | {"title": "WebhookPatch"}
    return document


async def docs(_: Request) -> Response:
    return HTMLResponse(PAGE, headers={"content-security-policy": POLICY})


async def asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name == "start.js":
        return Response(START, media_type="text/javascript")
    if name not in ASSETS or not (VENDOR / name).exists():
        raise Refused("not_found")
    return FileResponse(VENDOR / name, media_type=ASSETS[name])


def document_route(app: FastAPI) -> Any:
    made: list[JSONResponse] = []

    async def openapi(_: Request) -> Response:
        if not made:
            made.append(JSONResponse(description(app)))
        return Response(made[0].body, media_type="application/json")

    return openapi
