"""A recorded call to be taken along: its body, the whole of it, and as a command or a program.

Strangers wrote all of it. So a browser saves it instead of showing it, and what it shows is plain text in a sandbox:
nothing of it ever runs as a page of the console.
"""

from base64 import b64decode

from starlette.responses import Response

from postern.core.problems import Refused
from postern.surfaces.console.bodies import ENDINGS, kind_of
from postern.surfaces.console.visit import Visit
from postern.usecases.answers import as_json, as_plain
from postern.usecases.history import fixtures, history
from postern.usecases.history.code import LANGUAGES
from postern.usecases.history.views.requests import as_file, file_name

SANDBOXED = {
    "content-security-policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


async def body(visit: Visit) -> Response:
    """Every byte that is kept, whatever it says it is."""
    found = await history.request(visit.gateway, visit.actor, visit.at("invocation"))
    if found.body_base64 is None:
        raise Refused("not_found", "The body of this call is no longer kept.")
    content = b64decode(found.body_base64)
    types = [value for name, value in found.headers if name == "content-type"]
    ending = ENDINGS.get(kind_of(types[0] if types else "", content), "bin")
    return _saved(content, "application/octet-stream", f"body-{found.invocation_id[-8:]}.{ending}")


async def whole(visit: Visit) -> Response:
    """The API's answer about the call, with its body to the byte."""
    item = await history.show(visit.gateway, visit.actor, visit.at("invocation"))
    sent = await history.request(visit.gateway, visit.actor, item.id)
    whole = as_plain(item) | {"bodyBase64": sent.body_base64}
    return _saved(as_json(whole), "application/json", f"call-{item.id[-8:]}.json")


async def fixture(visit: Visit) -> Response:
    """The file that `postern history save` writes."""
    invocation_id = visit.at("invocation")
    found = await fixtures.fixture(visit.gateway, visit.actor, invocation_id)
    name = f"{file_name(found, invocation_id)}.json"
    return _saved(as_file(found).encode(), "application/json", name)


async def code(visit: Visit) -> Response:
    """Copied by a button; shown where there is no JavaScript."""
    language = next((one for one in LANGUAGES if one == visit.at("language")), None)
    if language is None:
        raise Refused("not_found", f"Choose one of: {', '.join(LANGUAGES)}.")
    text = await history.as_code(visit.gateway, visit.actor, visit.at("invocation"), language)
    return Response(text, headers=SANDBOXED, media_type="text/plain; charset=utf-8")


def _saved(content: bytes, kind: str, name: str) -> Response:
    """The name is ours: nothing that was sent stands in a header."""
    headers = SANDBOXED | {"content-disposition": f'attachment; filename="{name}"'}
    return Response(content, headers=headers, media_type=kind)
