"""The list of webhooks: filtered, in order, page by page."""

from collections import Counter
from typing import Annotated

from msgspec import Struct
from pydantic import Field

from postern import presets
from postern.core.access.accounts import Actor
from postern.core.problems import invalid
from postern.core.webhooks.grouping import NO_FOLDER
from postern.core.webhooks.listing import (
    SCHEDULE,
    Groups,
    Lately,
    Listed,
    Sort,
    WebhookFilter,
    WebhookState,
    in_order,
    is_failing,
    matching,
)
from postern.core.webhooks.stored import StoredWebhook, UnreadableWebhook
from postern.usecases.answers import UNSET, page_size
from postern.usecases.history.filters import MomentText, moment
from postern.usecases.history.volumes import last_day_of_all
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.shapes import Shape
from postern.usecases.webhooks import views
from postern.usecases.webhooks.showing import presented, unreadable


class WebhookFilterRequest(Shape):
    """Which webhooks: every part that is given must hold."""

    search: Annotated[str, Field(max_length=200)] | None = Field(
        default=None,
        description="Part of the name, the folder or a tag, or the whole id or short code; with a * for any text, "
        "the whole name, like tmp-*.",
    )
    sender: Annotated[str, Field(max_length=80)] | None = Field(
        default=None, description="A sender like shopify; or token, none, schedule."
    )
    state: WebhookState | None = Field(
        default=None, description="failing: it has an open incident, or cannot be served."
    )
    tag: Annotated[str, Field(max_length=80)] | None = Field(default=None, description="With this tag.")
    folder: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description=f"In this folder or one inside it; {NO_FOLDER} for those that are in none."
    )
    not_called_since: MomentText | None = Field(
        default=None,
        description="Whose last call came before this time, or never: ISO 8601, seconds since 1970, or how long ago: 45s, "
        "30m, 1h, 2d. A fetch of its schedule counts as a call.",
    )

    def wanted(self, within: str = "") -> WebhookFilter:
        return WebhookFilter(
            (self.search or "").strip(),
            _known_sender(self.sender or "", within),
            self.state,
            (self.tag or "").strip(),
            (self.folder or "").strip(),
            moment(self.not_called_since, f"{within}notCalledSince"),
        )


def _known_sender(typed: str, within: str) -> str:
    """Refuses a sender that no webhook can have: an empty list would hide the mistake."""
    sender = typed.strip().lower()
    known = [*presets.names(), "custom", "token", "none", SCHEDULE]
    if sender and sender not in known:
        raise invalid(f"{within}sender", f"choose one of: {', '.join(known)}")
    return sender


EVERYTHING = WebhookFilter()


async def listing(
    gateway: Gateway,
    actor: Actor,
    limit: int = 50,
    cursor: str | None = None,
    *,
    wanted: WebhookFilter = EVERYTHING,
    sort: Sort = "created",
    reverse: bool = False,
) -> views.Webhooks:
    """The webhooks that match, the newest first or in another order."""
    require(actor, "read")
    limit = page_size(limit)
    matches, _ = await _found(gateway, wanted, sort, reverse)
    begin = 0
    if cursor is not None and sort == "created":
        # By the id alone: the last webhook of the page before may be gone.
        begin = sum(1 for webhook in matches if (webhook.id <= cursor if reverse else webhook.id >= cursor))
    elif cursor is not None:
        begin = next((place for place, webhook in enumerate(matches, 1) if webhook.id == cursor), 0)
        if not begin:
            detail = "the webhook that the page before ended with does not match any more: begin again"
            raise invalid("cursor", detail)
    page = matches[begin : begin + limit]
    items, unread = await _shown(gateway, page)
    return views.Webhooks(
        items=items,
        next_cursor=page[-1].id if begin + limit < len(matches) else None,
        total=len(matches),
        unreadable=unread or UNSET,
    )


class WebhooksPage(Struct, frozen=True):
    """A page of the list by its number, as the console shows it."""

    items: list[views.Webhook]
    unreadable: list[views.Unreadable]
    order: list[str]
    """The ids of ``items`` and ``unreadable`` in the list's order."""
    total: int
    failing: int
    """How many of all that match are failing."""
    number: int
    pages: int
    groups: Groups
    """The groups of all webhooks, to choose from."""


async def page(
    gateway: Gateway,
    actor: Actor,
    criteria: WebhookFilter,
    *,
    sort: Sort,
    reverse: bool,
    number: int,
    size: int,
) -> WebhooksPage:
    """One page of the webhooks that match, by its number; beyond the end it is the last page."""
    require(actor, "read")
    matches, lately = await _found(gateway, criteria, sort, reverse)
    pages = max(1, -(-len(matches) // size))
    number = max(1, min(number, pages))
    here = matches[(number - 1) * size : number * size]
    items, unread = await _shown(gateway, here)
    return WebhooksPage(
        items,
        unread,
        [webhook.id for webhook in here],
        len(matches),
        sum(is_failing(webhook, lately) for webhook in matches),
        number,
        pages,
        gateway.runtime.directory.groups(),
    )


class Folder(Struct, frozen=True):
    name: str | None
    count: int
    failing: int


async def folders(gateway: Gateway, actor: Actor, criteria: WebhookFilter) -> list[Folder]:
    """The folders of the webhooks that match, by name, each with the number of webhooks in the folder itself. Those that are
    in none come last."""
    require(actor, "read")
    matches, lately = await _found(gateway, criteria, "created", False)
    counts = Counter(webhook.folded_folder for webhook in matches)
    failing = Counter(webhook.folded_folder for webhook in matches if is_failing(webhook, lately))
    named = [
        Folder(name, counts[name.casefold()], failing[name.casefold()])
        for name in gateway.runtime.directory.groups().folders
        if name.casefold() in counts
    ]
    return [*named, Folder(None, counts[""], failing[""])] if counts[""] else named


async def with_own_retention(gateway: Gateway, actor: Actor) -> list[Listed]:
    """The webhooks with a rule of their own for how long their calls are kept, by name."""
    require(actor, "read")
    among = gateway.runtime.directory.listed()
    own = [webhook for webhook in among if webhook.history_days is not None or webhook.body_days is not None]
    return in_order(own, "name")


async def all_that_match(gateway: Gateway, criteria: WebhookFilter) -> list[Listed]:
    """The oldest first."""
    return (await _found(gateway, criteria, "created", True))[0]


async def _found(
    gateway: Gateway, criteria: WebhookFilter, sort: Sort, reverse: bool
) -> tuple[list[Listed], Lately]:
    # So that the answer has what another process has just changed. This reads one number.
    await gateway.runtime.directory.refresh()
    by_last_call = criteria.needs_last_calls or sort == "last_call"
    lately = Lately(
        Counter(incident.webhook_id for incident in gateway.runtime.incidents),
        await gateway.store.webhooks.last_calls() if by_last_call else {},
        await last_day_of_all(gateway) if sort == "last_day" else {},
    )
    matches = matching(gateway.runtime.directory.listed(), criteria, lately)
    return in_order(matches, sort, lately, reverse), lately


async def _shown(
    gateway: Gateway, listed: list[Listed]
) -> tuple[list[views.Webhook], list[views.Unreadable]]:
    ids = [webhook.id for webhook in listed]
    stored = await gateway.store.webhooks.some(ids)
    there = [stored[webhook_id] for webhook_id in ids if webhook_id in stored]
    readable = await presented(gateway, [webhook for webhook in there if isinstance(webhook, StoredWebhook)])
    return readable, [
        unreadable(gateway, webhook) for webhook in there if isinstance(webhook, UnreadableWebhook)
    ]
