"""What is watched for at each webhook and at the gateway, and when it has come to where somebody should hear of it."""

from collections import Counter
from collections.abc import Mapping
from datetime import date
from typing import Literal, get_args

from msgspec import Struct, field

from postern.core.channels import Channel, Told
from postern.core.history.volume import ANSWER, end_name, is_call

AlarmKind = Literal["rejected", "not_started", "answers", "gateway", "silence"]
ALARMS: tuple[AlarmKind, ...] = get_args(AlarmKind)

IN_A_ROW, FEWEST = 3, 5
"""So many calls, one after the other, or so many of which the share counts."""
LOOK_BACK = 1440
"""Minutes: of a webhook that is called seldom, so many are gone back for its latest calls."""
LATELY = 15
"""Minutes in which all must have gone well for an incident to be closed."""
SECOND_SECRET_DAYS = 30
NEARLY_FULL = 0.9
"""Of the disk, and of the calls that the history may have."""

RUN_FAILED, REFUSED, WAITS = end_name("failed"), "start:refused", "start:waits"
"""Of deliveries: a run of theirs failed, the engine would never take them or was away too long, they are tried again and again."""
_ON_PURPOSE = ("accepted", "duplicate", "handshake", "webhook_disabled")
_GOOD_ANSWERS = (f"{ANSWER}2", f"{ANSWER}3")
_BAD_ANSWERS = f"{ANSWER}5"
_STORE_REFUSED = f"{ANSWER}503"

Minutes = Mapping[int, Mapping[str, int]]
"""By minute: what was counted in it, by name (`core/history/volume.py`)."""


class AlarmPolicy(Struct, frozen=True):
    """The gateway's rule, for all webhooks."""

    kinds: tuple[AlarmKind, ...] = ALARMS
    """Those that are watched for. A webhook may leave out some of them."""
    quiet_days: frozenset[date] = frozenset()
    channels: tuple[Channel, ...] = ()
    """Where incidents are told besides."""


class Incident(Struct, frozen=True):
    """What an alarm has found. Of each webhook and kind one is open at most; it gathers what comes until all is well again."""

    id: str
    webhook_id: str
    """Empty where it is the gateway's own."""
    kind: AlarmKind
    opened_at: float
    first_at: float
    """When the first call came that went wrong. Of a silence: when the last call came."""
    last_at: float
    count: int = 1
    reasons: dict[str, int] = field(default_factory=dict)
    """How many there were for each: codes of rejected calls, statuses of answers, what troubles the gateway."""
    detail: str = ""
    closed_at: float | None = None
    closed_because: str = ""
    acknowledged_at: float | None = None
    acknowledged_by: str = ""
    tell_at: float | None = None
    """When there is something to tell elsewhere, or to try again; the lease of whoever tells it."""
    told: dict[str, Told] = field(default_factory=dict)
    """By the channel's key."""


class Found(Struct, frozen=True):
    """What went wrong at one webhook, since when and how often, as it opens an incident or adds to it."""

    first_at: float
    last_at: float
    count: int
    reasons: dict[str, int]
    detail: str = ""


def is_bad(kind: AlarmKind, name: str) -> bool:
    """Whether what is counted under this name is a call that went wrong, in the sense of this kind."""
    match kind:
        case "rejected":
            return is_call(name) and name not in _ON_PURPOSE
        case "answers":
            return name.startswith(_BAD_ANSWERS) and name != _STORE_REFUSED
        case "not_started":
            return name in (RUN_FAILED, REFUSED, WAITS)
        case "gateway" | "silence":
            return False


def is_good(kind: AlarmKind, name: str) -> bool:
    if kind == "answers":
        return name.startswith(_GOOD_ANSWERS)
    return name in ("accepted", "duplicate")


def reason_of(name: str) -> str:
    """As it stands in an incident."""
    return name.rpartition(":")[2]


def opens(kind: AlarmKind, minutes: Minutes, share: int) -> int | None:
    """The first of the latest minutes in which calls went wrong: three in a row, or so many in percent of all of them, five at
    least. As many minutes are looked at as that takes: a busy webhook's last two, a quiet one's last day."""
    bad = good = 0
    first = newest = max(minutes, default=0)
    for minute in sorted(minutes, reverse=True):
        if newest - minute > 1 and (bad >= FEWEST or (bad >= IN_A_ROW and not good)):
            break
        wrong, right = _sum(kind, minutes[minute])
        bad, good = bad + wrong, good + right
        first = minute if wrong else first
    enough = bad >= IN_A_ROW if not good else bad >= FEWEST and bad * 100 >= share * (bad + good)
    return first if enough else None


def is_well(kind: AlarmKind, minutes: Minutes, share: int, now: int, long: bool) -> bool:
    """Whether good calls flow again: lately some came, and none went wrong. ``long``: the incident is open for so long that it
    is enough when not half as many go wrong as would open one."""
    sums = [_sum(kind, counted) for minute, counted in minutes.items() if minute > now - LATELY]
    bad, good = sum(wrong for wrong, _ in sums), sum(right for _, right in sums)
    return good > 0 and (bad == 0 or (long and bad * 200 < share * (bad + good)))


def gathered(kind: AlarmKind, minutes: Minutes) -> Found | None:
    """All that went wrong in these minutes."""
    reasons: Counter[str] = Counter()
    wrong = [minute for minute in sorted(minutes) if _sum(kind, minutes[minute])[0]]
    for minute in wrong:
        for name, count in minutes[minute].items():
            if is_bad(kind, name):
                reasons[reason_of(name)] += count
    if not wrong:
        return None
    return Found(wrong[0] * 60.0, wrong[-1] * 60.0, reasons.total(), dict(reasons.most_common()))


def _sum(kind: AlarmKind, counted: Mapping[str, int]) -> tuple[int, int]:
    bad = sum(count for name, count in counted.items() if is_bad(kind, name))
    good = sum(count for name, count in counted.items() if is_good(kind, name))
    return bad, good
