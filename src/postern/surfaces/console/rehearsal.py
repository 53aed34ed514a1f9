"""Visiting the main pages once before anybody else does.

The first visit to a page costs ten times the second: its templates are compiled, its statements built, the
database's own pages read.
"""

import asyncio
import re
from contextlib import suppress

from starlette.requests import Request
from starlette.types import Scope

from postern.core.access.accounts import Actor
from postern.core.history.invocation import HistoryFilter, StoreUnavailable
from postern.core.problems import Refused
from postern.observe.logs import log
from postern.surfaces.console import pages
from postern.surfaces.console.routes import VIEWS
from postern.surfaces.console.visit import ViewFunction, Visit
from postern.usecases.history import history as calls
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.webhooks import listing as known

# Only what looks: nothing that reveals, follows or asks the engine. First what people come to first.
PATHS = (
    *("/webhooks", "/calls", "/incidents", "/volume", "/webhooks/new", "/tester", "/settings"),
    *("/settings/audit", "/webhooks/{webhook}", "/webhooks/{webhook}/calls", "/webhooks/{webhook}/settings"),
    "/calls/{invocation}",
)
ACTOR = Actor("rehearsal", "admin")
AFTER = 0.5
PAUSE = 0.01
"""Between two pages, for the calls that came in meanwhile."""


async def rehearse(gateway: Gateway) -> None:
    """Never in the way of a call, and no trouble when it fails: the page is made again when somebody asks for
    it."""
    await asyncio.sleep(AFTER)
    try:
        await asyncio.to_thread(_compile)
        for view, names in await acts(gateway):
            with suppress(Refused):  # what it was to show was deleted meanwhile
                await view(Visit(_request(names), gateway, ACTOR))
            await asyncio.sleep(PAUSE)
    except StoreUnavailable:
        pass
    except Exception:
        log.exception("a page failed in its rehearsal")


async def acts(gateway: Gateway) -> list[tuple[ViewFunction, dict[str, str]]]:
    """Each page, and what its address names: the newest webhook and the newest call."""
    newest = await known.listing(gateway, ACTOR, 1)
    latest = await calls.listing(gateway, ACTOR, HistoryFilter(), 1)
    names = {}
    if newest.items:
        names["webhook"] = newest.items[0].id
    if latest.items:
        names["invocation"] = latest.items[0].id
    views = {path: view for method, path, view in VIEWS if method == "GET"}
    return [(views[path], names) for path in PATHS if names.keys() >= set(re.findall(r"{(\w+)}", path))]


def _compile() -> None:
    for name in pages.ENVIRONMENT.list_templates(extensions=["html"]):
        pages.ENVIRONMENT.get_template(name)


def _request(names: dict[str, str]) -> Request:
    scope: Scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "query_string": b"",
        "headers": [],
        "path_params": names,
    }
    return Request(scope)
