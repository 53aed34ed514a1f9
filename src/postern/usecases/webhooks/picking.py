"""Chooses one webhook among thousands, by a part of its name or by its id."""

import re
from heapq import nlargest, nsmallest

from msgspec import Struct

from postern.core.access.accounts import Actor
from postern.core.problems import invalid
from postern.core.webhooks.listing import WebhookFilter, matching
from postern.usecases.runtime.gateway import Gateway, require

MOST_CHOICES = 20
DELETED = " (deleted)"


class WebhookChoice(Struct, frozen=True):
    id: str
    name: str
    typed: str
    """The text that means this webhook: its name, or its id if another one has the name."""
    folder: str | None = None


async def choices(
    gateway: Gateway, actor: Actor, search: str = "", *, deleted: bool = False, signed: bool = False
) -> list[WebhookChoice]:
    """The webhooks to choose from, twenty at most: first those with the typed name, then those whose name begins with it or
    has it as whole words. If nothing is typed, the newest. ``deleted``: deleted ones too, whose calls are still in the
    history. ``signed``: only those whose callers sign."""
    require(actor, "read")
    text = search.strip()
    sought = text.casefold()
    directory = gateway.runtime.directory
    among = [webhook for webhook in directory.listed() if webhook.signs] if signed else directory.listed()
    if text:
        matches = matching(among, WebhookFilter(text))
        as_words = re.compile(rf"(?<!\w){re.escape(sought)}(?!\w)")
        shown = nsmallest(
            MOST_CHOICES,
            matches,
            key=lambda webhook: (_distance(webhook.folded_name, sought, as_words), webhook.name_in_order),
        )
    else:
        shown = nlargest(MOST_CHOICES, among, key=lambda webhook: webhook.id)
    chosen = [
        WebhookChoice(webhook.id, webhook.name, directory.typed(webhook), webhook.folder) for webhook in shown
    ]
    if deleted and len(chosen) < MOST_CHOICES:
        gone = await gateway.store.webhooks.deleted_names(
            lambda name: sought in name.casefold(), MOST_CHOICES - len(chosen)
        )
        chosen += [
            WebhookChoice(webhook_id, f"{name}{DELETED}", webhook_id) for webhook_id, name in gone.items()
        ]
    return chosen


def _distance(name: str, sought: str, as_words: re.Pattern[str]) -> int:
    """The smaller, the better the name fits: shop 7 is meant before shop 70."""
    if name == sought:
        return 0
    begins, has_words = name.startswith(sought), as_words.search(name) is not None
    return 1 if begins and has_words else 2 if has_words else 3 if begins else 4


async def one(gateway: Gateway, actor: Actor, webhook_id: str) -> WebhookChoice:
    """The webhook that is chosen already. If it is not known any more, its id stands for its name."""
    require(actor, "read")
    listed = gateway.runtime.directory.listed_by_id(webhook_id)
    if listed is not None:
        return WebhookChoice(listed.id, listed.name, gateway.runtime.directory.typed(listed), listed.folder)
    name = (await names(gateway, actor, [webhook_id], deleted=True)).get(webhook_id, webhook_id)
    return WebhookChoice(webhook_id, name, webhook_id)


async def meant(gateway: Gateway, actor: Actor, typed: str, *, field: str = "webhook") -> str:
    """The id of the webhook that the text means: an id, or a name that only one webhook has."""
    require(actor, "read")
    text = typed.strip()
    if not text or text.startswith("wh_"):
        return text
    ids = gateway.runtime.directory.called(text)
    if not ids:
        sought, names = text.removesuffix(DELETED).casefold(), gateway.store.webhooks.deleted_names
        ids = list(await names(lambda name: name.casefold() == sought, 100))
    if len(ids) == 1:
        return ids[0]
    if ids:
        raise invalid(field, f"{len(ids)} webhooks have this name: choose one by its id")
    raise invalid(field, "no webhook has this name")


async def names(gateway: Gateway, actor: Actor, among: list[str], *, deleted: bool = False) -> dict[str, str]:
    """The names of these webhooks, by id."""
    require(actor, "read")
    known = gateway.runtime.directory.listed_by_id
    by_id = {webhook_id: listed.name for webhook_id in among if (listed := known(webhook_id)) is not None}
    missing = [webhook_id for webhook_id in among if webhook_id not in by_id]
    for webhook_id, name, is_deleted in await gateway.store.webhooks.names(missing) if missing else ():
        if deleted or not is_deleted:
            by_id[webhook_id] = f"{name}{DELETED}" if is_deleted else name
    return by_id
