"""What the API answers, as its description shows it. More fields may be added later; none will go."""

from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from postern.usecases.configuration import (
    CorsSetting,
    DuplicateProtection,
    FieldMapping,
    RateLimit,
    SynchronousResponse,
)  # fmt: skip

T = TypeVar("T")


class Told(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")


class Listing(Told, Generic[T]):
    """Newest first. ``nextCursor`` is null on the last page."""

    items: list[T]
    next_cursor: str | None


class FieldProblem(Told):
    field: str
    message: str


class Problem(Told):
    """RFC 9457. ``code`` is stable; ``detail`` is for people."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: list[FieldProblem] | None = None


class SecretUse(Told):
    match_count: int
    last_matched_at: str | None
    set_at: str


class Rotation(Told):
    """Two secrets are valid. Promoting is safe once no call has used the main one for an hour and one has used the second since."""

    safe_to_promote: bool
    main_unused_since: str
    safe_from: str | None


class Authentication(Told):
    """Of secrets only whether they are set, how often each matched, and when last. The other settings are the method's own."""

    method: Literal["none", "token", "hmac"]
    rotation: Rotation | None = None
    secret_awaited: bool | None = None
    """For signatures: the sender makes the secret and it has not been set yet. Until then every call is refused."""


class Webhook(Told):
    id: str
    name: str
    url: str
    enabled: bool
    held: bool
    version: int
    created_at: str
    updated_at: str
    call_count: int
    last_call_at: str | None
    authentication: Authentication
    field_mapping: FieldMapping
    synchronous_response: SynchronousResponse
    duplicate_protection: DuplicateProtection
    cors: CorsSetting
    ip_allowlist: list[str]
    payload_limit_bytes: int
    rate_limit: RateLimit
    schedule: dict[str, Any] | None
    history_retention_days: int | None
    body_retention_days: int | None
    warnings: list[str]


class Recording(Told):
    recording_until: str


class Sample(Told):
    """``event`` is null where nothing has been recorded yet."""

    webhook_id: str
    recording_until: str | None
    recorded_at: str | None
    invocation_id: str | None
    event: dict[str, Any] | None
    variables: list[dict[str, Any]]


class ScheduleRun(Told):
    """What came of one fetch."""


class Hold(Told):
    webhook_id: str
    held: bool
    waiting: int
    released: int | None = None
    dropped: int | None = None


class Provider(Told):
    """A built-in scheme: how the sender signs, what to paste where, how it behaves."""

    name: str
    title: str
    version: int
    aliases: list[str]
    scheme: dict[str, Any]
    secret: dict[str, str]
    setup: list[str]
    sender: dict[str, Any]
    samples: list[dict[str, Any]]


class Step(Told):
    step: str
    ok: bool | None
    detail: str


class WouldVerify(Told):
    change: str
    explanation: str


class SignatureResult(Told):
    verified: bool
    matched: Literal["main", "second"] | None
    code: str | None
    explanation: str
    steps: list[Step]
    would_verify_if: list[WouldVerify]
