"""Answers about incidents and rhythms."""

from typing import Annotated, Literal

from msgspec import Meta

from postern.core.watch.alarms import AlarmKind
from postern.core.watch.channels import ChannelKind, ChannelState
from postern.usecases.answers import Time, View, shown


class ToldChannel(View):
    """A channel, and when it was told of the opening and of the end. ``error``: why the message that is due was not taken."""

    channel: str
    opened_at: Time | None
    closed_at: Time | None
    error: str


def told_of(state: ChannelState) -> ToldChannel:
    return shown(
        ToldChannel,
        state,
        opened_at=Time.maybe(state.opened_at or None),
        closed_at=Time.maybe(state.closed_at or None),
    )


class Incident(View):
    """A finding of an alarm. It is open as long as ``closedAt`` is null."""

    id: str
    kind: AlarmKind
    webhook_id: Annotated[str | None, Meta(description="Null for the gateway's own incident.")]
    webhook_name: str | None
    sentence: str
    sender_clock: Annotated[
        str | None, Meta(description="Until when the sender tries these calls again, and what it does then.")
    ]
    opened_at: Time
    first_at: Time
    last_at: Time
    count: int
    reasons: Annotated[
        dict[str, int],
        Meta(
            description="Counts by reason: codes of rejected calls, statuses of answers, failed runs, troubles of the gateway."
        ),
    ]
    closed_at: Time | None
    closed_because: str
    acknowledged_at: Time | None
    acknowledged_by: str
    acknowledged_note: Annotated[str, Meta(description="What that person is doing about it.")]
    told: list[ToldChannel]


class Channel(View):
    """Who hears of incidents: of those of one webhook, of one folder, or, with neither, of all."""

    id: Annotated[str | None, Meta(description="Null for one of POSTERN_TELL, which is changed there.")]
    name: str
    kind: ChannelKind
    webhook_id: str | None
    webhook_name: str | None
    folder: str | None
    created_at: Time | None
    created_by: str


class TriedChannel(View):
    """Whether a channel took the test message. ``detail``: why it did not."""

    channel: str
    taken: bool
    detail: str


class IncidentSample(View):
    """One of the incident's calls, and what would make calls like it verify."""

    invocation_id: str
    received_at: Time
    code: str
    detail: str
    would_verify_if: list[str]


class NextAction(View):
    """Something that can be done now. ``invocationId`` and ``fix``: the call whose explanation offers the fix, and its number there.
    ``count``: how many calls the action starts."""

    action: Literal["fix", "admit", "replay", "secrets", "rhythm", "send_again"]
    text: str
    count: int | None = None
    invocation_id: str | None = None
    fix: int | None = None


class IncidentStory(Incident):
    left: Annotated[
        int | None,
        Meta(description="How many of its calls have not gone through since; null where that is not known."),
    ]
    samples: list[IncidentSample]
    next_actions: list[NextAction]


class ProposedRhythm(View):
    """A rhythm that past calls have kept. ``rows`` is empty if none is proposed; ``evidence`` says why. ``wouldHaveRung``: when it
    would have opened an incident."""

    rows: list[str]
    time_zone: str
    in_words: str
    evidence: str
    days: int
    would_have_rung: list[Time]
