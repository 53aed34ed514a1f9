"""Tries a setting on the last calls while it is being typed."""

from postern.core.access.accounts import Actor
from postern.core.calls.paths import as_text, parse_path, path_problem, walk_members
from postern.core.history.invocation import HistoryFilter, Invocation, payload_of
from postern.core.webhooks.bounds import place_of_key
from postern.core.webhooks.settings import DuplicateProtection
from postern.usecases.history.views.requests import TriedKey
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.shapes import validated
from postern.usecases.webhooks.requests import request_of

LAST = 20
LONGEST = 80
LARGEST_READ = 256 * 1024
"""Bytes. Larger bodies are not read while somebody types."""


async def duplicate_key(gateway: Gateway, actor: Actor, webhook_id: str, key: str) -> TriedKey:
    """In how many of the last calls duplicate protection would find this key; if in none, the key that they have instead. A
    key that cannot be saved is refused."""
    require(actor, "read")
    validated(request_of(DuplicateProtection), {"enabled": True, "key": key})
    page = await gateway.store.history.page(HistoryFilter(webhook_id=webhook_id), LAST)
    stories = await gateway.store.history.brief([row.invocation.id for row in page.rows], LARGEST_READ)
    of_header = place_of_key(key)[0] == "header"
    stories.sort(key=lambda one: one.invocation.id, reverse=True)
    calls = [one.invocation for one in stories if of_header or one.invocation.body is not None]
    found = [value for one in calls if (value := _value(one, key))]
    return TriedKey(
        calls=len(calls),
        found=len(found),
        example=found[0][:LONGEST] if found else None,
        instead=None if found else _instead(calls, key),
    )


def _value(invocation: Invocation, key: str) -> str | None:
    kind, name = place_of_key(key)
    if kind == "header":
        header = invocation.as_call().first_header(name.lower().encode())
        return header.decode("utf-8", "replace") if header else None
    payload = payload_of(invocation)
    found = walk_members(payload.members, parse_path(name)) if payload else None
    return None if found is None else as_text(found)


def _instead(calls: list[Invocation], key: str) -> str | None:
    """The header of this name if a path was written, the path if a header was written."""
    kind, divider, name = key.partition(":")
    name = name if divider else kind
    for other in (f"header:{name}", name):
        if not path_problem(name) and any(_value(one, other) for one in calls):
            return other
    return None
