"""Who may do what: API keys."""

import hmac
from hashlib import sha256
from typing import Any

from postern.core.identity import new_api_key, new_id
from postern.core.problems import FieldError, Refused
from postern.core.records import LEVELS, Actor, ApiKey, Level
from postern.usecases.gateway import Gateway, require
from postern.usecases.webhooks import iso

LAST_USED_EVERY = 60.0
"""How exact "last used" is: writing it down at every request would make reading cost a commit."""


async def create_key(gateway: Gateway, actor: Actor, name: str, level: str) -> dict[str, Any]:
    """The key itself is in this answer and nowhere else, ever."""
    require(actor, "admin")
    errors = []
    if level not in LEVELS:
        errors.append(FieldError("level", f"choose one of {', '.join(LEVELS)}"))
    if not 1 <= len(name.strip()) <= 200:
        errors.append(FieldError("name", "has 1 to 200 characters"))
    if errors:
        raise Refused("invalid_request", errors=errors)
    secret = new_api_key()
    known: Level = next(one for one in LEVELS if one == level)
    key = ApiKey(new_id("key"), name.strip(), known, secret[:9], gateway.clock(), actor.name)
    await gateway.store.access.add_key(key, secret)
    return {**told(key), "key": secret}


async def keys(gateway: Gateway, actor: Actor) -> list[dict[str, Any]]:
    require(actor, "admin")
    return [told(key) for key in await gateway.store.access.keys()]


async def delete_key(gateway: Gateway, actor: Actor, key_id: str) -> None:
    require(actor, "admin")
    if not await gateway.store.access.delete_key(key_id):
        raise Refused("not_found", "there is no API key with this id")


async def actor_of_key(gateway: Gateway, secret: str) -> Actor:
    """Whom a bearer key stands for, or ``Refused``: a missing level is never guessed."""
    admin_key = gateway.admin_key_digest
    if admin_key is not None and hmac.compare_digest(sha256(secret.encode("utf-8", "surrogateescape")).digest(), admin_key):
        return Actor("POSTERN_ADMIN_KEY", "admin")
    key = await gateway.store.access.key(secret) if secret.startswith("pk_") else None
    if key is None:
        raise Refused("not_authenticated", "the API key is not valid")
    now = gateway.clock()
    if key.last_used_at is None or now - key.last_used_at > LAST_USED_EVERY:
        await gateway.store.access.used(key.id, now)
    return Actor(key.name, key.level)


def told(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "level": key.level,
        "prefix": key.prefix,
        "createdAt": iso(key.created_at),
        "createdBy": key.created_by,
        "lastUsedAt": None if key.last_used_at is None else iso(key.last_used_at),
    }
