"""Configuration as code: every webhook as one document, and making the webhooks what a document says.

A document holds all settings that differ from their defaults, and of secrets a reference to where their value
is to be found. What it leaves out has its default; a secret it leaves out stays as it is.
"""

from typing import Any

import msgspec

from postern.core.access.accounts import Actor
from postern.core.problems import Refused
from postern.core.webhooks.stored import StoredWebhook, UnreadableWebhook
from postern.usecases.access.audit import webhook_noted
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.stored_webhook import save
from postern.usecases.webhooks.file.planning import VERSION, Change, entries_of, free_ids, planned
from postern.usecases.webhooks.file.references import SecretOf
from postern.usecases.webhooks.file.writing import written
from postern.usecases.webhooks.views import Applied, AppliedChange, Configuration, Named, SettingChange


async def export(gateway: Gateway, actor: Actor) -> Configuration:
    """Every webhook as configuration that can be kept and applied again, as `postern export` writes it. Of
    secrets it holds references to where they are looked for, never values."""
    require(actor, "read")
    taken: set[str] = set()
    stored, unreadable = await _all(gateway)
    if unreadable:
        # Applied again with --prune, a file without it would delete it.
        raise Refused("temporarily_unavailable", unreadable[0].explanation)
    return Configuration(version=VERSION, webhooks=[written(webhook, taken) for webhook in stored])


async def apply(
    gateway: Gateway,
    actor: Actor,
    document: Any,
    secret_of: SecretOf,
    *,
    prune: bool = False,
    dry_run: bool = False,
) -> Applied:
    """Make the webhooks what the document says. All of it is checked before any of it is changed; what is
    right already is left alone. Webhooks that the document does not name stay, unless ``prune`` says to
    delete them."""
    require(actor, "write")
    stored, unreadable = await _all(gateway)
    entries = entries_of(document)
    free = await free_ids(gateway, entries)
    plan, notes = planned(gateway, stored, unreadable, entries, free, secret_of)
    named = {change.webhook.id for change in plan}
    others = [webhook for webhook in stored if webhook.id not in named]
    if prune:
        plan += [Change("delete", webhook) for webhook in others]
    notes += [f"{webhook.explanation} It is left alone." for webhook in unreadable]
    doing = [change for change in plan if change.action != "keep"]
    if not dry_run:
        known = named | {one.id for one in stored} | {one.id for one in unreadable}
        await _carried_out(gateway, actor, doing, known)
    return Applied(
        dry_run=dry_run,
        changes=[_applied(one, dry_run) for one in plan if one.action != "keep"],
        unchanged=len(plan) - len(doing),
        not_named=[] if prune else [Named(id=webhook.id, name=webhook.name) for webhook in others],
        notes=notes,
    )


def _applied(change: Change, dry_run: bool) -> AppliedChange:
    assert change.action != "keep"
    return AppliedChange(
        action=change.action,
        id=None if change.action == "create" and dry_run else change.webhook.id,
        name=change.webhook.name,
        differences=msgspec.convert(change.differences, dict[str, SettingChange]),
    )


async def _all(gateway: Gateway) -> tuple[list[StoredWebhook], list[UnreadableWebhook]]:
    """Oldest first, so that a file grows at its end; and those whose settings cannot be read."""
    found: list[StoredWebhook | UnreadableWebhook] = []
    while page := await gateway.store.webhooks.page(200, found[-1].id if found else None):
        found += page
    stored = [webhook for webhook in reversed(found) if isinstance(webhook, StoredWebhook)]
    return stored, [webhook for webhook in found if isinstance(webhook, UnreadableWebhook)]


async def _carried_out(gateway: Gateway, actor: Actor, changes: list[Change], known: set[str]) -> None:
    """``known``: the webhooks that were there, and those that are made. One that somebody makes meanwhile, perhaps of the
    same file, would have a second one of its name beside it."""
    for done, change in enumerate(changes):
        try:
            if change.action == "create":
                note = webhook_noted(gateway, actor, "webhook created", change.webhook, None, change.secrets)
                if not await gateway.store.webhooks.create(change.webhook, change.secrets, note, known=known):
                    raise Refused("version_conflict")
            elif change.action == "change":
                note = webhook_noted(
                    gateway, actor, "webhook changed", change.webhook, change.before, change.secrets
                )
                await save(gateway, change.webhook, change.secrets, note)
            elif change.action == "delete":
                note = webhook_noted(gateway, actor, "webhook deleted", change.webhook)
                await gateway.store.bin.delete(note, gateway.clock())
        except Refused as refused:
            detail = f"{change.webhook.name} was changed by somebody else meanwhile; {done} of {len(changes)} changes are done. Apply again."
            raise Refused(refused.code, detail) from None
    await gateway.runtime.directory.refresh()
