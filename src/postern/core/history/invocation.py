"""The history's rows: invocations (calls with their verdicts, never rewritten) and their deliveries, which move."""

from collections.abc import Sequence
from typing import Literal, get_args

import msgspec

from postern.core.answer import WorkflowResponse
from postern.core.calls.call import Call
from postern.core.calls.content import RECORDED, Payload, UnreadableContent, read_object
from postern.core.deliveries.delivery import DeliveryState, Logged
from postern.core.documents import DAMAGED, read_kept
from postern.core.history.marks import Bookmark, EditedFrom

Json = bytes
_PAIRS = list[tuple[str, str]]
_STEPS = list[tuple[str, bool, str]]

RecordedOutcome = Literal["accepted", "filtered", "rejected", "handshake", "duplicate", "edited"]
"""``edited``: it is a changed copy of another call."""

Status = Literal[
    "rejected",
    "filtered",
    "duplicate",
    "handshake",
    "accepted",
    "held",
    "started",
    "responded",
    "completed",
    "failed",
    "lost",
    "dropped",
    "superseded",
]
"""The state of an invocation as users see it (``status_of``)."""

StatusFilter = Literal["delivered", "waiting", Status]
"""A status, or one of two groups of them. ``failed`` and ``rejected`` are groups of one."""
STATUSES: tuple[StatusFilter, ...] = get_args(StatusFilter)


def statuses_of(status: StatusFilter) -> tuple[Status, ...]:
    match status:
        case "delivered":
            return ("started", "responded", "completed")
        case "waiting":
            return ("accepted", "held")
        case _:
            return (status,)


class Invocation(msgspec.Struct):
    """A call to a known webhook and its verdict. Headers and query are masked before they get here."""

    id: str
    webhook_id: str
    received_at: float
    outcome: RecordedOutcome
    code: str
    status: int
    """The HTTP status of the answer; 0 if a workflow supplies it later (see the delivery)."""
    config_version: int
    method: str
    path: bytes
    query: bytes
    headers: Json
    body: bytes | None
    body_size: int
    address: str
    duration_us: int
    matched: str
    detail: str
    trace: Json
    duplicate_of: str | None = None

    @property
    def is_event(self) -> bool:
        """Whether it holds an event for a workflow, or repeats a call that does."""
        match self.outcome:
            case "accepted" | "filtered" | "duplicate" | "edited":
                return True
            case "rejected" | "handshake":
                return False

    @property
    def body_is_gone(self) -> bool:
        """It had a body, which is no longer kept."""
        return self.body is None and self.body_size > 0

    @property
    def body_is_cut(self) -> bool:
        """Only the beginning of it is kept, as of a set-up handshake."""
        return self.body is not None and len(self.body) < self.body_size

    @property
    def header_pairs(self) -> list[tuple[str, str]]:
        pairs: list[tuple[str, str]] = read_kept(self.headers, _PAIRS, [])
        return pairs

    @property
    def steps(self) -> list[tuple[str, bool, str]]:
        """How it was decided; here it is also said that the record is damaged."""
        steps: list[tuple[str, bool, str]] = read_kept(self.trace, _STEPS, [("steps", False, DAMAGED)])
        return (
            steps
            if read_kept(self.headers, _PAIRS, None) is not None
            else [*steps, ("headers", False, DAMAGED)]
        )

    def as_call(self, base_url: str = "") -> Call:
        """The call as far as it is kept: with credentials masked, signatures whole, and the time of its receipt."""
        headers = tuple(
            (name.encode("latin-1", "replace"), value.encode("latin-1", "replace"))
            for name, value in self.header_pairs
        )
        return Call(
            self.method,
            self.path,
            self.query,
            headers,
            self.body or b"",
            self.address,
            self.received_at,
            base_url,
        )


class Content(msgspec.Struct):
    headers: Json
    body: bytes | None


NO_PAYLOAD = "the call's body is no longer kept, or cannot be read"
_HOW_TO_READ = ("content-type", "content-encoding")


def payload_of(kept: Invocation | Content) -> Payload | None:
    """The JSON object that the stored call carried, or None if its body is no longer kept, or cannot be read."""
    if kept.body is None:
        return None
    headers = tuple(
        (name.encode(), value.encode("latin-1", "replace"))
        for name, value in read_kept(kept.headers, _PAIRS, [])
        if name in _HOW_TO_READ
    )
    payload = read_object(Call("POST", b"", b"", headers, kept.body, "", 0.0), RECORDED)
    return None if isinstance(payload, UnreadableContent) else payload


def traceparent_of(kept: Content) -> str:
    """The call's trace. It is masked, and so not read, if no trusted proxy has sent it."""
    if b'"traceparent"' not in kept.headers:
        return ""
    sent = dict(read_kept(kept.headers, _PAIRS, [])).get("traceparent", "")
    headers = ((b"traceparent", sent.encode("latin-1", "replace")),)
    return Call("POST", b"", b"", headers, b"", "", 0.0, from_proxy=True).traceparent


class Delivery(msgspec.Struct):
    key: str
    invocation_id: str
    webhook_id: str
    emission: int
    state: DeliveryState
    attempts: int
    next_at: float
    fields: dict[str, str]
    created_at: float
    deadline: float | None = None
    """Until when a caller waits for the workflow's answer; None if nobody waits."""
    started_at: float | None = None
    runs: int | None = None
    error: str = ""
    log: list[Logged] = msgspec.field(default_factory=list)
    """The result of each attempt, the newest last, bounded."""
    response: WorkflowResponse | None = None
    responded_at: float | None = None
    released_at: float | None = None
    """When the hold ended during which it waited, or its turn came."""
    answer_code: str = ""
    """The answer to the waiting caller: accepted (the workflow's answer), completed, workflow_failed, response_timeout."""
    ended_at: float | None = None
    """When the last of its runs ended."""
    ask_at: float | None = None
    """When the engine is asked again how its runs ended; None if that is known, or the engine cannot tell."""
    asked_by: str | None = None
    """Who admitted the call or had it replayed; None if the call itself started it."""
    replay_id: str | None = None
    """The replay of many that made it."""
    lane: str = ""
    """The deliveries with which it waits: its webhook's own, by the webhook's id; empty for those of all other webhooks."""
    turn: str | None = None
    """With which others of its lane it takes turns (``TurnRules.of``); None if it waits for no turn."""
    place: int | None = None
    """Among those with the same turn, in the order of acceptance."""
    at_work: bool | None = None
    """Its turn has come, and is not over."""
    superseded_by: str | None = None
    """The delivery of a newer call that was started in its place."""
    may_run: bool = False
    """An earlier start of it was not written down, because its process died. It may be at work."""
    traceparent: str = ""
    """The call has it among its headers, and is asked for it when this is started."""

    @property
    def waits_for_turn(self) -> bool:
        return self.state == "queued" and self.turn is not None and not self.at_work

    @property
    def is_damaged(self) -> bool:
        """Its values cannot be read, and without them nothing is started."""
        return self.error == DAMAGED

    @property
    def is_divided(self) -> bool:
        """Whether it belongs to an admitted array whose elements were started in its place, each as a call of its own."""
        return self.state == "completed" and self.started_at is None


class Entry(msgspec.Struct):
    """Everything that the recorder writes for one call, all or nothing."""

    invocation: Invocation
    delivery: Delivery | None = None
    duplicate_key: bytes | None = None
    duplicate_until: float = 0.0
    secret_id: str | None = None
    sample: bytes | None = None
    """The finished trigger as JSON, if Record Events is armed."""
    token_fingerprint: str = ""
    """The fingerprint of the token that a rejected call has shown."""
    others: "Sequence[Entry]" = ()
    """The other elements of an array. These have no others."""
    size: int = 0
    """Its part of the writer's room while it waits, in bytes."""


class AnswerHeard(msgspec.Struct, frozen=True):
    """The answer that a caller heard, noted after it was sent. Only for answers that came late, or differ from the invocation's."""

    invocation_id: str
    status: int
    at: float
    reached: bool
    """False: the caller had gone before the answer."""


class Receipt(msgspec.Struct, frozen=True):
    """The call is on disk. ``first``: the earlier invocation of which it is a duplicate."""

    first: str | None = None


class HistoryFilter(msgspec.Struct, frozen=True):
    """Every part that is given must hold."""

    webhook_id: str | None = None
    status: StatusFilter | None = None
    code: str | None = None
    since: float | None = None
    until: float | None = None
    search: str | None = None
    answer: str | None = None
    """The answer that the caller got: a status like 504, all of a kind like 5xx, or ``gone`` if it had left."""
    value: str | None = None
    """A mapped value or event name, in capitals or not; with a ``*`` at its end, the beginning of one. Or ids of calls, with
    commas between them."""
    address: str | None = None
    bookmarked: bool = False
    header: str | None = None
    """``name``, ``name=value`` or ``name=beginning*``; see ``part``."""
    field: str | None = None
    """A mapped value (``fieldOne=1001``) or a value in the payload (``customer.id=7``), written likewise."""
    replay: str | None = None
    """The id of the replay of many that has replayed them."""
    error: str | None = None
    """The error with which they failed; a ``…`` in it stands for any text."""


class Story(msgspec.Struct):
    """A call and everything that has become of it. ``deliveries`` are in the order of their emissions."""

    invocation: Invocation
    deliveries: list[Delivery]
    answered: AnswerHeard | None = None
    bookmark: Bookmark | None = None
    edited: EditedFrom | None = None


class HistoryPage(msgspec.Struct):
    """Newest first. ``next_before``: where the next page goes on. A short page may have a next one, too."""

    rows: list[Story]
    next_before: str | None = None


class Counted(msgspec.Struct, frozen=True):
    """``calls``: how many a filter finds, or finds at least. ``back_to``: the oldest call looked at, if not all were."""

    calls: int
    or_more: bool
    back_to: str | None = None


def status_of(outcome: RecordedOutcome, delivery: Delivery | None) -> Status:
    """``delivery``: the newest one."""
    if delivery is None:
        return "accepted" if outcome == "edited" else outcome
    if delivery.state in ("started", "completed") and delivery.answer_code == "accepted":
        return "responded"
    return "accepted" if delivery.state == "queued" else delivery.state


class StoreUnavailable(Exception):
    """The store cannot write it now: it is full, locked or away, or too much is waiting. Nothing of it was written."""
