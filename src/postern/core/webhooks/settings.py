"""The settings of a webhook, each once, with its type, default and bounds. Answers, exports and requests
(``usecases/webhooks/requests.py``) are made of the same types. Secrets are not among them: they are in the vault.

A stored document holds what differs from the defaults, so a setting that is added later needs no migration, and a
released default stays as it is. A document with an unknown name is refused: a newer version of the program wrote it, and
without that setting calls could come in that the owner has shut out.
"""

from typing import Annotated, Any, ClassVar, Literal, get_args

import msgspec
from msgspec import Meta

from postern.core.answer import content_type_problem
from postern.core.calls.content import LARGEST_PAYLOAD_LIMIT, PAYLOAD_LIMIT, Arrays
from postern.core.deliveries.delivery import FIELD_NAMES
from postern.core.documents import Document
from postern.core.names import header_name_problem, parameter_name_problem, username_problem
from postern.core.schedules import Schedule, parse_schedule
from postern.core.signatures.credential import Placement
from postern.core.signatures.handshake import HandshakeKind
from postern.core.signatures.scheme import SignatureScheme, json_schema
from postern.core.webhooks import bounds
from postern.core.webhooks.bounds import Bounds, without
from postern.core.webhooks.conditions import LONGEST_VALUE, MOST_ROWS, MOST_VALUES, Operator, place_checked
from postern.core.webhooks.grouping import LONGEST_FOLDER, folder_of
from postern.core.webhooks.turns import LONGEST_QUIET, LONGEST_WAIT_FOR_QUIET, MOST_AT_ONCE, by_problem

Method = Literal["none", "token", "hmac"]
Forward = Literal["trigger", "original"]


class Setting(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Snake case in Python, camel case in documents."""

    secrets: ClassVar[dict[str, str]] = {}
    """Fields of requests that nobody is shown: the name of each, and the field of the vault that keeps it."""


class NoAuthentication(Setting, frozen=True, tag_field="method", tag="none"):
    """Anybody who knows the URL may call. For testing only."""

    method: ClassVar[Literal["none"]] = "none"


class TokenAuthentication(Setting, frozen=True, tag_field="method", tag="token"):
    """A fixed secret that the caller sends with every call: in the header ``headerName``, as Bearer token, as password of the
    Basic ``username``, in the URL as ``parameterName``, or in the body at ``tokenPath``."""

    method: ClassVar[Literal["token"]] = "token"
    secrets = {"token": "main", "secondToken": "second"}
    placement: Placement = "header"
    header_name: Annotated[str, Bounds(check=without(header_name_problem))] = "X-Api-Key"
    username: Annotated[str, Bounds(check=without(username_problem))] | None = None
    parameter_name: Annotated[str, Bounds(check=without(parameter_name_problem))] = "token"
    token_path: Annotated[str, Bounds(check=without(bounds.path_problem))] = "token"


class SignatureAuthentication(Setting, frozen=True, tag_field="method", tag="hmac"):
    """The sender signs each call. ``provider`` is a built-in sender, generic, or custom with a ``scheme``; ``publicUrl`` is the URL
    that the sender was given, where that is signed; ``toleranceSeconds`` is the age that a signature may have."""

    method: ClassVar[Literal["hmac"]] = "hmac"
    secrets = {"secret": "main", "secondSecret": "second", "verifyToken": "verifyToken"}
    provider: str
    public_url: Annotated[str, Bounds(check=without(bounds.public_url_problem))] | None = None
    tolerance_seconds: Annotated[int, Bounds(ge=0, le=30 * 86400)] | None = None
    scheme: (
        Annotated[
            Document,
            Meta(description="For the provider custom: how it signs.", extra_json_schema=json_schema()),
        ]
        | None
    ) = None
    """A custom scheme as its owner wrote it. Calls are judged by ``Resolved.scheme``."""
    require_timestamp_and_digest: bool = False


Authentication = NoAuthentication | TokenAuthentication | SignatureAuthentication


FieldPath = Annotated[
    Annotated[str, Bounds(check=bounds.mapped_path)] | None,
    Meta(description="A field path, like customer.email or items[0].sku."),
]


class FieldMapping(Setting, frozen=True):
    """Up to four values taken out of the payload, each by its path, like customer.email or items[0].sku."""

    field_one: FieldPath = None
    field_two: FieldPath = None
    field_three: FieldPath = None
    field_four: FieldPath = None

    def paths(self) -> dict[str, str]:
        """The paths by the field's name in a trigger."""
        paths = (self.field_one, self.field_two, self.field_three, self.field_four)
        return {name: path for name, path in zip(FIELD_NAMES, paths, strict=True) if path}


class SynchronousResponse(Setting, frozen=True):
    """Whether the caller waits for the workflow's answer, and how long."""

    enabled: bool = False
    timeout_seconds: Annotated[float, Bounds(ge=1, le=60)] | None = None


class AcceptedAnswer(Setting, frozen=True):
    """The answer to an accepted call whose caller does not wait for the workflow. {invocationId} in the body is
    replaced."""

    status: Annotated[int, Bounds(ge=200, le=299)] = 200
    content_type: Annotated[str, Bounds(check=without(content_type_problem))] = "text/plain; charset=utf-8"
    body: Annotated[str, Bounds(max_length=4096)] = ""


LONGEST_WINDOW = 7 * 86400


class DuplicateProtection(Setting, frozen=True):
    """A delivery that comes again within the window starts nothing. ``key`` is ``header:Name`` or a path in the body; null:
    the sender's delivery id, otherwise the body."""

    enabled: bool = False
    key: Annotated[str, Bounds(check=bounds.duplicate_key)] | None = None
    window_seconds: Annotated[int, Bounds(ge=60, le=LONGEST_WINDOW)] = 86400


class ConditionRow(Setting, frozen=True):
    """``of``: a path in the payload, ``header:Name`` or ``event``; ``[*]`` in a path is each element, of which one is enough."""

    of: Annotated[str, Bounds(check=place_checked, max_length=500)]
    operator: Operator = msgspec.field(name="is")
    values: Annotated[
        list[Annotated[str, Bounds(max_length=LONGEST_VALUE)]],
        Meta(
            description="One is enough. there and notThere take none, greater and less one number.",
            extra_json_schema={"items": {"type": ["string", "number", "boolean"]}},
        ),
        Bounds(max_length=MOST_VALUES),
    ] = []
    ignore_case: bool = False


class CorsSetting(Setting, frozen=True):
    """Which pages of other origins may call."""

    enabled: bool = False
    origins: Annotated[list[str], Bounds(check=bounds.origins, max_length=100)] = []


class RateLimit(Setting, frozen=True):
    """The calls that are accepted in a second, and at once after a quiet time."""

    calls_per_second: Annotated[float, Bounds(check=bounds.countable, gt=0, le=100_000)] = 100.0
    burst: Annotated[int, Bounds(ge=1, le=1_000_000)] = 200


class ScheduleSetting(Setting, frozen=True):
    """The gateway fetches a URL by itself: ``every`` so many seconds (or 15m, 2h, 1d), or at the times of a ``cron``
    expression."""

    secrets = {"headers": "header:"}
    url: Annotated[str, Bounds(check=without(bounds.source_problem))]
    every: int | str | None = None
    cron: str | None = None
    time_zone: str = "UTC"
    headers: list[str] = []
    """The names; the values are secrets."""
    timeout_seconds: Annotated[float, Bounds(ge=1, le=60)] = 10.0
    only_when_changed: bool = False
    split_array: bool = False
    pause_after_failures: Annotated[int, Bounds(ge=1, le=1000)] = 10
    enabled: bool = True

    def times(self, anchor: float) -> Schedule:
        """When it fetches. ``anchor``: when the setting was saved."""
        return parse_schedule(self.every, self.cron, self.time_zone, anchor)


class RhythmSetting(Setting, frozen=True):
    """The rhythm of calls: days, hours, and how many minutes may go by without a call. Otherwise an incident opens."""

    rows: Annotated[
        list[str],
        Meta(
            description="Each like Mon-Fri 8-18: 90. Minutes count only in a row's hours; the first row with an hour counts."
        ),
        Bounds(check=bounds.rhythm_rows, max_length=40),
    ]
    time_zone: Annotated[str, Meta(description="Like Europe/Berlin."), Bounds(check=bounds.time_zone)]


class AlarmSettings(Setting, frozen=True):
    """The alarms. ``rejected``, ``notStarted`` and ``answers`` open an incident when the last three calls, or ``sharePercent`` of
    the latest calls (at least five), were rejected, could not be started, or were answered late or with 5xx; ``runsFailed``, when
    the workflow failed that often, however long after the call."""

    rejected: bool = True
    not_started: bool = True
    runs_failed: bool = True
    answers: bool = True
    share_percent: Annotated[int, Bounds(ge=1, le=100)] = 50
    waits_minutes: Annotated[
        int,
        Meta(description="Minutes after which an incident opens if a call's workflow could not be started."),
        Bounds(ge=1, le=1440),
    ] = 5
    rhythm: RhythmSetting | None = None


class TargetSetting(Setting, frozen=True):
    """Where accepted calls go instead of the gateway's engine. ``forward``: trigger, as to an engine over HTTP, or original, the
    call as it came. A header's value is a secret, and may hold {fieldOne} to {fieldFour}, {webhookId} and {invocationId}."""

    secrets = {"headers": "target:", "signingSecret": "targetKey"}
    url: Annotated[str, Bounds(check=without(bounds.source_problem))]
    forward: Forward = "trigger"
    headers: list[str] = []
    """The names; the values are secrets."""
    timeout_seconds: Annotated[float, Bounds(ge=1, le=15)] = 10.0


class TurnsSetting(Setting, frozen=True):
    """Calls wait for their turn before they start the workflow. ``by``: a path in the payload, or fieldOne to fieldFour."""

    at_once: Annotated[
        Annotated[int, Bounds(ge=1, le=MOST_AT_ONCE)] | None,
        Meta(description="At most so many are at work. null: as many as come."),
    ] = None
    by: Annotated[
        Annotated[str, Bounds(check=without(by_problem), max_length=500)] | None,
        Meta(
            description="Calls with the same value there start one after the other, in the order in which they were accepted."
        ),
    ] = None
    newest_after_seconds: Annotated[
        Annotated[int, Bounds(ge=1, le=LONGEST_QUIET)] | None,
        Meta(
            description="Only the newest of a value starts, after so many seconds without another. The others are superseded."
        ),
    ] = None
    longest_wait_seconds: Annotated[
        Annotated[int, Bounds(ge=1, le=LONGEST_WAIT_FOR_QUIET)] | None,
        Meta(
            description="The newest starts at the latest so long after the first. null: ten times newestAfterSeconds."
        ),
    ] = None


class SendAgainSetting(Setting, frozen=True):
    """The account at the sender that is asked for what it did not deliver. Its token is a secret."""

    secrets = {"token": "sendAgain"}
    account: Annotated[str, Bounds(check=without(bounds.account_problem), max_length=300)] = ""
    api: Annotated[str, Bounds(check=without(bounds.source_problem))] | None = None


class WebhookSettings(Setting, frozen=True):
    """The settings of a webhook, without its secrets and whether it is enabled."""

    name: Annotated[str, Bounds(check=without(bounds.name_problem), min_length=1, max_length=200)]
    authentication: Authentication
    path: Annotated[
        Annotated[str, Bounds(check=without(bounds.own_path_problem))] | None,
        Meta(description="Its URL ends in this, like shop/orders, instead of the short code."),
    ] = None
    only_path: Annotated[
        bool,
        Meta(description="Calls to the URL with the short code are answered like those to an unknown URL."),
    ] = False
    folder: Annotated[
        Annotated[str, Bounds(check=folder_of, max_length=LONGEST_FOLDER)] | None,
        Meta(description="Its place in the list, like Shops/Europe. It does not affect calls."),
    ] = None
    tags: Annotated[
        list[str],
        Meta(description="Words to find it by. They do not affect calls."),
        Bounds(check=bounds.tags, max_length=200),
    ] = []
    field_mapping: FieldMapping = FieldMapping()
    synchronous_response: SynchronousResponse = SynchronousResponse()
    conditions: Annotated[
        list[ConditionRow],
        Meta(
            description="Rows that must all hold; otherwise a call is recorded as filtered, and starts nothing."
        ),
        Bounds(max_length=MOST_ROWS),
    ] = []
    target: TargetSetting | None = None
    duplicate_protection: DuplicateProtection = DuplicateProtection()
    cors: CorsSetting = CorsSetting()
    ip_allowlist: Annotated[
        list[str],
        Meta(description="Addresses and networks that may call. Empty: all."),
        Bounds(check=bounds.ranges, max_length=1000),
    ] = []
    payload_limit_bytes: Annotated[
        int,
        Meta(description="Larger bodies are refused, also after unpacking."),
        Bounds(ge=1, le=LARGEST_PAYLOAD_LIMIT),
    ] = PAYLOAD_LIMIT
    arrays: Annotated[
        Arrays | None,
        Meta(
            description="A body that is a JSON array is refused, read whole as an object with its items, or read as a call "
            "for each element. null: as its built-in sender needs, otherwise refused."
        ),
    ] = None
    accepts_empty: Annotated[bool, Meta(description="A call without a body is accepted, and read as {}.")] = (
        False
    )
    accepts_xml: Annotated[
        bool, Meta(description="An XML body is accepted. Its text is under the key xml, unparsed.")
    ] = False
    accepted_answer: AcceptedAnswer | None = None
    handshake: Annotated[
        HandshakeKind | None,
        Meta(
            description="The way in which the sender tests the URL before it sends calls. A test starts nothing. "
            "null: as its signature's scheme says, otherwise none."
        ),
    ] = None
    rate_limit: RateLimit = RateLimit()
    turns: TurnsSetting | None = None
    schedule: ScheduleSetting | None = None
    alarms: AlarmSettings = AlarmSettings()
    send_again: SendAgainSetting | None = None
    history_retention_days: Annotated[
        Annotated[int, Bounds(ge=1, le=3650)] | None,
        Meta(description="How long calls are kept. null: as the gateway keeps them."),
    ] = None
    body_retention_days: Annotated[
        Annotated[int, Bounds(ge=0, le=3650)] | None,
        Meta(description="The same of the bodies of calls and answers. 0: as short as possible."),
    ] = None
    filtered_retention_days: Annotated[
        Annotated[int, Bounds(ge=0, le=3650)] | None,
        Meta(description="The same of the bodies of filtered calls. null: as other bodies."),
    ] = None


class Resolved(Setting, frozen=True):
    """The chosen sender's preset as it was when the webhook was saved."""

    scheme: SignatureScheme | None = None
    preset_version: int | None = None
    answer_timeout_seconds: float | None = None
    sends_arrays: bool = False


class UnreadableSettings(ValueError):
    """This version cannot read a stored document. The message says why."""


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
    """Every setting under its name in the API, defaults too."""
    document: Document = msgspec.to_builtins(setting)
    return document


def without_defaults(setting: msgspec.Struct) -> Document:
    """Every setting that differs from its default, under its name in the API."""
    config = setting.__struct_config__
    document: Document = {config.tag_field: config.tag} if config.tag_field is not None else {}
    for field in msgspec.structs.fields(setting):
        value = getattr(setting, field.name)
        if field.required or value != default_of(field):
            document[field.encode_name] = _short(value)
    return document


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return [_short(item) for item in value]
    return without_defaults(value) if isinstance(value, msgspec.Struct) else value


def secret_places() -> dict[str, set[str]]:
    """The settings that have secrets, each with their names."""
    kinds = {
        field.encode_name: (field.type, *get_args(field.type))
        for field in msgspec.structs.fields(WebhookSettings)
    }
    places = {
        name: {secret for kind in types for secret in getattr(kind, "secrets", ())}
        for name, types in kinds.items()
    }
    return {name: secrets for name, secrets in places.items() if secrets}


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
