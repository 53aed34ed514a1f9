"""What the API answers about webhooks, and about what they are told to do."""

from typing import Annotated, Any, Literal

from pydantic import Field

from postern.surfaces.rest.shapes import Listing, Told


class SecretUse(Told):
    match_count: int
    last_matched_at: str | None
    set_at: str


class Rotation(Told):
    """Two secrets are valid. Promoting is safe once no call has used the main one for an hour and one has
    used the second since."""

    safe_to_promote: bool
    main_unused_since: str
    safe_from: str | None


class WithoutAuthentication(Told):
    method: Literal["none"]


class WithToken(Told):
    """Of secrets only whether they are set, how often each matched, and when last."""

    method: Literal["token"]
    placement: Literal["header", "bearer", "basic", "url"]
    header_name: str
    username: str | None
    parameter_name: str
    token_set: bool
    token_use: SecretUse | None = None
    second_token_set: bool
    second_token_use: SecretUse | None = None
    rotation: Rotation | None


class SchemeChange(Told):
    field: str
    saved: Any
    present: Any


class PresetUpdate(Told):
    """What taking over the present version of the sender's scheme would change."""

    version: int
    changes: list[SchemeChange]


class WithSignature(Told):
    """Of secrets only whether they are set, how often each matched, and when last."""

    method: Literal["hmac"]
    provider: str
    public_url: str | None
    tolerance_seconds: int | None
    require_timestamp_and_digest: bool
    scheme: dict[str, Any]
    preset_version: int | None
    preset_update: PresetUpdate | None
    announced_secret: bool
    secret_set: bool
    secret_use: SecretUse | None = None
    second_secret_set: bool
    second_secret_use: SecretUse | None = None
    rotation: Rotation | None
    secret_awaited: bool
    """The sender makes the secret and it has not been set yet. Until then every call is refused."""
    verify_token_set: bool


class MappedFields(Told):
    field_one: str | None
    field_two: str | None
    field_three: str | None
    field_four: str | None


class Waiting(Told):
    """Whether the caller waits for the workflow's answer, and how long."""

    enabled: bool
    timeout_seconds: float | None


class Duplicates(Told):
    enabled: bool
    key: str | None
    window_seconds: int


class Cors(Told):
    enabled: bool
    origins: list[str]


class Rate(Told):
    calls_per_second: float
    burst: int


class Schedule(Told):
    """Of its headers the names alone."""

    url: str
    every: int | str | None
    cron: str | None
    time_zone: str
    headers: list[str]
    timeout_seconds: float
    only_when_changed: bool
    split_array: bool
    pause_after_failures: int
    enabled: bool


class ScheduleState(Told):
    in_words: str
    next_run_at: str | None
    last_run_at: str | None
    last_result: str | None
    last_reason: str | None
    last_duration_ms: int | None
    consecutive_failures: int
    paused_at: str | None
    paused_reason: str | None


class Webhook(Told):
    id: str
    name: str
    url: str
    enabled: bool
    held: bool
    recording_until: str | None
    version: int
    created_at: str
    updated_at: str
    call_count: int
    last_call_at: str | None
    authentication: Annotated[
        WithoutAuthentication | WithToken | WithSignature, Field(discriminator="method")
    ]
    field_mapping: MappedFields
    synchronous_response: Waiting
    duplicate_protection: Duplicates
    cors: Cors
    ip_allowlist: list[str]
    payload_limit_bytes: int
    rate_limit: Rate
    schedule: Schedule | None
    schedule_state: ScheduleState | None
    history_retention_days: int | None
    body_retention_days: int | None
    warnings: list[str]


class Unreadable(Told):
    """A webhook whose stored settings this version cannot read. It is not served; ``detail`` says why."""

    id: str
    name: str
    url: str
    version: int
    detail: str


class Webhooks(Listing[Webhook]):
    """``unreadable`` is there where a webhook of this page cannot be shown."""

    unreadable: list[Unreadable] | None = None


class Recording(Told):
    """``webhooks``: how many it concerns."""

    webhooks: int
    recording_until: str


class Variable(Told):
    """``expressions``: how each kind of workflow writes it."""

    path: str
    type: str
    example: Any
    expressions: dict[str, str]


class Sample(Told):
    """``event`` is null where nothing has been recorded yet."""

    webhook_id: str
    recording_until: str | None
    recorded_at: str | None
    invocation_id: str | None
    event: dict[str, Any] | None
    variables: list[Variable]


class ScheduleRun(Told):
    """What came of one fetch."""

    webhook_id: str
    result: str
    reason: str | None
    duration_ms: int
    invocation_ids: list[str]
    next_run_at: str | None
    paused: bool


class Hold(Told):
    webhook_id: str
    held: bool
    waiting: int


class Released(Hold):
    released: int


class Dropped(Hold):
    dropped: int


class Passing(Told):
    invocation_id: str
    code: str
    fields: dict[str, str]


class CameAgain(Told):
    invocation_id: str
    accepted_as: str


class Recheck(Told):
    webhook_id: str
    would_pass: list[Passing]
    came_again: list[CameAgain] = Field(
        description="Would pass too, but the sender sent the same body again, and it was accepted. They are not admitted."
    )
    still_refused: int
