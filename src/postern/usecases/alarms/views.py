"""What is answered about incidents and rhythms."""

from typing import Annotated, Literal

from msgspec import Meta

from postern.core.alarms import AlarmKind
from postern.usecases.answers import Time, View


class Incident(View):
    """What an alarm has found, in numbers. Open as long as ``closedAt`` is null."""

    id: str
    kind: AlarmKind
    webhook_id: Annotated[str | None, Meta(description="Null where it is the gateway's own.")]
    webhook_name: str | None
    sentence: str
    sender_clock: Annotated[
        str | None, Meta(description="Until when the sender tries such calls again, and what it does then.")
    ]
    opened_at: Time
    first_at: Time
    last_at: Time
    count: int
    reasons: Annotated[
        dict[str, int],
        Meta(
            description="How many for each: codes of rejected calls, statuses of answers, troubles of the gateway."
        ),
    ]
    closed_at: Time | None
    closed_because: str
    acknowledged_at: Time | None
    acknowledged_by: str
    not_told: Annotated[
        list[str], Meta(description="Channels that could not be told what there is to tell, and why.")
    ]


class TriedChannel(View):
    """A channel, and what has come of the test message. ``detail``: why it was not taken."""

    channel: str
    taken: bool
    detail: str


class IncidentSample(View):
    """One of its calls, and what would make calls like it verify."""

    invocation_id: str
    received_at: Time
    code: str
    detail: str
    would_verify_if: list[str]


class NextAction(View):
    """What is offered to be done about it now. ``invocationId``: the call whose explanation offers the fix, its first one
    that changes a setting. ``count``: how many calls it starts."""

    action: Literal["fix", "admit", "replay", "secrets", "rhythm", "send_again"]
    text: str
    count: int | None = None
    invocation_id: str | None = None
    fix: int | None = None


class IncidentStory(Incident):
    samples: list[IncidentSample]
    next_actions: list[NextAction]


class ProposedRhythm(View):
    """A rhythm that calls have kept to, or null with the reason why none is proposed. ``wouldHaveRung``: when it would have
    opened an incident in the days that were looked at."""

    cron: str | None
    grace_minutes: int | None
    time_zone: str
    in_words: str
    evidence: str
    days: int
    would_have_rung: list[Time]
