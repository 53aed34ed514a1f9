"""Applies a request to a webhook: its new settings, and which of its secrets change. Nothing is stored here."""

from dataclasses import replace
from typing import Any, cast
from urllib.parse import urlsplit

from postern.core.address import METADATA, Allowlist, closed, read_address
from postern.core.documents import Document, Patch
from postern.core.problems import FieldError, Refused, invalid, refuse_wrong
from postern.core.signatures.algorithms import ALGORITHMS, is_shared
from postern.core.signatures.keys.public import new_private_key
from postern.core.webhooks.announced import FIELD as ANNOUNCED
from postern.core.webhooks.settings import (
    Authentication,
    NoAuthentication,
    Resolved,
    ScheduleSetting,
    SendAgainSetting,
    TargetSetting,
    WebhookSettings,
    as_document,
)
from postern.core.webhooks.stored import StoredSecret, StoredWebhook
from postern.core.webhooks.webhook import Webhook
from postern.identity import new_id, new_short_code, new_signing_secret, new_stand_in, new_token
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import validated
from postern.usecases.webhooks.compiling import compile_webhook
from postern.usecases.webhooks.requests import (
    NO_SECRET,
    SECRET_PREFIX,
    SECRETS,
    SEND_AGAIN,
    TARGET_KEY,
    TARGET_PREFIX,
    Generate,
    SignatureAuthentication,
    WebhookRequest,
)
from postern.usecases.webhooks.resolving import resolved

TAKES_OURS = ("generic", "custom", "standardwebhooks")
"""These sign with a secret that is made here. Every other sender makes its own, and a generated one stands in for it."""


NOT_OF_THE_SENDER = (SECRET_PREFIX, TARGET_PREFIX, TARGET_KEY)
"""So begin the fields of secrets that stay when another sender calls."""


def prepared(gateway: Gateway, request: WebhookRequest) -> tuple[StoredWebhook, dict[str, bytes | None]]:
    """The new webhook that a request asks for, and its secrets."""
    now = gateway.clock()
    webhook = StoredWebhook(
        id=new_id("wh"),
        short_code=new_short_code(),
        enabled=True,
        held=False,
        settings=WebhookSettings(name="", authentication=NoAuthentication()),
        resolved=Resolved(),
        version=1,
        created_at=now,
        updated_at=now,
    )
    return webhook, replaced(gateway, webhook, request, set())


def altered(gateway: Gateway, webhook: StoredWebhook, patch: Patch) -> dict[str, bytes | None]:
    """Applies a merge patch to the webhook. Returns the secrets that change."""
    document, given = _as_request(webhook), patch.get("authentication")
    removed: set[str] = set()
    if isinstance(given, dict):
        removed = {name for name, value in given.items() if value is None}
        method = webhook.settings.authentication.method
        if given.get("method", method) != method:
            del document["authentication"]  # the new method has none of the old one's settings
    return replaced(
        gateway, webhook, request_for(gateway, webhook, _merged(document, patch), removed), removed
    )


def request_for(
    gateway: Gateway, webhook: StoredWebhook | None, document: Document, removed: set[str]
) -> WebhookRequest:
    """The request to change a webhook, or for a new one. If fields are wrong, what only the stored webhook shows to be wrong is told with them: it is
    looked for as if the wrong settings had not been named."""
    try:
        return cast(WebhookRequest, validated(WebhookRequest, document, webhook))
    except Refused as refused:
        if webhook is None:
            raise
        told = {error.field: error for error in refused.errors}
        stored = _as_request(webhook)
        kept = {name: stored.get(name) for name in (field.partition(".")[0] for field in told)}
        rest = {name: value for name, value in (document | kept).items() if value is not None}
        try:
            replaced(gateway, replace(webhook), validated(WebhookRequest, rest, webhook), removed)
        except Refused as more:
            told |= {error.field: error for error in more.errors if error.field not in told}
        raise Refused("invalid_request", errors=list(told.values())) from None


def tried(gateway: Gateway, webhook: StoredWebhook, patch: Patch) -> Webhook:
    """The webhook as calls would meet it after this change."""
    return compiles(webhook, altered(gateway, webhook, patch))


def replaced(
    gateway: Gateway, webhook: StoredWebhook, request: WebhookRequest, removed: set[str]
) -> dict[str, bytes | None]:
    """Gives the webhook exactly these settings. Returns the secrets that change: those it brings, and the ``removed``."""
    settings, sent = request.parts()
    how = settings.authentication
    changes: dict[str, bytes | None] = dict(_made(how, sent))
    keeps = _same_sender(webhook.settings.authentication, how)
    changes |= {field: None for name, field in SECRETS[how.method].items() if name in removed}
    if not keeps:
        own = [field for field in webhook.secret_fields if not field.startswith(NOT_OF_THE_SENDER)]
        changes = {**dict.fromkeys(own), **changes}
    if changes.get("main") and ANNOUNCED in webhook.secret_fields:
        changes[ANNOUNCED] = None  # it is decided which one is the sender's
    brought = {field for field, value in changes.items() if value}
    wrong: list[FieldError] = []
    saved_settings = webhook.settings
    for place, prefix in (("schedule", SECRET_PREFIX), ("target", TARGET_PREFIX)):
        now, before = getattr(settings, place), getattr(saved_settings, place)
        changes |= _header_changes(place, prefix, now, before, brought, webhook, wrong)
        _check_address(gateway.outbound.allowed, place, now, before, wrong)
    if settings.target is None:
        changes |= {TARGET_KEY: None} if TARGET_KEY in webhook.secret_fields else {}
    elif TARGET_KEY not in webhook.secret_fields | brought:
        changes[TARGET_KEY] = new_signing_secret().encode()
    changes |= _token_change(settings.send_again, brought, webhook, wrong)
    if how.method != "none" and "main" not in (webhook.secret_fields - changes.keys() | brought):
        field = "authentication.token" if how.method == "token" else "authentication.secret"
        wrong.append(FieldError(field, NO_SECRET))
    requested, saved = request.authentication, webhook.resolved if keeps else None
    judged_by = Resolved()
    try:
        if isinstance(requested, SignatureAuthentication):
            judged_by = resolved(requested, saved)
    except Refused as refused:
        wrong += refused.errors
    refuse_wrong(wrong)
    webhook.resolved, webhook.settings, webhook.enabled = judged_by, settings, request.enabled
    compiles(webhook, changes)
    return changes


def compiles(webhook: StoredWebhook, changes: dict[str, bytes | None]) -> Webhook:
    """Compiles the changed webhook as calls would meet it, so that nothing is saved that cannot be served."""
    secrets = {field: secret for field, secret in webhook.secrets.items() if field not in changes}
    secrets |= {field: StoredSecret("", value, 0.0) for field, value in changes.items() if value}
    unreadable = {field: why for field, why in webhook.unreadable_secrets.items() if field not in changes}
    try:
        return compile_webhook(replace(webhook, secrets=secrets, unreadable_secrets=unreadable))
    except ValueError as error:
        raise invalid("authentication.secret", str(error)) from None


def _as_request(webhook: StoredWebhook) -> Document:
    """The settings as a request would ask for them, without the secrets."""
    document = {**as_document(webhook.settings), "enabled": webhook.enabled}
    for place in ("schedule", "target"):
        if document[place] is not None:
            document[place]["headers"] = dict.fromkeys(document[place]["headers"])
    return document


def _made(authentication: Authentication, sent: dict[str, str | Generate]) -> dict[str, bytes]:
    return {
        field: (_generated(authentication, field) if isinstance(value, Generate) else value).encode()
        for field, value in sent.items()
    }


def generated(method: str, provider: str, scheme: Document | None) -> str | None:
    """A strong secret to tell callers; of a pair of keys, the private one. None if the sender makes its own."""
    if method == "token":
        return new_token()
    if provider not in TAKES_OURS:
        return None
    algorithm = (scheme or {}).get("algorithm")
    if algorithm in ALGORITHMS and not is_shared(algorithm):
        return new_private_key(algorithm)
    return new_signing_secret()


def _generated(authentication: Authentication, field: str) -> str:
    if field in ("verifyToken", TARGET_KEY):
        return new_signing_secret()
    provider, scheme = (
        ("", None) if authentication.method != "hmac" else (authentication.provider, authentication.scheme)
    )
    return generated(authentication.method, provider, scheme) or new_stand_in()


def _same_sender(before: Authentication, after: Authentication) -> bool:
    if before.method == "hmac" and after.method == "hmac":
        return before.provider == after.provider
    return before.method == after.method


def _merged(target: Any, patch: Any) -> Any:
    """Merges as RFC 7396 says."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result


def _check_address(
    opened: Allowlist | None,
    place: str,
    setting: ScheduleSetting | TargetSetting | None,
    before: ScheduleSetting | TargetSetting | None,
    wrong: list[FieldError],
) -> None:
    """Refuses a new URL with a private address, to which nothing is sent. A name is judged at each request. ``opened`` is
    None in a process that requests nothing and so cannot know."""
    if opened is None or setting is None or (before is not None and setting.url == before.url):
        return
    host = urlsplit(setting.url).hostname or ""
    literal = "127.0.0.1" if host == "localhost" else host
    if read_address(literal) is not None and (reason := closed(literal, opened)):
        unless = "" if reason == METADATA else " unless POSTERN_OUTBOUND_ALLOWED opens it"
        nothing = "fetched from" if place == "schedule" else "sent"
        wrong.append(FieldError(f"{place}.url", f"{host} is {reason}; nothing is {nothing} there{unless}"))


def _header_changes(
    place: str,
    prefix: str,
    setting: ScheduleSetting | TargetSetting | None,
    saved: ScheduleSetting | TargetSetting | None,
    sent: set[str],
    before: StoredWebhook,
    wrong: list[FieldError],
) -> dict[str, None]:
    """The stored header values to delete. Refuses a named header that has no value, or one that was given for another
    site: whoever may change the URL must not learn it thereby."""
    named = {prefix + name.lower(): name for name in (setting.headers if setting else [])}
    kept = {field for field in before.secret_fields if field.startswith(prefix)}
    moved = saved is not None and setting is not None and _site(saved.url) != _site(setting.url)
    why = "send its value again: the URL is another site's" if moved else "is required"
    wrong += [
        FieldError(f"{place}.headers.{name}", why)
        for field, name in named.items()
        if field not in sent and (moved or field not in before.secrets)
    ]
    return dict.fromkeys(kept - named.keys())


def _token_change(
    setting: SendAgainSetting | None, sent: set[str], before: StoredWebhook, wrong: list[FieldError]
) -> dict[str, None]:
    """Deletes the token if nothing is asked any more. Refuses a setting without a token for its address."""
    saved = before.settings.send_again
    if setting is None:
        return {SEND_AGAIN: None} if SEND_AGAIN in before.secret_fields else {}
    moved = saved is not None and saved.api != setting.api
    if SEND_AGAIN not in sent and (moved or SEND_AGAIN not in before.secret_fields):
        why = "send it again: the address is another one" if moved else "is required"
        wrong.append(FieldError("sendAgain.token", why))
    return {}


def _site(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port
