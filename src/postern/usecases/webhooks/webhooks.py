"""Creating, changing and reading webhooks. Secrets go in and never come out: answers say only whether one is
set."""

from dataclasses import replace
from typing import Any

from msgspec.structs import asdict
from msgspec.structs import replace as replaced_in

from postern.core.access.accounts import Actor
from postern.core.access.audit import AuditEntry
from postern.core.documents import Document, Patch
from postern.core.problems import FieldError, Refused
from postern.core.webhooks.settings import (
    Authentication,
    Resolved,
    SignatureAuthentication,
    TokenAuthentication,
    as_document,
)
from postern.core.webhooks.stored import StoredSecret, StoredWebhook, Tally, UnreadableWebhook
from postern.core.webhooks.webhook import Webhook
from postern.identity import new_id, new_short_code, new_signing_secret, new_stand_in, new_token
from postern.usecases.access.audit import noted, webhook_noted
from postern.usecases.answers import UNSET, Time, UnsetType
from postern.usecases.listeners.listeners import answering
from postern.usecases.listeners.views import Listener
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.schedules.states import schedule_states
from postern.usecases.schedules.views import ScheduleState
from postern.usecases.webhooks import views
from postern.usecases.webhooks.compiling import answer_timeout, compile_webhook
from postern.usecases.webhooks.configuration import SECRETS, Generate, WebhookRequest, parts, validated
from postern.usecases.webhooks.resolving import preset_update, resolved, scheme_of
from postern.usecases.webhooks.rotation import rotation
from postern.usecases.webhooks.schedule_setting import SECRET_PREFIX, check_address, header_changes
from postern.usecases.webhooks.warnings import awaits_secret, warnings

TAKES_OURS = ("generic", "custom", "standardwebhooks")
"""Who signs with a secret that was made here. Every other sender makes its own, and a generated one only
stands in for it."""


NO_WEBHOOK = "there is no webhook with this id"


async def create(gateway: Gateway, actor: Actor, request: WebhookRequest) -> views.Webhook:
    """A new webhook, enabled unless said otherwise."""
    require(actor, "write")
    webhook, secrets = prepared(gateway, request)
    await gateway.store.webhooks.create(
        webhook, secrets, webhook_noted(gateway, actor, "webhook created", webhook, None, secrets)
    )
    await gateway.runtime.directory.refresh()
    return await show(gateway, actor, webhook.id)


def prepared(gateway: Gateway, request: WebhookRequest) -> tuple[StoredWebhook, dict[str, bytes | None]]:
    """The webhook that a request asks for, and its secrets, tried as a call would use them. Nothing is stored
    yet."""
    settings, sent = parts(request)
    secrets = _made(settings.authentication, sent)
    _needs_main(settings.authentication, "main" in secrets)
    header_changes(settings.schedule, set(secrets))
    check_address(gateway.outbound.allowed, settings.schedule)
    now = gateway.clock()
    webhook = StoredWebhook(
        id=new_id("wh"),
        short_code=new_short_code(),
        enabled=request.enabled,
        held=False,
        settings=settings,
        resolved=_resolved(request),
        version=1,
        created_at=now,
        updated_at=now,
    )
    compiles(webhook, dict(secrets))
    return webhook, dict(secrets)


async def show(gateway: Gateway, actor: Actor, webhook_id: str) -> views.Webhook:
    """One webhook: every setting, and of its secrets whether they are set."""
    require(actor, "read")
    webhook = await stored(gateway, webhook_id)
    tallies = await gateway.store.webhooks.tallies([webhook_id])
    states = await schedule_states(gateway, [webhook])
    listener = (await answering(gateway)).get(webhook_id)
    return presented(gateway, webhook, tallies[webhook_id], states[webhook_id], listener)


async def change(
    gateway: Gateway, actor: Actor, webhook_id: str, patch: Patch, seen_version: int | None = None
) -> views.Webhook:
    """A merge patch (RFC 7396). Secrets that are not named stay; another method or provider starts without
    any."""
    require(actor, "write")
    webhook = await stored(gateway, webhook_id)
    check_version(webhook, seen_version)
    before = replace(webhook)
    changes = altered(gateway, webhook, patch)
    await save(
        gateway, webhook, changes, webhook_noted(gateway, actor, "webhook changed", webhook, before, changes)
    )
    return await show(gateway, actor, webhook_id)


def altered(gateway: Gateway, webhook: StoredWebhook, patch: Patch) -> dict[str, bytes | None]:
    request: WebhookRequest = validated(WebhookRequest, _merged(as_request(webhook), patch))
    given = patch.get("authentication")
    removed = {name for name, value in given.items() if value is None} if isinstance(given, dict) else set()
    return replaced(gateway, webhook, request, removed)


def tried(gateway: Gateway, webhook: StoredWebhook, patch: Patch) -> Webhook:
    """The webhook as calls would meet it after this change. Nothing is stored."""
    changes = altered(gateway, webhook, patch)
    return compiles(webhook, changes)


def as_request(webhook: StoredWebhook) -> Document:
    """The settings as a request would ask for them, without the secrets."""
    asked = {**as_document(webhook.settings), "enabled": webhook.enabled}
    if webhook.settings.schedule is not None:
        asked["schedule"]["headers"] = dict.fromkeys(webhook.settings.schedule.headers)
    return asked


def replaced(
    gateway: Gateway, webhook: StoredWebhook, request: WebhookRequest, removed: set[str]
) -> dict[str, bytes | None]:
    """Gives the webhook these settings and no others, tried as a call would use them. The answer says which
    secrets change: those that the request brings, and those that are removed by their name. Nothing is stored
    yet."""
    settings, sent = parts(request)
    changes: dict[str, bytes | None] = dict(_made(settings.authentication, sent))
    keeps = _same_sender(webhook.settings.authentication, settings.authentication)
    for name, field in SECRETS[settings.authentication.method].items():
        if name in removed:
            changes[field] = None
    if not keeps:
        changes = {
            **dict.fromkeys(field for field in _fields(webhook) if not field.startswith(SECRET_PREFIX)),
            **changes,
        }
    changes |= header_changes(
        settings.schedule, {field for field, value in changes.items() if value}, webhook
    )
    after = {field for field in _fields(webhook) if changes.get(field, b"") is not None} | {
        field for field, value in changes.items() if value
    }
    _needs_main(settings.authentication, "main" in after)
    check_address(gateway.outbound.allowed, settings.schedule, webhook.settings.schedule)
    webhook.resolved = _resolved(request, webhook.resolved if keeps else None)
    webhook.settings, webhook.enabled = settings, request.enabled
    compiles(webhook, changes)
    return changes


async def switch(
    gateway: Gateway, actor: Actor, webhook_id: str, enabled: bool, seen_version: int | None = None
) -> views.Webhook:
    """Enable or disable a webhook."""
    return await change(gateway, actor, webhook_id, {"enabled": enabled}, seen_version)


async def promote(
    gateway: Gateway, actor: Actor, webhook_id: str, seen_version: int | None = None
) -> views.Webhook:
    """The second valid secret becomes the main one, and the second is cleared."""
    require(actor, "write")
    webhook = await stored(gateway, webhook_id)
    check_version(webhook, seen_version)
    if "second" not in webhook.secrets:
        raise Refused("conflict", "there is no second secret to promote")
    await save(gateway, webhook, {}, noted(gateway, actor, "secret promoted", webhook.id), promote=True)
    return await show(gateway, actor, webhook_id)


async def adopt(
    gateway: Gateway, actor: Actor, webhook_id: str, seen_version: int | None = None
) -> views.Webhook:
    """Take the secret that a sender announced in its set-up handshake as the main one. Whether it was the
    sender, its owner must say."""
    require(actor, "write")
    webhook = await stored(gateway, webhook_id)
    check_version(webhook, seen_version)
    announced = webhook.secrets.get("captured")
    if announced is None:
        raise Refused("conflict", "no sender has announced a secret")
    changes: dict[str, bytes | None] = {"main": announced.value, "captured": None}
    compiles(webhook, changes)
    await save(gateway, webhook, changes, noted(gateway, actor, "announced secret taken", webhook.id))
    return await show(gateway, actor, webhook_id)


async def remove(gateway: Gateway, actor: Actor, webhook_id: str, seen_version: int | None = None) -> None:
    """Into the bin: its URL answers 404, and for seven days it can be restored with everything it was. Its history
    stays until retention takes it."""
    require(actor, "write")
    # Not `stored`: one whose settings cannot be read can be deleted, too.
    webhook = await gateway.store.webhooks.get(webhook_id)
    if webhook is None:
        raise Refused("not_found", NO_WEBHOOK)
    check_version(webhook, seen_version)
    note = noted(gateway, actor, "webhook deleted", webhook_id, name=webhook.name)
    if not await gateway.store.webhooks.delete(webhook_id, gateway.clock(), note):
        raise Refused("not_found")
    await gateway.runtime.directory.refresh()


async def reveal(gateway: Gateway, actor: Actor, webhook_id: str) -> dict[str, str]:
    """The secrets that whoever sets the caller up has to copy from here: tokens, and signing secrets made for
    a sender that takes ours.

    For the console alone; REST and MCP never tell a secret. A secret that came from a sender is looked up
    there.
    """
    require(actor, "write")
    webhook = await stored(gateway, webhook_id)
    how = webhook.settings.authentication
    if how.method == "none" or (how.method == "hmac" and how.provider not in TAKES_OURS):
        return {}
    revealed = {
        field: secret.value.decode("utf-8", "replace")
        for field, secret in webhook.secrets.items()
        if field in ("main", "second", "captured")
    }
    await gateway.store.audit.write(
        noted(gateway, actor, "secret revealed", webhook_id, fields=sorted(revealed))
    )
    return revealed


def presented(
    gateway: Gateway,
    webhook: StoredWebhook,
    tallies: dict[str, Tally],
    schedule: ScheduleState | None,
    listener: Listener | None,
) -> views.Webhook:
    """A webhook as every surface shows it. Of secrets: whether they are set, how often each matched, and when
    last."""
    settings, calls = webhook.settings, tallies.get("calls")
    is_recording = webhook.armed_until is not None and webhook.armed_until > gateway.clock()
    waits = answer_timeout(settings, webhook.resolved) or settings.synchronous_response.timeout_seconds
    return views.Webhook(
        id=webhook.id,
        url=gateway.site.webhook_url(webhook.short_code),
        enabled=webhook.enabled,
        held=webhook.held,
        recording_until=Time.maybe(webhook.armed_until) if is_recording else None,
        version=webhook.version,
        created_at=Time(webhook.created_at),
        updated_at=Time(webhook.updated_at),
        call_count=calls.count if calls else 0,
        last_call_at=Time(calls.last_at) if calls else None,
        name=settings.name,
        folder=settings.folder,
        tags=settings.tags,
        authentication=_authentication(webhook, tallies, gateway.clock()),
        field_mapping=settings.field_mapping,
        synchronous_response=replaced_in(settings.synchronous_response, timeout_seconds=waits),
        duplicate_protection=settings.duplicate_protection,
        cors=settings.cors,
        ip_allowlist=settings.ip_allowlist,
        payload_limit_bytes=settings.payload_limit_bytes,
        rate_limit=settings.rate_limit,
        schedule=settings.schedule,
        history_retention_days=settings.history_retention_days,
        body_retention_days=settings.body_retention_days,
        schedule_state=schedule,
        answered_by=listener,
        warnings=warnings(webhook, schedule),
    )


def _authentication(webhook: StoredWebhook, tallies: dict[str, Tally], now: float) -> views.Authentication:
    def is_set(field: str) -> bool:
        return field in _fields(webhook)

    def use(field: str) -> views.SecretUse | UnsetType:
        secret = webhook.secrets.get(field)
        if secret is None:
            return UNSET
        tally = tallies.get(f"secret:{secret.id}")
        return views.SecretUse(
            match_count=tally.count if tally else 0,
            last_matched_at=Time(tally.last_at) if tally else None,
            set_at=Time(secret.created_at),
        )

    how, judged_by = webhook.settings.authentication, webhook.resolved
    match how:
        case TokenAuthentication():
            return views.WithToken(
                **asdict(how),
                token_set=is_set("main"),
                token_use=use("main"),
                second_token_set=is_set("second"),
                second_token_use=use("second"),
                rotation=rotation(webhook.secrets, tallies, now),
            )
        case SignatureAuthentication():
            return views.WithSignature(
                **asdict(how) | {"scheme": scheme_of(judged_by).to_document()},
                secret_set=is_set("main"),
                secret_use=use("main"),
                second_secret_set=is_set("second"),
                second_secret_use=use("second"),
                verify_token_set=is_set("verifyToken"),
                rotation=rotation(webhook.secrets, tallies, now),
                secret_awaited=awaits_secret(webhook),
                announced_secret="captured" in webhook.secrets,
                preset_version=judged_by.preset_version,
                preset_update=preset_update(how.provider, judged_by),
            )
    return views.WithoutAuthentication()


def unreadable(gateway: Gateway, webhook: UnreadableWebhook) -> views.Unreadable:
    return views.Unreadable(
        id=webhook.id,
        name=webhook.name,
        url=gateway.site.webhook_url(webhook.short_code),
        version=webhook.version,
        detail=webhook.explanation,
    )


async def stored(gateway: Gateway, webhook_id: str) -> StoredWebhook:
    """A webhook with its secrets, for use cases; or ``Refused``."""
    webhook = await gateway.store.webhooks.get(webhook_id)
    if webhook is None:
        raise Refused("not_found", NO_WEBHOOK)
    if isinstance(webhook, UnreadableWebhook):
        raise Refused("temporarily_unavailable", webhook.explanation)
    return webhook


def _fields(webhook: StoredWebhook) -> set[str]:
    """Of the secrets that are stored, readable or not."""
    return {*webhook.secrets, *webhook.unreadable_secrets}


def check_version(webhook: StoredWebhook | UnreadableWebhook, seen_version: int | None) -> None:
    if seen_version is not None and seen_version != webhook.version:
        raise Refused("version_conflict")


async def save(
    gateway: Gateway,
    webhook: StoredWebhook,
    changes: dict[str, bytes | None],
    note: AuditEntry,
    promote: bool = False,
) -> None:
    """Write a changed webhook, unless somebody else was faster."""
    seen = webhook.version
    webhook.version += 1
    webhook.updated_at = gateway.clock()
    if not await gateway.store.webhooks.update(webhook, seen, changes, note, promote):
        raise Refused("version_conflict")
    await gateway.runtime.directory.refresh()


def _resolved(request: WebhookRequest, saved: Resolved | None = None) -> Resolved:
    asked = request.authentication
    return resolved(asked, saved) if asked.method == "hmac" else Resolved()


def _made(authentication: Authentication, sent: dict[str, str | Generate]) -> dict[str, bytes]:
    return {
        field: (_generated(authentication, field) if isinstance(value, Generate) else value).encode()
        for field, value in sent.items()
    }


def _generated(authentication: Authentication, field: str) -> str:
    if authentication.method != "hmac":
        return new_token()
    is_known_to_the_sender = field == "verifyToken" or authentication.provider in TAKES_OURS
    return new_signing_secret() if is_known_to_the_sender else new_stand_in()


def _needs_main(authentication: Authentication, is_set: bool) -> None:
    method = authentication.method
    if method != "none" and not is_set:
        name = "token" if method == "token" else "secret"
        raise Refused(
            "invalid_request",
            errors=[
                FieldError(f"authentication.{name}", 'is required; {"generate": true} has a strong one made')
            ],
        )


def _same_sender(before: Authentication, after: Authentication) -> bool:
    if before.method == "hmac" and after.method == "hmac":
        return before.provider == after.provider
    return before.method == after.method


def compiles(webhook: StoredWebhook, changes: dict[str, bytes | None]) -> Webhook:
    """Nothing is saved that could not be served: the same compilation that the path of a call uses is tried
    first."""
    secrets = {
        **webhook.secrets,
        **{field: StoredSecret("", value, 0.0) for field, value in changes.items() if value},
    }
    secrets = {field: secret for field, secret in secrets.items() if changes.get(field, b"") is not None}
    unreadable = {field: why for field, why in webhook.unreadable_secrets.items() if field not in changes}
    try:
        return compile_webhook(replace(webhook, secrets=secrets, unreadable_secrets=unreadable))
    except ValueError as error:
        raise Refused("invalid_request", errors=[FieldError("authentication.secret", str(error))]) from None


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if (
            name == "authentication"
            and isinstance(value, dict)
            and value.get("method", result.get(name, {}).get("method")) != result.get(name, {}).get("method")
        ):
            result[name] = value  # another method: nothing of the old one's settings belongs to it
        elif value is None and name not in ("authentication",):
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result
