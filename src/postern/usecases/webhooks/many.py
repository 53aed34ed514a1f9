"""Changes many webhooks at once: those that are named, or all that match a filter."""

from dataclasses import replace
from typing import Annotated

from msgspec import Struct, field
from msgspec.structs import replace as replaced_in
from pydantic import AfterValidator, Field

from postern.core.access.accounts import Actor
from postern.core.access.audit import AuditEntry
from postern.core.problems import FieldError, Refused, refuse_wrong
from postern.core.webhooks import bounds
from postern.core.webhooks.grouping import LONGEST_FOLDER, MOST_TAGS, distinct, folder_of
from postern.core.webhooks.listing import WebhookAction
from postern.core.webhooks.stored import StoredWebhook, UnreadableWebhook
from postern.usecases.access.audit import noted, webhook_noted
from postern.usecases.answers import UNSET
from postern.usecases.deliveries.holds import move
from postern.usecases.history.volumes import last_day_of_all
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.shapes import Shape
from postern.usecases.stored_webhook import NO_WEBHOOK
from postern.usecases.webhooks import views
from postern.usecases.webhooks.listing import WebhookFilterRequest, all_that_match
from postern.usecases.webhooks.picking import names
from postern.usecases.webhooks.preparing import compiles

WEBHOOKS_AT_ONCE = 100
"""Webhooks in one transaction. Calls are stored between two."""
MOST_REASONS = 100
MOST_NAMED = 1000
MOST_SHOWN = 5


class ManyRequest(Shape):
    """Which webhooks: ``webhookIds``, or ``filter``; an empty filter is all of them."""

    action: WebhookAction
    webhook_ids: Annotated[list[str], Field(min_length=1, max_length=MOST_NAMED)] | None = None
    filter: WebhookFilterRequest | None = None
    tags: Annotated[list[str], AfterValidator(bounds.tags)] = Field(
        default=[], max_length=MOST_TAGS, description="For tag and untag."
    )
    folder: Annotated[str, Field(max_length=LONGEST_FOLDER), AfterValidator(folder_of)] | None = Field(
        default=None, description="For move: the folder they go to; null takes them out of theirs."
    )
    expected: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="How many webhooks it is about: refused where it is another number now."
    )
    dry_run: bool = Field(default=False, description="Only say what would be done.")


class _Result(Struct):
    done: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    not_done: int = 0
    reasons: list[views.NotDone] = field(default_factory=list)

    def refuse(self, webhook_id: str, name: str, reason: str) -> None:
        self.not_done += 1
        if len(self.reasons) < MOST_REASONS:
            self.reasons.append(views.NotDone(id=webhook_id, name=name, reason=reason))


async def change(gateway: Gateway, actor: Actor, request: ManyRequest) -> views.Many:
    """Enable, disable, hold, release, tag, untag, move into a folder or delete the webhooks that are named,
    or all that match a filter. One with which it cannot be done does not keep the others from it: the answer
    says which and why."""
    require(actor, "write")
    _check(request)
    ids = await _meant(gateway, request)
    if request.expected is not None and request.expected != len(ids):
        detail = (
            f"it is about {len(ids)} webhooks now, and {request.expected} were expected: look at them again"
        )
        raise Refused("conflict", detail)
    result = _Result()
    for start in range(0, len(ids), WEBHOOKS_AT_ONCE):
        await _do(gateway, actor, request, ids[start : start + WEBHOOKS_AT_ONCE], of=len(ids), result=result)
    released, would = 0, {}
    if request.dry_run:
        would = await names(gateway, actor, result.done[:MOST_REASONS])
    else:
        if result.done:
            await gateway.runtime.directory.refresh()
        if request.action == "release":
            # Webhooks that were released before are taken too: that release may have been interrupted.
            released = await _released(gateway, [*result.done, *result.unchanged])
    return views.Many(
        action=request.action,
        dry_run=request.dry_run,
        matched=len(ids),
        done=len(result.done),
        unchanged=len(result.unchanged),
        not_done=result.not_done,
        reasons=result.reasons,
        released=released,
        webhooks=[views.Named(id=webhook_id, name=name) for webhook_id, name in would.items()]
        if would
        else UNSET,
    )


class Effects(Struct, frozen=True):
    """``names``: of the first few. ``last_day``: calls in the last 24 hours. ``waiting``: what a release would start."""

    count: int
    names: list[str]
    last_day: int
    waiting: int


async def effects(gateway: Gateway, actor: Actor, request: ManyRequest) -> Effects:
    """How many webhooks a change is about, and who would notice."""
    require(actor, "write")
    ids = await _meant(gateway, request)
    last_day = await last_day_of_all(gateway)
    waiting = 0
    for start in range(0, len(ids) if request.action == "release" else 0, 500):
        waiting += sum((await gateway.store.deliveries.held(ids[start : start + 500])).values())
    return Effects(
        len(ids),
        list((await names(gateway, actor, ids[:MOST_SHOWN], deleted=True)).values()),
        sum(last_day.get(webhook_id, 0) for webhook_id in ids),
        waiting,
    )


def _check(request: ManyRequest) -> None:
    errors = []
    if (request.webhook_ids is None) == (request.filter is None):
        errors.append(FieldError("webhookIds", "name webhooks, or give a filter: one of the two"))
    if request.action in ("tag", "untag") and not request.tags:
        errors.append(FieldError("tags", "is required: which tags"))
    if request.action == "move" and "folder" not in request.model_fields_set:
        errors.append(FieldError("folder", "is required; null takes them out of their folder"))
    refuse_wrong(errors)


async def _meant(gateway: Gateway, request: ManyRequest) -> list[str]:
    if request.webhook_ids is not None:
        return list(dict.fromkeys(request.webhook_ids))
    criteria = (request.filter or WebhookFilterRequest()).wanted("filter.")
    return [webhook.id for webhook in await all_that_match(gateway, criteria)]


async def _do(
    gateway: Gateway, actor: Actor, request: ManyRequest, ids: list[str], *, of: int, result: _Result
) -> None:
    """Changes some of the ``of`` webhooks, in one transaction."""
    stored = await gateway.store.webhooks.some(ids)
    doing: list[tuple[StoredWebhook, AuditEntry]] = []
    deleting: list[AuditEntry] = []
    for webhook_id in ids:
        webhook = stored.get(webhook_id)
        if webhook is None:
            result.refuse(webhook_id, "", NO_WEBHOOK)
        elif request.action == "delete":
            note = noted(gateway, actor, "webhook deleted", webhook_id, name=webhook.name, together=of)
            deleting.append(note)
        elif isinstance(webhook, UnreadableWebhook):
            result.refuse(webhook_id, webhook.name, webhook.explanation)
        else:
            try:
                changed = _changed(webhook, request)
            except Refused as refused:
                said = "; ".join(error.message for error in refused.errors)
                result.refuse(webhook_id, webhook.name, said or refused.detail or refused.problem.title)
                continue
            if changed == webhook:
                result.unchanged.append(webhook_id)
                continue
            changed.version, changed.updated_at = webhook.version + 1, gateway.clock()
            action = _NOTED.get(request.action, "webhook changed")
            note = webhook_noted(gateway, actor, action, changed, webhook)
            doing.append((changed, replaced_in(note, changes={**note.changes, "together": of})))
    notes = deleting or [note for _, note in doing]
    if request.dry_run or not notes:
        result.done += [note.subject for note in notes]
        return
    if deleting:
        answers = await gateway.store.bin.delete_each(deleting, gateway.clock())
    else:
        answers = await gateway.store.webhooks.update_each(doing)
    for note, is_done in zip(notes, answers, strict=True):
        if is_done:
            result.done.append(note.subject)
        else:
            name = stored[note.subject].name
            result.refuse(note.subject, name, "somebody else has changed it meanwhile")


async def _released(gateway: Gateway, ids: list[str]) -> int:
    """Asks for many webhooks at once where something waits: each release is a transaction of its own."""
    released = 0
    for start in range(0, len(ids), 500):
        for webhook_id in await gateway.store.deliveries.held(ids[start : start + 500]):
            released += await move(gateway, webhook_id, "queued")
    return released


def _changed(webhook: StoredWebhook, request: ManyRequest) -> StoredWebhook:
    """A changed copy, which equals the webhook if there is nothing to change. Raises ``Refused``."""
    settings = webhook.settings
    match request.action:
        case "enable":
            changed = replace(webhook, enabled=True)
            if not webhook.enabled:
                compiles(changed, {})
            return changed
        case "disable":
            return replace(webhook, enabled=False)
        case "hold" | "release":
            return replace(webhook, held=request.action == "hold")
        case "tag":
            tags = distinct([*settings.tags, *request.tags])
            if len(tags) > MOST_TAGS:
                raise Refused("conflict", f"it would have {len(tags)} tags, and {MOST_TAGS} is the most")
            return replace(webhook, settings=replaced_in(settings, tags=tags))
        case "untag":
            gone = {tag.casefold() for tag in request.tags}
            tags = [tag for tag in settings.tags if tag.casefold() not in gone]
            return replace(webhook, settings=replaced_in(settings, tags=tags))
        case "move":
            return replace(webhook, settings=replaced_in(settings, folder=request.folder))
        case "delete":
            raise ValueError("a deleted webhook is not changed")


_NOTED = {"hold": "webhook held", "release": "webhook released"}
