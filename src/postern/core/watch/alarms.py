"""The alarms: which counted calls are good or bad for each, when an incident opens, and when it closes."""

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import date
from itertools import pairwise
from typing import Literal

from msgspec import Struct, field

from postern.core.history.volume import ANSWER, end_name, is_call
from postern.core.watch.channels import Channel, ChannelState

AlarmKind = Literal["rejected", "not_started", "runs_failed", "answers", "gateway", "silence"]


class Alarm(Struct, frozen=True):
    title: str
    is_of_calls: bool = False
    """Judged by what is counted of a webhook's calls and of their runs."""
    is_heard: bool = False
    """The sender has heard that the call failed, and may send it again."""


ALARMS: dict[AlarmKind, Alarm] = {
    "rejected": Alarm("Calls rejected", is_of_calls=True, is_heard=True),
    "not_started": Alarm("Not started", is_of_calls=True),
    "runs_failed": Alarm("Workflow failed", is_of_calls=True),
    "answers": Alarm("Bad answers", is_of_calls=True, is_heard=True),
    "gateway": Alarm("Needs help"),
    "silence": Alarm("Silent"),
}

FAILS_CALLERS: tuple[AlarmKind, ...] = ("not_started", "runs_failed")
"""Calls that were accepted and failed: they can be replayed. While one of these is open, callers who hear that the workflow
has failed are no incident of their own."""
IN_A_ROW, FEWEST = 3, 5
"""Bad calls that open an incident: this many without a good one among them, or at least this many where the share decides."""
LOOK_BACK = 1440
"""Minutes: the latest calls of a webhook that is called seldom may be this old."""
WEEK = 7 * 1440
LATELY = 15
"""Minutes without a bad call after which an incident closes."""
SECOND_SECRET_DAYS = 30
NEARLY_FULL = 0.9
"""The part of the disk, and of the calls that the history may hold, from which the gateway warns."""

RUN_FAILED, COMPLETED = end_name("failed"), end_name("completed")
REFUSED, WAITS = "start:refused", "start:waits"
"""Calls that the engine did not take, or that were given up; those that are still tried."""
STRANGERS = frozenset({"credential_missing", "signature_missing", "method_not_allowed"})
"""Reasons for rejecting calls without any proof: anybody can send these."""
ADMITTED = "each rejected call was admitted"
"""Why an incident is over."""
_ON_PURPOSE = ("accepted", "filtered", "duplicate", "handshake", "webhook_disabled")
_GOOD_ANSWERS = (f"{ANSWER}2", f"{ANSWER}3")
_BAD_ANSWERS = f"{ANSWER}5"
_STORE_REFUSED = f"{ANSWER}503"
WORKFLOW_FAILED = f"{ANSWER}502"

Minutes = Mapping[int, Mapping[str, int]]
"""By minute: the counts by name (`core/history/volume.py`)."""


class AlarmPolicy(Struct, frozen=True):
    """The gateway's rule, for all webhooks."""

    kinds: tuple[AlarmKind, ...] = tuple(ALARMS)
    """The alarms that are on. A webhook may turn off some of them."""
    quiet_days: frozenset[date] = frozenset()
    channels: tuple[Channel, ...] = ()
    tells_values: bool = False
    """Whether messages hold the mapped values of the newest calls."""
    mails: bool = False
    """Whether there is a mail server."""


class Incident(Struct, frozen=True):
    """A finding of an alarm. At most one is open for each webhook and kind; it counts further calls until all is well again."""

    id: str
    webhook_id: str
    """Empty for the gateway's own incident."""
    kind: AlarmKind
    opened_at: float
    first_at: float
    """When the first bad call came; for a silence: when the last call came."""
    last_at: float
    count: int = 1
    reasons: dict[str, int] = field(default_factory=dict)
    """Counts by reason: codes of rejected calls, statuses of answers, failed runs, troubles of the gateway."""
    detail: str = ""
    closed_at: float | None = None
    closed_because: str = ""
    acknowledged_at: float | None = None
    acknowledged_by: str = ""
    acknowledged_note: str = ""
    """The words of that person about what they do."""
    tell_at: float | None = None
    """The time of the next message; while a process tells them, the end of its lease."""
    told: dict[str, ChannelState] = field(default_factory=dict)
    """By the channel's key."""


class Found(Struct, frozen=True):
    """A problem of one webhook, since when and how often: it opens an incident, or updates it."""

    first_at: float
    last_at: float
    count: int
    reasons: dict[str, int]
    detail: str = ""


def is_bad(kind: AlarmKind, name: str) -> bool:
    """Whether calls counted under this name went wrong, for this kind of alarm."""
    match kind:
        case "rejected":
            return is_call(name) and name not in _ON_PURPOSE
        case "answers":
            return name.startswith(_BAD_ANSWERS) and name != _STORE_REFUSED
        case "not_started":
            return name in (REFUSED, WAITS)
        case "runs_failed":
            return name == RUN_FAILED
        case "gateway" | "silence":
            return False


def _is_good(kind: AlarmKind, name: str) -> bool:
    match kind:
        case "rejected":
            return name in ("accepted", "filtered", "duplicate")
        case "not_started":
            return name == "accepted"
        case "runs_failed":
            return name == COMPLETED
        case "answers":
            return name.startswith(_GOOD_ANSWERS)
        case "gateway" | "silence":
            return False


def incident_start(kind: AlarmKind, minutes: Minutes, share: int) -> int | None:
    """The minute since which an incident is there, or None: the latest three calls went wrong, or this share in percent of the
    latest ones, at least five. It looks at the last two minutes of a busy webhook, and further back at a quiet one."""
    bad = good = 0
    first = newest = max(minutes, default=0)
    for minute in sorted(minutes, reverse=True):
        if newest - minute > 1 and (bad >= FEWEST or (bad >= IN_A_ROW and good <= 0)):
            break
        wrong, right = _sums(kind, minutes[minute])
        bad, good = bad + wrong, good + right
        first = minute if wrong else first
    enough = bad >= IN_A_ROW if good <= 0 else bad >= FEWEST and bad * 100 >= share * (bad + good)
    return first if enough else None


def has_recovered(kind: AlarmKind, minutes: Minutes, share: int, now: int, long: bool) -> bool:
    """Whether good calls came lately and no bad one. ``long``: the incident has been open for long; then it is enough that
    bad calls are fewer than half of the share that opens one."""
    sums = [_sums(kind, counted) for minute, counted in minutes.items() if minute > now - LATELY]
    bad, good = sum(wrong for wrong, _ in sums), sum(right for _, right in sums)
    return good > 0 and (bad == 0 or (long and bad * 200 < share * (bad + good)))


def ignored_reasons(past: Minutes, now: int) -> frozenset[str]:
    """The reasons of strangers' calls, which open no incident while good calls come. They do if good calls have stopped for
    longer than any two were apart: then the sender itself may have lost its credential. ``past``: the counts of the last week."""
    if not any(_sums("rejected", counted)[1] for counted in past.values()):
        # The sender may never have had a credential. A GET is a browser, or the preview of a link.
        return frozenset({"method_not_allowed"})
    return STRANGERS if stopped_at(past, now) is None else frozenset()


def stopped_at(past: Minutes, now: int) -> int | None:
    """The minute of the last good call, if good calls have stopped for longer than any two of the last week were apart."""
    good = [minute for minute in sorted(past) if _sums("rejected", past[minute])[1]]
    longest = max((later - before for before, later in pairwise(good)), default=0)
    return good[-1] if good and now - good[-1] > max(longest, LATELY) else None


def reasons_to_tell(incident: Incident) -> tuple[str, ...]:
    """The reasons that are each told once: a stranger's calls, which keep an incident open, must not hide what fails since. A few
    calls are not enough: a stranger could make some for each reason, before."""
    fewest = IN_A_ROW if ALARMS[incident.kind].is_of_calls else 1
    frequent = [reason for reason, count in incident.reasons.items() if count >= fewest]
    # That says since when no call is accepted any more: each time is another one.
    return (
        (*frequent, incident.detail) if incident.kind == "rejected" and incident.detail else tuple(frequent)
    )


def without(minutes: Minutes, ignored: Collection[str]) -> Minutes:
    return {
        minute: {name: count for name, count in counted.items() if name not in ignored}
        for minute, counted in minutes.items()
    }


def gathered(kind: AlarmKind, minutes: Minutes) -> Found | None:
    reasons: Counter[str] = Counter()
    wrong: list[int] = []
    for minute in sorted(minutes):
        for name, count in minutes[minute].items():
            if is_bad(kind, name):
                reasons[name.rpartition(":")[2]] += count
                wrong.append(minute)
    if not wrong:
        return None
    return Found(wrong[0] * 60.0, wrong[-1] * 60.0, reasons.total(), dict(reasons.most_common()))


def _sums(kind: AlarmKind, counted: Mapping[str, int]) -> tuple[int, int]:
    bad = sum(count for name, count in counted.items() if is_bad(kind, name))
    good = sum(count for name, count in counted.items() if _is_good(kind, name))
    # A call that could not be started was accepted before.
    return bad, good - bad if kind == "not_started" else good
