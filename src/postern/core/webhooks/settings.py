"""What can be set on a webhook: each setting once, with its type and its default.

The same types are read from the database, handed to whatever decides by them, shown and exported. Secrets are
not among them: they live in the vault.

A stored document holds what differs from the defaults. What it lacks has its default, so a setting that is
added later needs no migration; a default, once released, stays as it is. A name that is not known here is
refused: a newer version of the program wrote it, and ignoring it could let in calls that its owner shut out.
"""

from typing import Any, Literal

import msgspec

from postern.core.deliveries.delivery import FIELD_NAMES
from postern.core.documents import Document
from postern.core.schedules.schedule import Schedule, parse_schedule
from postern.core.signatures.credential import Placement
from postern.core.signatures.scheme import SignatureScheme

PAYLOAD_LIMIT = 1024 * 1024

Method = Literal["none", "token", "hmac"]


class Setting(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Snake case inside, camel case wherever it is written."""


class NoAuthentication(Setting, frozen=True, tag_field="method", tag="none"):
    """Anybody who knows the URL may call. For testing only."""

    @property
    def method(self) -> Literal["none"]:
        return "none"


class TokenAuthentication(Setting, frozen=True, tag_field="method", tag="token"):
    """A fixed secret that the caller sends with every call."""

    placement: Placement = "header"
    header_name: str = "X-Api-Key"
    username: str | None = None
    parameter_name: str = "token"

    @property
    def method(self) -> Literal["token"]:
        return "token"


class SignatureAuthentication(Setting, frozen=True, tag_field="method", tag="hmac"):
    """The caller signs each call with a shared secret, in its own scheme."""

    provider: str
    public_url: str | None = None
    tolerance_seconds: int | None = None
    scheme: Document | None = None
    """A custom scheme as its owner wrote it; what calls are judged by is ``Resolved.scheme``."""
    require_timestamp_and_digest: bool = False

    @property
    def method(self) -> Literal["hmac"]:
        return "hmac"


Authentication = NoAuthentication | TokenAuthentication | SignatureAuthentication


class FieldMapping(Setting, frozen=True):
    """Up to four values taken out of the payload, each by its path, like customer.email or items[0].sku."""

    field_one: str | None = None
    field_two: str | None = None
    field_three: str | None = None
    field_four: str | None = None

    def paths(self) -> dict[str, str]:
        """By the field's name in a trigger."""
        paths = (self.field_one, self.field_two, self.field_three, self.field_four)
        return {name: path for name, path in zip(FIELD_NAMES, paths, strict=True) if path}


class SynchronousResponse(Setting, frozen=True):
    """Whether the caller waits for the workflow's answer, and how long."""

    enabled: bool = False
    timeout_seconds: float | None = None


class DuplicateProtection(Setting, frozen=True):
    """Whether a retried delivery starts the workflow only once. ``key`` is ``header:Name`` or a path in the
    body."""

    enabled: bool = False
    key: str | None = None
    window_seconds: int = 86400


def place_of_key(key: str) -> tuple[Literal["header", "body"], str]:
    """Where the key of duplicate protection is to be found: ``header:Name``, or a path in the body, with ``body:`` before
    it or without."""
    if key.lower().startswith("header:"):
        return "header", key[len("header:") :]
    return "body", key.removeprefix("body:")


class CorsSetting(Setting, frozen=True):
    """Which pages of other origins may call."""

    enabled: bool = False
    origins: list[str] = []


class RateLimit(Setting, frozen=True):
    calls_per_second: float = 100.0
    burst: int = 200


class ScheduleSetting(Setting, frozen=True):
    """Have the gateway fetch a URL by itself: ``every`` so many seconds (or 15m, 2h, 1d), or by a ``cron``
    expression."""

    url: str
    every: int | str | None = None
    cron: str | None = None
    time_zone: str = "UTC"
    headers: list[str] = []
    """Their names; the values are secrets."""
    timeout_seconds: float = 10.0
    only_when_changed: bool = False
    split_array: bool = False
    pause_after_failures: int = 10
    enabled: bool = True

    def times(self, anchor: float) -> Schedule:
        """When it fetches. ``anchor``: when the setting was saved."""
        return parse_schedule(self.every, self.cron, self.time_zone, anchor)


class WebhookSettings(Setting, frozen=True):
    """Everything that can be set on a webhook, besides its secrets and whether it is enabled."""

    name: str
    authentication: Authentication
    folder: str | None = None
    """Where it stands in the list, like Shops/Europe."""
    tags: list[str] = []
    field_mapping: FieldMapping = FieldMapping()
    synchronous_response: SynchronousResponse = SynchronousResponse()
    duplicate_protection: DuplicateProtection = DuplicateProtection()
    cors: CorsSetting = CorsSetting()
    ip_allowlist: list[str] = []
    payload_limit_bytes: int = PAYLOAD_LIMIT
    accepts_arrays: bool | None = None
    """Whether a body may be an array, which is read as the object ``{"items": […]}``. None: as its sender does."""
    rate_limit: RateLimit = RateLimit()
    schedule: ScheduleSetting | None = None
    history_retention_days: int | None = None
    body_retention_days: int | None = None


class Resolved(Setting, frozen=True):
    """What follows from the sender that was chosen, as its preset was when the webhook was saved."""

    scheme: SignatureScheme | None = None
    preset_version: int | None = None
    answer_timeout_seconds: float | None = None
    sends_arrays: bool = False


class UnreadableSettings(ValueError):
    """A stored document that this version cannot read; the message says what is wrong with it."""


def read_document(document: str) -> tuple[WebhookSettings, Resolved]:
    try:
        settings = msgspec.json.decode(document)
        resolved = settings.pop("resolved", {}) if isinstance(settings, dict) else {}
        return msgspec.convert(settings, WebhookSettings), msgspec.convert(resolved, Resolved)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise UnreadableSettings(str(error)) from error


def write_document(settings: WebhookSettings, resolved: Resolved) -> str:
    document = without_defaults(settings)
    if kept := without_defaults(resolved):
        document["resolved"] = kept
    return msgspec.json.encode(document).decode()


def as_document(setting: msgspec.Struct) -> Document:
    """Every setting under its name in the API."""
    document: Document = msgspec.to_builtins(setting)
    return document


def without_defaults(setting: msgspec.Struct) -> Document:
    """What somebody has set, under its name in the API."""
    config = setting.__struct_config__
    document: Document = {config.tag_field: config.tag} if config.tag_field is not None else {}
    for field in msgspec.structs.fields(setting):
        value = getattr(setting, field.name)
        if field.required or value != _default(field):
            is_struct = isinstance(value, msgspec.Struct)
            document[field.encode_name] = without_defaults(value) if is_struct else value
    return document


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
