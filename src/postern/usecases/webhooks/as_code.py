"""Configuration as code: every webhook as one document, and making the webhooks what a document says.

A document holds all settings that differ from their defaults, and of secrets a reference to where their value
is to be found. What it leaves out has its default; a secret it leaves out stays as it is.
"""

import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import msgspec

from postern.core.access.accounts import Actor
from postern.core.documents import Document
from postern.core.problems import FieldError, Refused
from postern.core.webhooks.settings import NoAuthentication, WebhookSettings, as_document, without_defaults
from postern.core.webhooks.stored import StoredWebhook, UnreadableWebhook
from postern.identity import is_id, is_stand_in
from postern.usecases.access.audit import differences, webhook_noted
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.webhooks.configuration import (
    SECRETS,
    SignatureAuthentication,
    WebhookRequest,
    validated,
)
from postern.usecases.webhooks.preparing import prepared, replaced
from postern.usecases.webhooks.resolving import provider_errors
from postern.usecases.webhooks.schedule_setting import SECRET_PREFIX
from postern.usecases.webhooks.views import Applied, AppliedChange, Configuration, Named, SettingChange
from postern.usecases.webhooks.webhooks import save

VERSION = 1

SecretOf = Callable[[str, str], str | None]
"""``("env", NAME)`` or ``("file", PATH)`` to the secret, or None where there is nothing of that name."""

# A webhook with nothing set: what is shown of a new one is the difference to it.
_BARE: Document = {
    **as_document(WebhookSettings(name="-", authentication=NoAuthentication())),
    "name": None,
    "authentication": {},
}

_NAMES = {"main": "", "second": "SECOND_", "verifyToken": "VERIFY_"}


async def export(gateway: Gateway, actor: Actor) -> Configuration:
    """Every webhook as configuration that can be kept and applied again; of secrets only where to look for
    them."""
    require(actor, "read")
    taken: set[str] = set()
    stored, unreadable = await _all(gateway)
    if unreadable:
        # Applied again with --prune, a file without it would delete it.
        raise Refused("temporarily_unavailable", unreadable[0].explanation)
    return Configuration(version=VERSION, webhooks=[_exported(webhook, taken) for webhook in stored])


@dataclass(slots=True)
class Change:
    action: Literal["create", "change", "keep", "delete"]
    webhook: StoredWebhook
    secrets: dict[str, bytes | None] = field(default_factory=dict, repr=False)
    differences: Document = field(default_factory=dict)
    before: StoredWebhook | None = None


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
    entries = _entries(document)
    free = await _free_ids(gateway, entries)
    plan, notes = _planned(gateway, stored, unreadable, entries, free, secret_of)
    named = {change.webhook.id for change in plan}
    others = [webhook for webhook in stored if webhook.id not in named]
    if prune:
        plan += [Change("delete", webhook) for webhook in others]
    notes += [f"{webhook.explanation} It is left alone." for webhook in unreadable]
    doing = [change for change in plan if change.action != "keep"]
    if not dry_run:
        await _carried_out(gateway, actor, doing)
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


# --- writing it down -------------------------------------------------------------------------------------------------


def _exported(webhook: StoredWebhook, taken: set[str]) -> Document:
    settings = without_defaults(webhook.settings)
    authentication = settings["authentication"]
    for name, kept in SECRETS[authentication["method"]].items():
        if kept in webhook.secrets:
            kind = "TOKEN" if authentication["method"] == "token" or kept == "verifyToken" else "SECRET"
            if is_stand_in(webhook.secrets[kept].value):
                authentication[name] = {
                    "generate": True
                }  # a name to look under would promise a secret that nobody has
            else:
                authentication[name] = {"env": _variable(webhook, _NAMES[kept] + kind, taken)}
    if webhook.settings.schedule is not None and webhook.settings.schedule.headers:
        settings["schedule"]["headers"] = {
            name: {"env": _variable(webhook, f"HEADER_{name}", taken)}
            for name in webhook.settings.schedule.headers
        }
    switched_off = {} if webhook.enabled else {"enabled": False}
    return {"name": settings.pop("name"), "id": webhook.id, **switched_off, **settings}


def _variable(webhook: StoredWebhook, what: str, taken: set[str]) -> str:
    stem, end = (re.sub(r"[^A-Z0-9]+", "_", text.upper()).strip("_") for text in (webhook.name, what))
    if not stem[:1].isalpha() or stem.startswith("POSTERN"):
        stem = f"WEBHOOK_{stem}".rstrip(
            "_"
        )  # the program's own settings begin with POSTERN_, and it refuses those it does not know
    name = f"{stem}_{end}"
    if name in taken:
        name = f"{name}_{webhook.id[-6:].upper()}"
    taken.add(name)
    return name


# --- finding out what to do ------------------------------------------------------------------------------------------


def _planned(
    gateway: Gateway,
    stored: list[StoredWebhook],
    unreadable: list[UnreadableWebhook],
    entries: list[Document],
    free: set[str],
    secret_of: SecretOf,
) -> tuple[list[Change], list[str]]:
    plan: list[Change] = []
    notes: list[str] = []
    errors: list[FieldError] = []
    # Looked up, not searched: a file may name ten thousand, and as many may be there.
    known = _Known(stored, {_key("id", entry)[1] for entry in entries})
    closed = {key: webhook for webhook in unreadable for key in (("id", webhook.id), ("name", webhook.name))}
    planned: set[tuple[str, Any]] = set()
    for place, entry in enumerate(entries):
        try:
            before = known.meant(entry)
            for key in (_key("id", entry), _key("name", entry)):
                if before is None and key in closed:
                    raise Refused("invalid_request", errors=[FieldError("id", closed[key].explanation)])
            if planned & _taken_by(entry, before):
                raise Refused(
                    "invalid_request",
                    errors=[FieldError("name", "an entry before this one is the same webhook")],
                )
            change = _one(gateway, entry, before, free, _References(entry, before, secret_of, notes))
            plan.append(change)
            planned |= {("id", change.webhook.id), ("name", change.webhook.name)}
            if not _own_id(entry):
                planned.add(("only name", change.webhook.name))
        except Refused as refused:
            errors += [
                FieldError(f"webhooks.{place}.{error.field}", error.message) for error in refused.errors
            ]
    if errors:
        raise Refused("invalid_request", "Nothing was changed: the configuration is not valid.", errors)
    return plan, notes


def _entries(document: Any) -> list[Document]:
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise Refused(
            "invalid_request", errors=[FieldError("version", f"write version: {VERSION} at the top")]
        )
    errors = [
        FieldError(str(name), "is not known here") for name in document if name not in ("version", "webhooks")
    ]
    entries = document.get("webhooks")
    if not isinstance(entries, list):
        errors.append(FieldError("webhooks", "is a list of webhooks"))
        entries = []
    errors += [
        FieldError(f"webhooks.{place}", "is no webhook: write its name and its settings")
        for place, entry in enumerate(entries)
        if not isinstance(entry, dict)
    ]
    if errors:
        raise Refused("invalid_request", errors=errors)
    return entries


async def _free_ids(gateway: Gateway, entries: list[Document]) -> set[str]:
    """The ids of entries that no webhook of this gateway has or ever had: a new webhook can have them."""
    asked = [own for entry in entries if (own := _own_id(entry))]
    given: set[str] = set()
    for start in range(0, len(asked), 500):
        given |= {row[0] for row in await gateway.store.webhooks.names(asked[start : start + 500])}
    return set(asked) - given


def _own_id(entry: Document) -> str:
    _, own = _key("id", entry)
    return own if is_id("wh", own) else ""


def _taken_by(entry: Document, before: StoredWebhook | None) -> set[tuple[str, Any]]:
    """What another entry may not have taken before this one. With ids of their own, two may have one name."""
    if before is not None:
        return {("id", before.id)}
    name = _key("name", entry)
    own = _own_id(entry)
    return {("id", own), ("only name", name[1])} if own else {name}


def _key(name: str, entry: Document) -> tuple[str, str]:
    """An entry is what somebody wrote: an id or a name may be anything."""
    value = entry.get(name)
    return name, value if isinstance(value, str) else ""


class _Known:
    def __init__(self, stored: list[StoredWebhook], named: set[str]) -> None:
        self._named = named
        self._by_id = {webhook.id: webhook for webhook in stored}
        self._by_name: dict[str, list[StoredWebhook]] = {}
        for webhook in stored:
            self._by_name.setdefault(webhook.name, []).append(webhook)

    def meant(self, entry: Document) -> StoredWebhook | None:
        """The webhook of this id, else the one of this name: a file from another installation brings ids that
        are not known here. An entry with an id does not mean by its name what another one names by its id."""
        if found := self._by_id.get(_key("id", entry)[1]):
            return found
        same = self._by_name.get(_key("name", entry)[1], [])
        if _own_id(entry):
            same = [webhook for webhook in same if webhook.id not in self._named]
        if len(same) > 1:
            ids = ", ".join(webhook.id for webhook in same)
            raise Refused(
                "invalid_request",
                errors=[FieldError("id", f"several webhooks have this name; choose one of {ids}")],
            )
        return same[0] if same else None


def _one(
    gateway: Gateway,
    entry: Document,
    before: StoredWebhook | None,
    free: set[str],
    references: "_References",
) -> Change:
    settings = references.settings()
    try:
        request: WebhookRequest = validated(WebhookRequest, settings)
    except Refused as refused:
        raise Refused("invalid_request", errors=[*refused.errors, *references.errors]) from None
    errors = list(references.errors)
    if isinstance(request.authentication, SignatureAuthentication):
        errors += provider_errors(request.authentication.provider)
    if errors:
        raise Refused("invalid_request", errors=errors)
    if before is None:
        made, secrets = prepared(gateway, request)
        if (own := _own_id(entry)) in free:
            made.id = own
        return Change("create", made, secrets, differences(_BARE, _shown(made) | _secrets_shown({}, secrets)))
    after = replace(before)
    changes = replaced(gateway, after, request, references.removed)
    changes = {name: value for name, value in changes.items() if not _is_stored(before, name, value)}
    found = differences(_shown(before), _shown(after)) | differences(*_both_secrets(before, changes))
    return Change("change" if found else "keep", after, changes, found, before)


def _is_stored(webhook: StoredWebhook, name: str, value: bytes | None) -> bool:
    kept = webhook.secrets.get(name)
    return kept is None if value is None else kept is not None and hmac.compare_digest(kept.value, value)


def _shown(webhook: StoredWebhook) -> Document:
    """The settings as they are compared: what is not set and what is left out are the same."""

    def without_nothing(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: without_nothing(one) for name, one in value.items() if one is not None}
        return value

    shown: Document = without_nothing({**as_document(webhook.settings), "enabled": webhook.enabled})
    return shown


def _secrets_shown(before: dict[str, str], changes: dict[str, bytes | None]) -> dict[str, str]:
    return {
        f"secret {name.removeprefix(SECRET_PREFIX)}": "another" if name in before else "set"
        for name, value in changes.items()
        if value
    }


def _both_secrets(before: StoredWebhook, changes: dict[str, bytes | None]) -> tuple[Document, Document]:
    was = {f"secret {name.removeprefix(SECRET_PREFIX)}": "set" for name in changes if name in before.secrets}
    return was, _secrets_shown(dict.fromkeys(before.secrets, ""), changes)


class _References:
    """One entry's references to secrets, followed. A value that cannot be found leaves the stored secret as
    it is, and says so."""

    def __init__(
        self, entry: Document, before: StoredWebhook | None, secret_of: SecretOf, notes: list[str]
    ) -> None:
        self.errors: list[FieldError] = []
        self.removed: set[str] = set()
        self._entry = entry
        self._before = before
        self._secret_of = secret_of
        self._notes = notes

    def settings(self) -> Document:
        settings = {name: value for name, value in self._entry.items() if name != "id"}
        if isinstance(authentication := settings.get("authentication"), dict):
            settings["authentication"] = authentication = dict(authentication)
            was = as_document(self._before.settings.authentication) if self._before else {}
            same = all(authentication.get(name) == was.get(name) for name in ("method", "provider"))
            for name, kept in SECRETS.get(str(authentication.get("method")), {}).items():
                if name in authentication:
                    value = self._followed(f"authentication.{name}", authentication.pop(name), kept, same)
                    if value is not None:
                        authentication[name] = value
                    elif self._entry["authentication"][name] is None:
                        self.removed.add(name)
        if isinstance(schedule := settings.get("schedule"), dict) and isinstance(
            headers := schedule.get("headers"), dict
        ):
            followed = {
                name: self._followed(
                    f"schedule.headers.{name}", value, SECRET_PREFIX + str(name).lower(), True
                )
                for name, value in headers.items()
            }
            settings["schedule"] = {**schedule, "headers": followed}
        return settings

    def _followed(self, place: str, reference: Any, kept: str, same_sender: bool) -> Any:
        is_stored = same_sender and self._before is not None and kept in self._before.secrets
        if reference is None:
            return None
        if reference == {"generate": True}:
            return None if is_stored else reference
        kind, where = (
            next(iter(reference.items())) if isinstance(reference, dict) and len(reference) == 1 else ("", "")
        )
        if kind not in ("env", "file") or not isinstance(where, str) or not where:
            self.errors.append(
                FieldError(place, "write {env: NAME} or {file: PATH}: a secret itself does not belong here")
            )
            return None
        value = self._secret_of(kind, where)
        if value is None and is_stored:
            self._notes.append(
                f"{self._entry.get('name')}: {where} is not there, so the stored {place.rpartition('.')[2]} stays."
            )
        elif value is None:
            lacks = "is not set in the environment" if kind == "env" else "is not there or cannot be read"
            self.errors.append(FieldError(place, f"{where} {lacks}"))
        return value


# --- doing it --------------------------------------------------------------------------------------------------------


async def _carried_out(gateway: Gateway, actor: Actor, changes: list[Change]) -> None:
    for done, change in enumerate(changes):
        try:
            if change.action == "create":
                note = webhook_noted(gateway, actor, "webhook created", change.webhook, None, change.secrets)
                await gateway.store.webhooks.create(change.webhook, change.secrets, note)
            elif change.action == "change":
                note = webhook_noted(
                    gateway, actor, "webhook changed", change.webhook, change.before, change.secrets
                )
                await save(gateway, change.webhook, change.secrets, note)
            elif change.action == "delete":
                note = webhook_noted(gateway, actor, "webhook deleted", change.webhook)
                await gateway.store.bin.delete(change.webhook.id, gateway.clock(), note)
        except Refused as refused:
            detail = f"{change.webhook.name} was changed by somebody else meanwhile; {done} of {len(changes)} changes are done. Apply again."
            raise Refused(refused.code, detail) from None
    await gateway.runtime.directory.refresh()
