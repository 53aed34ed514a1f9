"""Saved views: filters of the history to which a user has given a name."""

from postern.core.access.accounts import Actor
from postern.core.history.marks import SavedView
from postern.core.problems import Refused, invalid
from postern.core.visible import on_one_line
from postern.identity import new_id
from postern.usecases.access.audit import noted
from postern.usecases.runtime.gateway import Gateway, require

MOST_VIEWS = 50
"""For each user."""
LONGEST_NAME = 80
LONGEST_QUERY = 2_000


async def listing(gateway: Gateway, actor: Actor) -> list[SavedView]:
    """The caller's own, the oldest first."""
    require(actor, "read")
    return await gateway.store.saved_views.of(actor.owner)


async def save(gateway: Gateway, actor: Actor, name: str, query: str) -> SavedView:
    """Keep filters under a name. ``query``: as the history's address has them."""
    require(actor, "read")
    if len(query) > LONGEST_QUERY:
        raise Refused("invalid_request", "These filters are too long to be kept.")
    view = SavedView(new_id("sv"), actor.owner, _named(name), query, gateway.clock())
    note = noted(gateway, actor, "view saved", view.id, name=view.name)
    if not await gateway.store.saved_views.add(view, MOST_VIEWS, note):
        raise Refused("conflict", f"You have {MOST_VIEWS} saved views; delete one first.")
    return view


async def rename(gateway: Gateway, actor: Actor, view_id: str, name: str) -> None:
    """Give a view of one's own another name."""
    require(actor, "read")
    note = noted(gateway, actor, "view renamed", view_id, name=_named(name))
    if not await gateway.store.saved_views.rename(actor.owner, view_id, _named(name), note):
        raise Refused("not_found", "there is no such view of yours")


async def delete(gateway: Gateway, actor: Actor, view_id: str) -> None:
    """Delete a view of one's own; no call goes with it."""
    require(actor, "read")
    note = noted(gateway, actor, "view deleted", view_id)
    if not await gateway.store.saved_views.delete(actor.owner, view_id, note):
        raise Refused("not_found", "there is no such view of yours")


def _named(name: str) -> str:
    name = " ".join(name.split())
    if not 1 <= len(name) <= LONGEST_NAME or not on_one_line(name):
        raise invalid("name", f"write a name of 1 to {LONGEST_NAME} characters")
    return name
