"""Plans the changes that make the webhooks what the file says. Nothing is changed here."""

import hmac
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from postern.core.documents import Document
from postern.core.problems import FieldError, Refused, invalid, refuse_wrong
from postern.core.webhooks.bounds import has_path, is_short_code
from postern.core.webhooks.settings import NoAuthentication, WebhookSettings, as_document
from postern.core.webhooks.stored import StoredSecret, StoredWebhook, UnreadableWebhook
from postern.identity import is_id
from postern.usecases.access.audit import differences
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.webhooks.file.references import References, SecretOf
from postern.usecases.webhooks.preparing import prepared, replaced, request_for
from postern.usecases.webhooks.requests import SECRET_PREFIX, TARGET_PREFIX

VERSION = 1

# A webhook with nothing set. A new one is shown as the difference to it.
_BARE: Document = {
    **as_document(WebhookSettings(name="-", authentication=NoAuthentication())),
    "name": None,
    "authentication": {},
}


PlannedAction = Literal["create", "change", "keep", "delete"]


@dataclass(slots=True)
class Change:
    action: PlannedAction
    webhook: StoredWebhook
    secrets: dict[str, bytes | None] = field(default_factory=dict, repr=False)
    differences: Document = field(default_factory=dict)
    before: StoredWebhook | None = None


def planned(
    gateway: Gateway,
    stored: list[StoredWebhook],
    unreadable: list[UnreadableWebhook],
    *,
    entries: list[Document],
    free: set[str],
    owners: dict[str, tuple[str, str]],
    secret_of: SecretOf,
) -> tuple[list[Change], list[str]]:
    """The changes, and notes about them. ``free``: ids and short codes that new webhooks may have. ``owners``: id and name of
    the webhook that has a path now."""
    plan: list[Change] = []
    notes: list[str] = []
    errors: list[FieldError] = []
    known = _Known(stored, {_key("id", entry)[1] for entry in entries})
    closed = {key: webhook for webhook in unreadable for key in (("id", webhook.id), ("name", webhook.name))}
    taken: set[tuple[str, Any]] = set()
    paths: dict[str, tuple[str, str]] = {}
    for place, entry in enumerate(entries):
        try:
            before = known.meant(entry)
            for key in (_key("id", entry), _key("name", entry)):
                if before is None and key in closed:
                    raise invalid("id", closed[key].explanation)
            if taken & _taken_by(entry, before):
                raise invalid("name", "an entry before this one is the same webhook")
            change = _one(gateway, entry, before, free, References(entry, before, secret_of, notes))
            code = _own_code(entry)
            if code and change.webhook.short_code != code:
                was = (
                    "keeps its URL here"
                    if before
                    else "gets a new URL: another webhook has the one of the file"
                )
                notes.append(f"{change.webhook.name} {was}.")
            free -= {change.webhook.id, change.webhook.short_code}
            if path := change.webhook.settings.path:
                if path in paths:
                    raise invalid("path", "an entry before this one has this path")
                paths[path] = change.webhook.id, f"webhooks.{place}.path"
            plan.append(change)
            taken |= {("id", change.webhook.id), ("name", change.webhook.name)}
            if not _own_id(entry):
                taken.add(("only name", change.webhook.name))
        except Refused as refused:
            errors += [
                FieldError(f"webhooks.{place}.{error.field}", error.message) for error in refused.errors
            ]
    after = {change.webhook.id: change.webhook.settings.path for change in plan}
    for path, (id, place_of_it) in paths.items():
        owner, name = owners.get(path, (id, ""))
        if owner != id and after.get(owner, path) == path:
            errors.append(FieldError(place_of_it, has_path(name)))
    # First the changes to a path that nobody has now: others may take the path that they give up.
    plan.sort(key=lambda change: change.webhook.settings.path in owners)
    if errors:
        raise Refused("invalid_request", "Nothing was changed: the configuration is not valid.", errors)
    return plan, notes


def entries_of(document: Any) -> list[Document]:
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise invalid("version", f"write version: {VERSION} at the top")
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
    refuse_wrong(errors)
    return entries


async def free_names(gateway: Gateway, entries: list[Document]) -> set[str]:
    """The ids and short codes of entries that no webhook of this gateway has, also none in the bin."""
    pairs = [(_own_id(entry), _own_code(entry)) for entry in entries]
    taken = {""}
    for start in range(0, len(pairs), 500):
        taken |= await gateway.store.webhooks.taken(*map(list, zip(*pairs[start : start + 500], strict=True)))
    return {name for names in pairs for name in names} - taken


async def path_owners(gateway: Gateway, entries: list[Document]) -> dict[str, tuple[str, str]]:
    """Id and name of the webhooks that have a path of these entries, also of those in the bin."""
    paths, owners = (
        [path for entry in entries if (path := _key("path", entry)[1])],
        dict[str, tuple[str, str]](),
    )
    for start in range(0, len(paths), 500):
        owners |= await gateway.store.webhooks.owners(paths[start : start + 500])
    return owners


def _own_id(entry: Document) -> str:
    _, own = _key("id", entry)
    return own if is_id("wh", own) else ""


def _own_code(entry: Document) -> str:
    _, code = _key("shortCode", entry)
    return code if is_short_code(code) else ""


def _taken_by(entry: Document, before: StoredWebhook | None) -> set[tuple[str, Any]]:
    """The keys that another entry must not have taken before. Two entries with ids of their own may have one name."""
    if before is not None:
        return {("id", before.id)}
    name = _key("name", entry)
    own = _own_id(entry)
    return {("id", own), ("only name", name[1])} if own else {name}


def _key(name: str, entry: Document) -> tuple[str, str]:
    """Somebody wrote the entry by hand, so an id or a name may be anything."""
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
        """The webhook of this id, else the one of this name: a file from another installation has other ids. A name does not
        mean a webhook that another entry names by its id."""
        if same_id := self._by_id.get(_key("id", entry)[1]):
            return same_id
        same = self._by_name.get(_key("name", entry)[1], [])
        if _own_id(entry):
            same = [webhook for webhook in same if webhook.id not in self._named]
        if len(same) > 1:
            ids = ", ".join(webhook.id for webhook in same)
            raise invalid("id", f"several webhooks have this name; choose one of {ids}")
        return same[0] if same else None


def _one(
    gateway: Gateway, entry: Document, before: StoredWebhook | None, free: set[str], references: References
) -> Change:
    settings = references.settings()
    if "shortCode" in entry and not _own_code(entry):
        wrong = "is not one that Postern has made; leave it out for a new URL"
        references.errors.append(FieldError("shortCode", wrong))
    try:
        request = request_for(gateway, before, settings, references.removed)
    except Refused as refused:
        told = {error.field: error for error in [*refused.errors, *references.errors]}
        raise Refused("invalid_request", errors=list(told.values())) from None
    refuse_wrong(references.errors)
    if before is None:
        after, changes = prepared(gateway, request)
        if (own := _own_id(entry)) in free:
            after.id = own
        if (code := _own_code(entry)) in free:
            after.short_code = code
    else:
        after = replace(before)
        changes = replaced(gateway, after, request, references.removed)
    stored = before.secrets if before is not None else {}
    changes = {name: value for name, value in changes.items() if not _is_stored(stored.get(name), value)}
    was = {_secret(name): "set" for name in changes if name in stored}
    now = {_secret(name): "another" if name in stored else "set" for name, value in changes.items() if value}
    changed = differences((_BARE if before is None else _shown(before)) | was, _shown(after) | now)
    action: PlannedAction = "create" if before is None else "change" if changed else "keep"
    return Change(action, after, changes, changed, before)


def _is_stored(kept: StoredSecret | None, value: bytes | None) -> bool:
    return kept is None if value is None else kept is not None and hmac.compare_digest(kept.value, value)


def _secret(name: str) -> str:
    return f"secret {name.removeprefix(SECRET_PREFIX).removeprefix(TARGET_PREFIX)}"


def _shown(webhook: StoredWebhook) -> Document:
    """The settings to compare, without those that are not set."""

    def without_nothing(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: without_nothing(member) for name, member in value.items() if member is not None}
        return value

    shown: Document = without_nothing({**as_document(webhook.settings), "enabled": webhook.enabled})
    return shown
