"""Compiles a stored webhook into the one that calls meet: everything is parsed, keyed and hashed once."""

from collections.abc import Sequence

from msgspec.structs import astuple

from postern import presets
from postern.core.address import Allowlist
from postern.core.calls.content import Arrays, Mapping, TakenBodies
from postern.core.calls.cors import Cors
from postern.core.calls.paths import parse_path
from postern.core.signatures.credential import Credential, NoCredential, TokenCredential
from postern.core.signatures.handshake import Handshake, HandshakeKind
from postern.core.signatures.redact import Mask
from postern.core.signatures.signature import SignatureCredential
from postern.core.webhooks.bounds import place_of_key
from postern.core.webhooks.conditions import CompiledRow, Conditions
from postern.core.webhooks.settings import (
    Authentication,
    ConditionRow,
    DuplicateProtection,
    NoAuthentication,
    Resolved,
    SignatureAuthentication,
    TargetSetting,
    WebhookSettings,
)
from postern.core.webhooks.stored import StoredSecret, StoredWebhook
from postern.core.webhooks.target import OwnTarget
from postern.core.webhooks.turns import turns
from postern.core.webhooks.webhook import DuplicateKey, Webhook
from postern.usecases.webhooks.resolving import scheme_of

DEFAULT_ANSWER_TIMEOUT = 25.0


def compile_webhook(stored: StoredWebhook) -> Webhook:
    """Raises ``ValueError`` if the webhook cannot be served."""
    if stored.unreadable_secrets:
        raise ValueError("; ".join(stored.unreadable_secrets.values()))
    settings, resolved = stored.settings, stored.resolved
    how = settings.authentication
    credential = credential_of(how, resolved, stored.secrets)
    arrays = arrays_of(settings, resolved)
    verify_tokens = (kept.value for field, kept in stored.secrets.items() if field == "verifyToken")
    mask = Mask(credential, *verify_tokens)
    provider = how.provider if isinstance(how, SignatureAuthentication) else ""
    return Webhook(
        id=stored.id,
        addresses=stored.addresses,
        name=stored.name,
        version=stored.version,
        enabled=stored.enabled,
        held=stored.held,
        recording_until=stored.armed_until or 0.0,
        credential=credential,
        mapping=Mapping(settings.field_mapping.paths()),
        mask=mask,
        allowlist=Allowlist.parse(settings.ip_allowlist) if settings.ip_allowlist else None,
        handshake=_handshake(settings.handshake, credential, stored.secrets),
        cors=Cors(tuple(settings.cors.origins)) if settings.cors.enabled else None,
        target=target_of(settings.target, stored.secrets),
        lane=stored.id if settings.target is not None or settings.turns is not None else "",
        conditions=conditions_of(settings.conditions, mask, provider),
        duplicates=_duplicates(settings.duplicate_protection),
        payload_limit=settings.payload_limit_bytes,
        calls_per_second=settings.rate_limit.calls_per_second,
        burst=settings.rate_limit.burst,
        answer_timeout=answer_timeout(settings, resolved),
        takes=TakenBodies(arrays, settings.accepts_empty, settings.accepts_xml, settings.payload_limit_bytes),
        accepted_answer=settings.accepted_answer,
        turns=None if settings.turns is None else turns(*astuple(settings.turns)),
        alarms=settings.alarms,
        changed_at=stored.updated_at,
        method=how.method,
        provider=provider,
        secret_ids={field: secret.id for field, secret in stored.secrets.items()},
    )


def target_of(setting: TargetSetting | None, secrets: dict[str, StoredSecret]) -> OwnTarget | None:
    if setting is None:
        return None
    prefix, key = setting.secrets["headers"], setting.secrets["signingSecret"]
    headers = tuple((name, secrets[prefix + name.lower()].value.decode()) for name in setting.headers)
    return OwnTarget(
        setting.url, setting.forward, headers, setting.timeout_seconds, secrets[key].value.decode()
    )


def conditions_of(rows: Sequence[ConditionRow], mask: Mask, provider: str) -> Conditions | None:
    event = presets.event_places(provider)
    if not rows:
        return None
    return Conditions(
        [
            CompiledRow(row.of, row.operator, row.values, row.ignore_case, mask=mask, event=event)
            for row in rows
        ]
    )


def answer_timeout(settings: WebhookSettings, resolved: Resolved) -> float | None:
    setting = settings.synchronous_response
    if not setting.enabled:
        return None
    return setting.timeout_seconds or resolved.answer_timeout_seconds or DEFAULT_ANSWER_TIMEOUT


def arrays_of(settings: WebhookSettings, resolved: Resolved) -> Arrays:
    return settings.arrays or ("whole" if resolved.sends_arrays else "refused")


def credential_of(
    authentication: Authentication, resolved: Resolved, secrets: dict[str, StoredSecret]
) -> Credential:
    """Raises ``ValueError`` if a secret is not what the scheme needs."""
    if isinstance(authentication, NoAuthentication):
        return NoCredential()
    main, second = secrets["main"].value, secrets["second"].value if "second" in secrets else None
    if isinstance(authentication, SignatureAuthentication):
        return SignatureCredential(
            scheme_of(resolved),
            main,
            second,
            public_url=authentication.public_url,
            tolerance_seconds=authentication.tolerance_seconds,
            require_timestamp_and_digest=authentication.require_timestamp_and_digest,
        )
    return TokenCredential(
        authentication.placement,
        main,
        second,
        header_name=authentication.header_name,
        username=authentication.username or "",
        parameter_name=authentication.parameter_name,
        path=authentication.token_path,
    )


def _handshake(
    chosen: HandshakeKind | None, credential: Credential, secrets: dict[str, StoredSecret]
) -> Handshake | None:
    signs = credential if isinstance(credential, SignatureCredential) else None
    kind = chosen or (signs.scheme.handshake if signs else "none")
    if kind == "none":
        return None
    verify_token = secrets.get("verifyToken")
    return Handshake(
        kind,
        verify_token=verify_token.value if verify_token else None,
        sign=signs.sign if signs and signs.can_sign else None,
    )


def _duplicates(setting: DuplicateProtection) -> DuplicateKey | None:
    if not setting.enabled:
        return None
    if not setting.key:
        return DuplicateKey(setting.window_seconds)
    kind, name = place_of_key(setting.key)
    if kind == "header":
        return DuplicateKey(setting.window_seconds, header=name.lower().encode())
    return DuplicateKey(setting.window_seconds, path=parse_path(name))
