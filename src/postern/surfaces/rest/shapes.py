"""What the API answers, as its description shows it. More fields may be added later; none will go."""

from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from postern.core.records import LEVELS
from postern.usecases.configuration import (
    CorsSetting,
    DuplicateProtection,
    FieldMapping,
    RateLimit,
    Shape,
    SynchronousResponse,
)  # fmt: skip

T = TypeVar("T")
Level = Literal["read", "write", "admin"]
assert Level.__args__ == LEVELS  # type: ignore[attr-defined]


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


class Authentication(Told):
    """Of secrets only whether they are set, how often each matched, and when last. The other settings are the method's own."""

    method: Literal["none", "token", "hmac"]


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


Status = Literal["rejected", "duplicate", "handshake", "accepted", "held", "started", "responded", "failed", "dropped"]


class InvocationSummary(Told):
    id: str
    webhook_id: str
    received_at: str
    status: Status
    code: str
    detail: str
    http_status: int | None
    method: str
    address: str
    body_size: int
    duration_ms: float
    matched: str | None
    duplicate_of: str | None
    config_version: int
    runs: int | None = None
    nobody_listens: bool | None = None
    error: str | None = None


class TraceStep(Told):
    step: str
    ok: bool | None
    detail: str


class Response(Told):
    status: int
    headers: list[tuple[str, str]]
    body: str


class Delivery(Told):
    key: str
    emission: int
    state: Literal["queued", "held", "started", "failed", "dropped"]
    fields: dict[str, str]
    created_at: str
    started_at: str | None
    next_attempt_at: str | None
    attempts: int
    log: list[dict[str, Any]]
    runs: int | None
    nobody_listens: bool
    error: str | None
    answer: str | None
    responded_at: str | None
    late: bool
    response: Response | None


class Invocation(InvocationSummary):
    path: str
    query: str
    headers: list[tuple[str, str]]
    body: str | None
    body_truncated: bool
    payload: dict[str, Any] | None
    trace: list[TraceStep]
    deliveries: list[Delivery]


class Replayed(Told):
    invocation_id: str
    delivery: Delivery


class ReplayFilter(Shape):
    """Which invocations: every part that is given must hold. Only accepted calls can be replayed; the others are skipped."""

    webhook_id: str | None = Field(None, max_length=80)
    status: Status | None = None
    code: str | None = Field(None, max_length=40)
    since: str | None = Field(None, max_length=40)
    until: str | None = Field(None, max_length=40)
    search: str | None = Field(None, max_length=200)


class ReplayRequest(Shape):
    filter: ReplayFilter


class Replay(Told):
    id: str
    state: Literal["planned", "running", "completed", "cancelled", "failed"]
    filter: dict[str, Any]
    count: int
    done: int
    skipped: int
    created_at: str
    created_by: str
    started_at: str | None
    ended_at: str | None
    error: str | None


class ApiKeyRequest(Shape):
    name: str = Field(min_length=1, max_length=200)
    level: Level


class ApiKey(Told):
    id: str
    name: str
    level: Level
    prefix: str
    created_at: str
    created_by: str
    last_used_at: str | None


class NewApiKey(ApiKey):
    """The key itself is in this answer and nowhere else, ever."""

    key: str


class UserRequest(Shape):
    name: str = Field(min_length=1, max_length=80)
    password: str = Field(min_length=8, max_length=256)
    level: Level


class UserChange(Shape):
    level: Level | None = None
    password: str | None = Field(None, min_length=8, max_length=256)


class User(Told):
    id: str
    name: str
    level: Level
    created_at: str
    created_by: str
    last_signed_in_at: str | None


class SignIn(Shape):
    name: str = Field(max_length=200)
    password: str = Field(max_length=1024)


class Me(Told):
    name: str
    level: Level
    user_id: str | None
    session_id: str | None


class PasswordChange(Shape):
    old_password: str = Field(max_length=1024)
    new_password: str = Field(min_length=8, max_length=256)


class Session(Told):
    id: str
    user_id: str
    user: str
    created_at: str
    last_seen_at: str
    address: str
    user_agent: str
    current: bool


class AuditEntry(Told):
    id: str
    at: str
    actor: str
    level: Level
    action: str
    subject: str
    changes: dict[str, Any]


class Run(Told):
    id: str
    workflow: str
    state: str
    delivery_key: str
    started_at: str
    ended_at: str | None
    error: str | None
    steps: list[str]


class Workflow(Told):
    name: str
    webhook_ids: list[str]
    help: str
    source: str


class ResponseAction(Shape):
    """What the waiting caller is to hear. Sent by other people's workflows: what else they say is passed over."""

    model_config = ConfigDict(extra="ignore")

    status: int | None = Field(None, ge=200, le=599)
    headers: dict[str, str] | None = None
    body: Any = None


class Answered(Told):
    status: Literal["answered"]


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


class Recheck(Told):
    webhook_id: str
    would_pass: list[dict[str, Any]]
    still_refused: int


class AdmitRequest(Shape):
    invocation_ids: list[str] = Field(min_length=1, max_length=1000)


class Admitted(Told):
    items: list[dict[str, Any]]
    admitted: int


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


class Explanation(Told):
    invocation_id: str
    code: str
    explanation: str
    would_verify_if: list[WouldVerify]


class Chart(Told):
    range: str
    since: str
    until: str
    step_minutes: int
    points: list[dict[str, Any]]
    total: dict[str, Any]
