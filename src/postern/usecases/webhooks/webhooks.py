"""Creates, changes, reads and deletes one webhook. ``preparing.py`` applies requests, ``showing.py`` makes answers."""

from dataclasses import replace

from postern.core.access.accounts import Actor
from postern.core.documents import Patch
from postern.core.problems import Refused
from postern.core.webhooks.announced import FIELD as ANNOUNCED
from postern.core.webhooks.announced import announced
from postern.usecases.access.audit import note_down, noted, webhook_noted
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.stored_webhook import NO_WEBHOOK, check_secrets, check_version, save, stored
from postern.usecases.webhooks import views
from postern.usecases.webhooks.preparing import TAKES_OURS, altered, compiles, prepared
from postern.usecases.webhooks.requests import TARGET_KEY, WebhookRequest
from postern.usecases.webhooks.showing import presented, rotation


async def create(gateway: Gateway, actor: Actor, request: WebhookRequest) -> views.Webhook:
    """A new webhook, enabled unless said otherwise."""
    require(actor, "write")
    webhook, secrets = prepared(gateway, request)
    await gateway.store.webhooks.create(
        webhook, secrets, webhook_noted(gateway, actor, "webhook created", webhook, None, secrets)
    )
    await gateway.runtime.directory.refresh()
    return await show(gateway, actor, webhook.id)


async def show(gateway: Gateway, actor: Actor, webhook_id: str) -> views.Webhook:
    """One webhook: every setting, and of its secrets whether they are set."""
    require(actor, "read")
    (shown,) = await presented(gateway, [await stored(gateway, webhook_id)])
    return shown


async def change(
    gateway: Gateway, actor: Actor, webhook_id: str, patch: Patch, seen_version: int | None = None
) -> views.Webhook:
    """A merge patch (RFC 7396): what is named is changed, null goes back to the default. Secrets that are not
    named stay; another method or provider starts without any."""
    require(actor, "write")
    webhook = await stored(gateway, webhook_id, seen_version)
    before = replace(webhook)
    changes = altered(gateway, webhook, patch)
    note = webhook_noted(gateway, actor, "webhook changed", webhook, before, changes)
    await save(gateway, webhook, changes, note)
    return await show(gateway, actor, webhook_id)


async def switch(
    gateway: Gateway, actor: Actor, webhook_id: str, enabled: bool, seen_version: int | None = None
) -> views.Webhook:
    """Enable or disable a webhook."""
    return await change(gateway, actor, webhook_id, {"enabled": enabled}, seen_version)


async def promote(
    gateway: Gateway, actor: Actor, webhook_id: str, now: bool = False, seen_version: int | None = None
) -> views.Webhook:
    """The second valid secret becomes the main one, and the second is cleared. Refused while calls may still carry the
    main one (authentication.rotation.safeToPromote is false), unless now is asked for."""
    require(actor, "write")
    webhook = await stored(gateway, webhook_id, seen_version)
    if "second" not in webhook.secrets:
        raise Refused("conflict", "there is no second secret to promote")
    tallies = (await gateway.store.webhooks.tallies([webhook.id]))[webhook.id]
    changing = rotation(webhook.secrets, tallies, gateway.clock())
    if changing and not (now or changing.safe_to_promote):
        used = "the main secret was used or set within the last hour"
        unused = "no call has used the second secret since the main one was used or set"
        why = used if changing.safe_from else unused
        raise Refused(
            "conflict",
            f"nothing was changed: {why}. With now, calls with the main one are rejected from then on",
        )
    await save(gateway, webhook, {}, noted(gateway, actor, "secret promoted", webhook.id), promote=True)
    return await show(gateway, actor, webhook_id)


async def adopt(
    gateway: Gateway,
    actor: Actor,
    webhook_id: str,
    invocation_id: str | None = None,
    seen_version: int | None = None,
) -> views.Webhook:
    """Take the secret that a sender (Notion, Asana) announced in its set-up handshake as the main one, and
    forget the others, which until then are kept aside under authentication.announced. Whether it was the
    sender, its owner must say: with the id of the call, where several were announced."""
    require(actor, "write")
    webhook = await stored(gateway, webhook_id, seen_version)
    there = announced(webhook.secrets)
    if not there.kept:
        raise Refused("conflict", "no sender has announced a secret")
    if invocation_id is None and len(there.kept) > 1:
        calls = ", ".join(announcement.invocation_id for announcement in there.kept)
        what = "callers have announced different secrets"
        raise Refused("conflict", f"{what}; name the call that is the sender's: {calls}")
    chosen = [
        announcement for announcement in there.kept if invocation_id in (None, announcement.invocation_id)
    ]
    if not chosen:
        raise Refused("not_found", "no secret is kept that this call announced")
    changes: dict[str, bytes | None] = {"main": chosen[0].secret, ANNOUNCED: None}
    compiles(webhook, changes)
    call, address = chosen[0].invocation_id, chosen[0].address
    note = noted(gateway, actor, "announced secret taken", webhook.id, invocationId=call, address=address)
    await save(gateway, webhook, changes, note)
    return await show(gateway, actor, webhook_id)


async def remove(gateway: Gateway, actor: Actor, webhook_id: str, seen_version: int | None = None) -> None:
    """Into the bin: its URL answers 404, and for seven days it can be restored with everything it was. Its history
    stays until retention takes it."""
    require(actor, "write")
    # Not `stored`: a webhook whose settings cannot be read can be deleted, too.
    webhook = await gateway.store.webhooks.get(webhook_id)
    if webhook is None:
        raise Refused("not_found", NO_WEBHOOK)
    check_version(webhook, seen_version)
    note = noted(gateway, actor, "webhook deleted", webhook_id, name=webhook.name)
    if not await gateway.store.bin.delete(note, gateway.clock()):
        raise Refused("not_found")
    await gateway.runtime.directory.refresh()


async def reveal(gateway: Gateway, actor: Actor, webhook_id: str) -> dict[str, str]:
    """The secrets that have to be copied to the caller: tokens, and signing secrets that were made here. A secret that came
    from a sender is looked up there. For the console only: REST and MCP never tell a secret.
    """
    require(actor, "admin")
    webhook = await stored(gateway, webhook_id)
    how, shown = webhook.settings.authentication, {TARGET_KEY}
    if how.method == "token" or (how.method == "hmac" and how.provider in TAKES_OURS):
        shown |= {"main", "second"}
    if not shown & webhook.secret_fields:
        return {}
    check_secrets(webhook)
    revealed = {
        field: secret.value.decode("utf-8", "replace")
        for field, secret in webhook.secrets.items()
        if field in shown
    }
    await note_down(gateway, actor, "secret revealed", webhook_id, fields=sorted(revealed))
    return revealed
