"""Answers about webhooks."""

from typing import Any, Literal

from postern.core.documents import Document
from postern.core.signatures.credential import Placement
from postern.core.webhooks import settings
from postern.core.webhooks.settings import WebhookSettings
from postern.usecases.answers import UNSET, Listing, Time, UnsetType, View


class SecretUse(View):
    match_count: int
    last_matched_at: Time | None
    set_at: Time


class Rotation(View):
    """Two secrets are valid. Promoting is safe once no call has used the main one for an hour and one has
    used the second since."""

    safe_to_promote: bool
    main_unused_since: Time
    safe_from: Time | None


class WithoutAuthentication(settings.NoAuthentication, frozen=True):
    pass


PLACED: dict[Placement, str] = {
    "header": "custom header",
    "bearer": "Bearer token",
    "basic": "username and password (HTTP Basic)",
    "url": "URL parameter",
    "body": "field of the body",
}
"""The words for a token's place."""


class WithToken(settings.TokenAuthentication, frozen=True, kw_only=True):
    """Secrets show whether they are set, how often each matched, and when last."""

    token_set: bool
    token_use: SecretUse | UnsetType = UNSET
    second_token_set: bool
    second_token_use: SecretUse | UnsetType = UNSET
    rotation: Rotation | None


class SchemeChange(View):
    field: str
    saved: Any
    present: Any


class PresetUpdate(View):
    """The changes that taking over the present version of the sender's scheme would make."""

    version: int
    changes: list[SchemeChange]


class AnnouncedSecret(View):
    """A caller announced a secret in a set-up handshake. Anybody who knows the URL can."""

    invocation_id: str
    at: Time
    address: str


class WithSignature(settings.SignatureAuthentication, frozen=True, kw_only=True):
    """Secrets show whether they are set, how often each matched, and when last."""

    scheme: Document
    preset_version: int | None
    preset_update: PresetUpdate | None
    announced: list[AnnouncedSecret]
    announced_not_kept: int
    """How many announced secrets are not kept, as there is room for five."""
    secret_set: bool
    secret_use: SecretUse | UnsetType = UNSET
    second_secret_set: bool
    second_secret_use: SecretUse | UnsetType = UNSET
    rotation: Rotation | None
    secret_awaited: bool
    """The sender makes the secret and it has not been set yet. Until then every call is rejected."""
    verify_token_set: bool


ShownAuthentication = WithoutAuthentication | WithToken | WithSignature


class ScheduleState(View):
    in_words: str
    next_run_at: Time | None
    last_run_at: Time | None
    last_result: str | None
    last_reason: str | None
    last_duration_ms: int | None
    consecutive_failures: int
    paused_at: Time | None
    paused_reason: str | None


class ScheduleRun(View):
    """The result of one fetch."""

    webhook_id: str
    result: str
    reason: str | None
    duration_ms: int
    invocation_ids: list[str]
    next_run_at: Time | None
    paused: bool


class Webhook(WebhookSettings, frozen=True, kw_only=True):
    """The settings and the state. A schedule's headers show only their names. ``alsoUrl``: the URL with the short code, where it
    is answered beside the one with the path."""

    authentication: ShownAuthentication
    id: str
    url: str
    also_url: str | None
    enabled: bool
    held: bool
    recording_until: Time | None
    version: int
    created_at: Time
    updated_at: Time
    call_count: int
    last_call_at: Time | None
    schedule_state: ScheduleState | None
    warnings: list[str]


class Unreadable(View):
    """A webhook whose stored settings this version cannot read. It is not served; ``detail`` says why."""

    id: str
    name: str
    url: str
    version: int
    detail: str


class Webhooks(Listing[Webhook]):
    """``total``: how many match. ``unreadable``: webhooks of this page that cannot be shown."""

    total: int
    unreadable: list[Unreadable] | UnsetType = UNSET


class NotDone(View):
    id: str
    name: str
    reason: str


class Named(View):
    id: str
    name: str


class Many(View):
    """A change of many webhooks, done or planned: then ``webhooks`` has the first hundred. ``unchanged``: they were so
    already. ``reasons``: why it was not done, for the first hundred."""

    action: str
    dry_run: bool
    matched: int
    done: int
    unchanged: int
    not_done: int
    reasons: list[NotDone]
    released: int
    """How many deliveries were waiting and are started now."""
    webhooks: list[Named] | UnsetType = UNSET


class Binned(View):
    """A deleted webhook that can be restored until ``goneAt``."""

    id: str
    name: str
    url: str
    deleted_at: Time
    gone_at: Time
    call_count: int


class NotStarting(View):
    """``code``: what was decided when it came, accepted or filtered. ``reason``: the row and the value that decide now."""

    invocation_id: str
    received_at: Time
    code: str
    event: str
    reason: str


class TriedConditions(View):
    """``calls``: how many of the last calls were judged. ``not_judged``: their bodies are not kept, or are not read any more.
    ``not_starting``: the newest hundred."""

    calls: int
    would_not_start: int
    not_judged: int
    in_words: list[str]
    not_starting: list[NotStarting]


class SeenValue(View):
    """``calls``: in how many of the last calls it is."""

    of: str
    value: str
    calls: int


class SeenValues(View):
    """``actors``: who has caused the events, where the sender says so."""

    events: list[SeenValue]
    actors: list[SeenValue]


class Bin(Listing[Binned]):
    """The last deleted first. ``total``: how many there are."""

    total: int


class Configuration(View):
    """Every webhook with the settings that differ from their defaults, and references to secrets for ``postern apply``."""

    version: int
    webhooks: list[Document]


class SettingChange(View):
    before: Any
    after: Any


class AppliedChange(View):
    """``id`` is null if a dry run would make it. ``differences``: by setting."""

    action: Literal["create", "change", "delete"]
    id: str | None
    name: str
    differences: dict[str, SettingChange]


class Applied(View):
    """``not_named``: the webhooks that the configuration does not name, which stay."""

    dry_run: bool
    changes: list[AppliedChange]
    unchanged: int
    not_named: list[Named]
    notes: list[str]
