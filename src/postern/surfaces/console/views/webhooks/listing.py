"""The list of webhooks: filtered, sorted, page by page or folder by folder, all of it in the address; and what a row's
menu does."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from postern.core.access.accounts import Actor
from postern.core.problems import invalid
from postern.core.webhooks.grouping import NO_FOLDER
from postern.core.webhooks.listing import SORTS, Sort, WebhookFilter
from postern.surfaces.console.senders import titles
from postern.surfaces.console.views.confirmations import question
from postern.surfaces.console.visit import PageValues, ViewFunction, Visit, deed, whole_number
from postern.surfaces.console.words import PROVIDER_TITLES
from postern.usecases.deliveries import holds
from postern.usecases.history import volumes
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import validated
from postern.usecases.webhooks import bin, webhooks
from postern.usecases.webhooks import listing as use_case
from postern.usecases.webhooks.listing import WebhookFilterRequest
from postern.usecases.webhooks.views import Unreadable, Webhook

SIZE = 30
MOST_FOLDERS = 200
MOST_OFFERED = 100
FILTERS = ("search", "sender", "state", "tag", "folder")
KEPT = (*FILTERS, "sort", "reverse", "group")
ACTIONS = {
    "enable": ("Enable", "play"),
    "disable": ("Disable", "cross"),
    "hold": ("Hold", "pause"),
    "release": ("Release", "play"),
    "tag": ("Add tags", "plus"),
    "untag": ("Take tags away", "cross"),
    "move": ("Move to a folder", "forward"),
    "delete": ("Delete", "trash"),
}
"""The title and the icon of each action on many webhooks."""
STATES = {
    "": "Every state",
    "failing": "Failing",
    "enabled": "Enabled",
    "held": "On hold",
    "disabled": "Disabled",
    "never_called": "Never called",
}
ORDERS: dict[Sort, str] = {
    "failing": "Failing first",
    "created": "Newest first",
    "name": "By name",
    "last_call": "Last called first",
    "last_day": "Most calls today first",
}
"""The newest stand first within each order. Without a choice, failing ones stand above the others."""


class Address:
    """The list's address with what is chosen; a link changes a part of it, and begins at the first page."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self.chosen = {name: value for name in KEPT if (value := fields.get(name, "").strip())}

    def __call__(self, **changed: Any) -> str:
        fields = {**self.chosen, **{name: str(value) for name, value in changed.items()}}
        return "/webhooks" + self._query(fields)

    def rows(self, folder: str | None) -> str:
        return "/webhooks/rows" + self._query(self.chosen | {"folder": folder or NO_FOLDER, "group": ""})

    @staticmethod
    def _query(fields: dict[str, str]) -> str:
        kept = {name: value for name, value in fields.items() if value}
        return f"?{urlencode(kept)}" if kept else ""

    @property
    def filters(self) -> dict[str, str]:
        return {name: value for name, value in self.chosen.items() if name in FILTERS}


class WebhookGroup(Struct, frozen=True):
    """A folder with its rows, where all that match are few enough to be shown together."""

    name: str | None
    count: int
    failing: int
    rows: list[Webhook | Unreadable] | None


def filter_in(fields: Mapping[str, str]) -> WebhookFilter:
    given = {name: fields.get(name, "").strip() or None for name in FILTERS}
    request: WebhookFilterRequest = validated(WebhookFilterRequest, given)
    return request.wanted()


def _order(fields: Mapping[str, str]) -> tuple[Sort, bool]:
    name = fields.get("sort", "") or "failing"
    for sort in SORTS:
        if sort == name:
            return sort, fields.get("reverse") == "1"
    raise invalid("sort", f"choose one of: {', '.join(SORTS)}")


async def listing(visit: Visit) -> Response:
    criteria = filter_in(visit.query)
    page, shown = await _shown(visit, criteria, whole_number(visit.query.get("page", "")) or 1)
    is_grouped, is_whole = bool(visit.query.get("group")), page.pages == 1
    binned = await visit.ask(bin.listing, 1)
    return visit.page(
        "webhooks/list.html",
        **shown,
        groups=await _groups(visit, criteria, shown["rows"], is_whole) if is_grouped else None,
        size=SIZE,
        states=list(STATES.items()),
        orders=list(ORDERS.items()),
        senders=_senders(page),
        most_offered=MOST_OFFERED,
        most_folders=MOST_FOLDERS,
        binned=binned.total,
        actions=[(name, title, symbol) for name, (title, symbol) in ACTIONS.items()],
    )


async def rows(visit: Visit) -> Response:
    """The rows of one folder, fetched when it is opened."""
    criteria = filter_in(visit.query)
    _, shown = await _shown(visit, replace(criteria, alone=True))
    return visit.page("webhooks/rows.html", **shown, folder=criteria.folder)


async def _shown(
    visit: Visit, criteria: WebhookFilter, number: int = 1
) -> tuple[use_case.WebhooksPage, PageValues]:
    """A page of webhooks, and the context of its table."""
    sort, reverse = _order(visit.query)
    page = await visit.ask(use_case.page, criteria, sort=sort, reverse=reverse, number=number, size=SIZE)
    by_id: dict[str, Webhook | Unreadable] = {item.id: item for item in page.items}
    by_id |= {item.id: item for item in page.unreadable}
    return page, {
        "page": page,
        "rows": [by_id[webhook_id] for webhook_id in page.order if webhook_id in by_id],
        "days": await visit.ask(volumes.last_day, [webhook.id for webhook in page.items]),
        "titles": titles(),
        "unreadable": {item.id for item in page.unreadable},
        "at": Address(visit.query),
        "sort": sort,
        "reverse": reverse,
    }


async def _groups(
    visit: Visit, criteria: WebhookFilter, shown: list[Webhook | Unreadable], are_all_shown: bool
) -> list[WebhookGroup]:
    inside: dict[str, list[Webhook | Unreadable]] = {}
    for row in shown:
        folder = row.folder if isinstance(row, Webhook) else None
        inside.setdefault((folder or "").casefold(), []).append(row)
    return [
        WebhookGroup(
            group.name,
            group.count,
            group.failing,
            inside.get((group.name or "").casefold(), []) if are_all_shown else None,
        )
        for group in await visit.ask(use_case.folders, criteria)
    ]


def _senders(page: use_case.WebhooksPage) -> list[tuple[str, str]]:
    named = titles() | {
        **PROVIDER_TITLES,
        "token": "By token",
        "none": "No authentication",
        "schedule": "On a schedule",
    }
    return [("", "Every sender"), *((sender, named.get(sender, sender)) for sender in page.groups.senders)]


drop = deed(holds.drop, "webhook", "/webhooks/{webhook}", "dropped")


def _switch(
    use_case: Callable[[Gateway, Actor, str], Awaitable[object]], notice: str, asks: str = ""
) -> ViewFunction:
    """Leads back with the notice. ``asks``: what is asked first, and can be undone by the notice."""

    async def act(visit: Visit) -> Response:
        if asks and (response := await question(visit, asks)):
            return response
        webhook_id = visit.at("webhook")
        await visit.ask(use_case, webhook_id)
        to_list = notice == "deleted" or (await visit.form()).get("from") == "list"
        back = "/webhooks" if to_list else f"/webhooks/{webhook_id}"
        return visit.to(f"{back}?of={webhook_id}" if asks else back, notice)

    return act


enable = _switch(partial(webhooks.switch, enabled=True), "enabled")
disable = _switch(partial(webhooks.switch, enabled=False), "disabled", "disable")
hold = _switch(holds.hold, "held", "hold")
release = _switch(holds.release, "released")
delete = _switch(webhooks.remove, "deleted", "delete")
