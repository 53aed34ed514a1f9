"""Choosing one webhook among thousands: by a part of its name, or by its id."""

import re
from heapq import nlargest, nsmallest

from msgspec import Struct

from postern.core.access.accounts import Actor
from postern.core.problems import invalid
from postern.core.webhooks.listing import NOT_COUNTED, WebhookFilter, matching
from postern.usecases.runtime.gateway import Gateway, require

MOST = 20
DELETED = " (deleted)"


class WebhookChoice(Struct, frozen=True):
    id: str
    name: str
    typed: str
    """What stands for it where it is typed: its name, or its id where another one has the name."""
    folder: str | None = None


async def choices(
    gateway: Gateway, actor: Actor, search: str = "", *, deleted: bool = False, signed: bool = False
) -> list[WebhookChoice]:
    """The webhooks to choose from: twenty at most, those first that are called so, then those whose name begins with
    what was typed or has it as words of its own, and without anything typed the newest. Deleted ones too, where asked for, for their calls are still in the history; or only
    those whose callers sign."""
    require(actor, "read")
    text = search.strip()
    wanted = text.casefold()
    directory = gateway.runtime.directory
    among = [one for one in directory.listed() if one.signs] if signed else directory.listed()
    if text:
        found = matching(among, WebhookFilter(text), NOT_COUNTED)
        as_words = re.compile(rf"(?<!\w){re.escape(wanted)}(?!\w)")
        shown = nsmallest(
            MOST, found, key=lambda one: (_distance(one.folded_name, wanted, as_words), one.name_in_order)
        )
    else:
        shown = nlargest(MOST, among, key=lambda one: one.id)
    chosen = [WebhookChoice(one.id, one.name, directory.typed(one), one.folder) for one in shown]
    if deleted and len(chosen) < MOST:
        gone = await gateway.store.webhooks.deleted_names(
            lambda name: wanted in name.casefold(), MOST - len(chosen)
        )
        chosen += [
            WebhookChoice(webhook_id, f"{name}{DELETED}", webhook_id) for webhook_id, name in gone.items()
        ]
    return chosen


def _distance(name: str, wanted: str, as_words: re.Pattern[str]) -> int:
    """Among thousands of shops, shop 7 is meant before shop 70 and shop 700."""
    if name == wanted:
        return 0
    begins, has_words = name.startswith(wanted), as_words.search(name) is not None
    return 1 if begins and has_words else 2 if has_words else 3 if begins else 4


async def one(gateway: Gateway, actor: Actor, webhook_id: str) -> WebhookChoice:
    """The one that is chosen already; of one that nobody knows the id alone."""
    require(actor, "read")
    listed = gateway.runtime.directory.listed_by_id(webhook_id)
    if listed is not None:
        return WebhookChoice(listed.id, listed.name, gateway.runtime.directory.typed(listed), listed.folder)
    name = (await names(gateway, actor, [webhook_id], deleted=True)).get(webhook_id, webhook_id)
    return WebhookChoice(webhook_id, name, webhook_id)


async def meant(gateway: Gateway, actor: Actor, typed: str, *, field: str = "webhook") -> str:
    """The id of the webhook that was typed: an id as it is, or a name that one webhook alone has."""
    require(actor, "read")
    text = typed.strip()
    if not text or text.startswith("wh_"):
        return text
    found = gateway.runtime.directory.called(text) or await _deleted(gateway, text)
    if len(found) == 1:
        return found[0]
    wrong = (
        f"{len(found)} webhooks have this name: choose one by its id" if found else "no webhook has this name"
    )
    raise invalid(field, wrong)


async def _deleted(gateway: Gateway, text: str) -> list[str]:
    wanted = text.removesuffix(DELETED).casefold()
    return list(await gateway.store.webhooks.deleted_names(lambda name: name.casefold() == wanted, 100))


async def names(gateway: Gateway, actor: Actor, among: list[str], *, deleted: bool = False) -> dict[str, str]:
    """What these webhooks are called, by id. Of deleted ones too, where asked for."""
    require(actor, "read")
    known = gateway.runtime.directory.listed_by_id
    found = {webhook_id: one.name for webhook_id in among if (one := known(webhook_id)) is not None}
    missing = [webhook_id for webhook_id in among if webhook_id not in found]
    for webhook_id, name, is_deleted in await gateway.store.webhooks.names(missing) if missing else ():
        if deleted or not is_deleted:
            found[webhook_id] = f"{name}{DELETED}" if is_deleted else name
    return found
