"""Configuration as code: writes all webhooks as one document, and makes the webhooks what a document says.

A document holds the settings that differ from their defaults, and references to secrets instead of their values. A setting
that it leaves out has its default; a secret that it leaves out stays as it is.
"""

import re
from typing import Any

import msgspec

from postern.core.access.accounts import Actor
from postern.core.documents import Document
from postern.core.problems import Refused
from postern.core.signatures.encoding import is_stand_in
from postern.core.webhooks.settings import without_defaults
from postern.core.webhooks.stored import StoredWebhook, UnreadableWebhook
from postern.core.webhooks.target import is_variable
from postern.usecases.access.audit import webhook_noted
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.stored_webhook import save
from postern.usecases.webhooks.file.planning import (
    VERSION,
    Change,
    entries_of,
    free_names,
    path_owners,
    planned,
)
from postern.usecases.webhooks.file.references import SecretOf
from postern.usecases.webhooks.requests import SECRETS, SEND_AGAIN, TARGET_PREFIX
from postern.usecases.webhooks.views import Applied, AppliedChange, Configuration, Named, SettingChange


async def export(gateway: Gateway, actor: Actor) -> Configuration:
    """Every webhook as configuration that can be kept and applied again, as `postern export` writes it. It
    holds references to secrets, where they are looked for, never values."""
    require(actor, "read")
    taken: set[str] = set()
    stored, unreadable = await _all(gateway)
    if unreadable:
        # Applied again with --prune, a file without it would delete it.
        raise Refused("temporarily_unavailable", unreadable[0].explanation)
    return Configuration(version=VERSION, webhooks=[_written(webhook, taken) for webhook in stored])


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
    free = await free_names(gateway, entries)
    owners = await path_owners(gateway, entries)
    plan, notes = planned(
        gateway, stored, unreadable, entries=entries, free=free, owners=owners, secret_of=secret_of
    )
    named = {change.webhook.id for change in plan}
    others = [webhook for webhook in stored if webhook.id not in named]
    if prune:
        plan += [Change("delete", webhook) for webhook in others]
    notes += [f"{webhook.explanation} It is left alone." for webhook in unreadable]
    doing = [change for change in plan if change.action != "keep"]
    if not dry_run:
        known = named | {entry.id for entry in stored} | {entry.id for entry in unreadable}
        await _carried_out(gateway, actor, doing, known)
    return Applied(
        dry_run=dry_run,
        changes=[_applied(item, dry_run) for item in plan if item.action != "keep"],
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
    """The webhooks, oldest first, so that a file grows at its end; and those whose settings cannot be read."""
    every: list[StoredWebhook | UnreadableWebhook] = []
    while page := await gateway.store.webhooks.page(200, every[-1].id if every else None):
        every += page
    stored = [webhook for webhook in reversed(every) if isinstance(webhook, StoredWebhook)]
    return stored, [webhook for webhook in every if isinstance(webhook, UnreadableWebhook)]


async def _carried_out(gateway: Gateway, actor: Actor, changes: list[Change], known: set[str]) -> None:
    """``known``: the webhooks that are there or are made here. If somebody makes another one meanwhile, perhaps of the same
    file, nothing is made: there would be two of one name."""
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
            why = (
                f": {refused.errors[0].message}"
                if refused.errors
                else " was changed by somebody else meanwhile"
            )
            detail = f"{change.webhook.name}{why}; {done} of {len(changes)} changes are done. Apply again."
            raise Refused(refused.code, detail) from None
    await gateway.runtime.directory.refresh()


# --- what an export writes ------------------------------------------------------------------------------------------

_NAMED = {"main": "", "second": "SECOND_", "verifyToken": "VERIFY_"}


def _written(webhook: StoredWebhook, taken: set[str]) -> Document:
    settings = without_defaults(webhook.settings)
    authentication = settings["authentication"]
    for name, kept in SECRETS[authentication["method"]].items():
        if kept in webhook.secrets:
            kind = "TOKEN" if authentication["method"] == "token" or kept == "verifyToken" else "SECRET"
            if is_stand_in(webhook.secrets[kept].value):
                # A reference would promise a secret that nobody has.
                authentication[name] = {"generate": True}
            else:
                authentication[name] = {"env": _variable(webhook, _NAMED[kept] + kind, taken)}
    if webhook.settings.schedule is not None and webhook.settings.schedule.headers:
        settings["schedule"]["headers"] = {
            name: {"env": _variable(webhook, f"HEADER_{name}", taken)}
            for name in webhook.settings.schedule.headers
        }
    if (target := webhook.settings.target) is not None:
        settings["target"]["signingSecret"] = {"env": _variable(webhook, "TARGET_KEY", taken)}
        values = {
            header: webhook.secrets[TARGET_PREFIX + header.lower()].value.decode()
            for header in target.headers
        }
        settings["target"]["headers"] = {
            name: value if is_variable(value) else {"env": _variable(webhook, f"TARGET_{name}", taken)}
            for name, value in values.items()
        }
    if SEND_AGAIN in webhook.secrets:
        settings["sendAgain"]["token"] = {"env": _variable(webhook, "SEND_AGAIN_TOKEN", taken)}
    switched_off = {} if webhook.enabled else {"enabled": False}
    return {
        "name": settings.pop("name"),
        "id": webhook.id,
        "shortCode": webhook.short_code,
        **switched_off,
        **settings,
    }


def _variable(webhook: StoredWebhook, what: str, taken: set[str]) -> str:
    stem, end = (re.sub(r"[^A-Z0-9]+", "_", text.upper()).strip("_") for text in (webhook.name, what))
    if not stem[:1].isalpha() or stem.startswith("POSTERN"):
        # The program refuses variables that begin with POSTERN_ and that it does not know.
        stem = f"WEBHOOK_{stem}".rstrip("_")
    name = f"{stem}_{end}"
    if name in taken:
        name = f"{name}_{webhook.id[-6:].upper()}"
    taken.add(name)
    return name
