"""Schedules: when a webhook fetches its source, in words and in numbers, and what follows from a fetch.

The times of a schedule lie on a fixed grid, not "so long after the last run". So runs that were missed become one,
and every process computes the same next time.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim, CronSimError
from msgspec import Struct

from postern.core.calls.call import Call
from postern.core.calls.content import MOST_ELEMENTS, elements_of, headers_of_part

SHORTEST = 60
LONGEST_INTERVAL = 366 * 86400
LONGEST_BACKOFF = 3600.0
LONGEST_ASKED_FOR = 86400.0

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_EVERY = re.compile(r"([0-9]{1,9}) ?([smhd]?)")
_NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


class InvalidSchedule(ValueError):
    """``field``: ``every``, ``cron`` or ``timeZone``. The message says what to write."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class Schedule(Struct, frozen=True):
    """Either ``every`` so many seconds, counted from ``anchor``, or a ``cron`` expression in a time zone."""

    every: int | None = None
    cron: str | None = None
    time_zone: str = "UTC"
    anchor: float = 0.0


def parse_schedule(
    every: str | int | None = None, cron: str | None = None, time_zone: str | None = None, anchor: float = 0.0
) -> Schedule:
    """``anchor``: when the schedule was saved; *every 15 minutes* begins then. Raises ``InvalidSchedule``."""
    if (every is None) == (cron is None):
        other = "" if every is None else "; null removes the other one"
        raise InvalidSchedule("every", f"give either every or cron{other}")
    zone = time_zone or "UTC"
    _zone(zone)
    if every is not None:
        return Schedule(every=_seconds(every), time_zone=zone, anchor=anchor)
    assert cron is not None
    return Schedule(cron=_cron(cron, zone), time_zone=zone, anchor=anchor)


def _seconds(every: str | int) -> int:
    match = _EVERY.fullmatch(str(every).strip().lower()) if not isinstance(every, bool) else None
    if match is None:
        raise InvalidSchedule("every", "write a number of seconds, or 15m, 2h, 1d")
    seconds = int(match[1]) * _UNITS[match[2] or "s"]
    if not SHORTEST <= seconds <= LONGEST_INTERVAL:
        raise InvalidSchedule("every", "every must be 60 seconds to 366 days")
    return seconds


def _cron(text: str, zone: str) -> str:
    expression = _NICKNAMES.get(text.strip().lower(), " ".join(text.split()))
    if len(expression) > 200 or len(expression.split()) != 5:
        raise InvalidSchedule(
            "cron", "write five fields: minute hour day month weekday, such as 0 9 * * MON-FRI"
        )
    try:
        next(CronSim(expression, datetime(2024, 1, 1, tzinfo=_zone(zone))))
    except CronSimError as error:
        minute, hour, day, month, weekday = expression.split()
        if "day-of-month" in str(error) and month != "*":
            # Refused as well, unless another month has such a day.
            _cron(f"{minute} {hour} {day} * {weekday}", zone)
            raise InvalidSchedule("cron", "this date never comes") from error
        raise InvalidSchedule(
            "cron", f"{str(error).lower()}; write five fields: minute hour day month weekday"
        ) from error
    except StopIteration as error:
        raise InvalidSchedule("cron", "this date never comes") from error
    except Exception as error:  # the expression is a stranger's, and its reader is not ours
        raise InvalidSchedule("cron", "this is not a cron expression") from error
    return expression


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise InvalidSchedule(
            "timeZone", f"{name[:60]!r} is not a time zone; write one such as Europe/Berlin or UTC"
        ) from error


def next_run(schedule: Schedule, after: float, key: str = "") -> float:
    """The first time of the schedule later than ``after``. ``key``, the webhook's id, spreads equal schedules apart."""
    jitter = jitter_of(schedule, key)
    return _next_on_grid(schedule, after - jitter) + jitter


def next_times(schedule: Schedule, after: float, count: int) -> list[datetime]:
    """In the schedule's own time zone, without the delay that spreads equal schedules apart."""
    times = []
    for _ in range(count):
        after = next_run(schedule, after)
        times.append(datetime.fromtimestamp(after, _zone(schedule.time_zone)))
    return times


def jitter_of(schedule: Schedule, key: str) -> float:
    """A fixed delay, the same for every run: at most half a minute, and a tenth of a short period."""
    if not key:
        return 0.0
    longest = min((schedule.every or LONGEST_INTERVAL) / 10, SHORTEST / 2)
    return int.from_bytes(sha256(key.encode()).digest()[:4]) / 2**32 * longest


def _next_on_grid(schedule: Schedule, after: float) -> float:
    if schedule.every is not None:
        return schedule.anchor + ((after - schedule.anchor) // schedule.every + 1) * schedule.every
    assert schedule.cron is not None
    times = CronSim(schedule.cron, datetime.fromtimestamp(after, _zone(schedule.time_zone)))
    due = next(times).timestamp()
    while due <= after:
        # A clock change repeats an hour: this time of day has been there already.
        due = next(times).timestamp()
    return due


class Next(Struct, frozen=True):
    """The consequences of a run. ``at`` is None if the schedule pauses itself."""

    at: float | None
    failures: int

    @property
    def paused(self) -> bool:
        return self.at is None


def after_run(
    schedule: Schedule,
    key: str,
    now: float,
    *,
    succeeded: bool,
    pause_after: int,
    failures: int = 0,
    asked_for: float | None = None,
) -> Next:
    """``failures`` were counted before this run; ``asked_for`` is the source's Retry-After. After failures the schedule
    keeps its times, and leaves out those that come too soon."""
    wait = min(max(asked_for or 0.0, 0.0), LONGEST_ASKED_FOR)
    if succeeded:
        return Next(next_run(schedule, now + wait, key), 0)
    failures += 1
    if failures >= pause_after:
        return Next(None, failures)
    backoff = min(SHORTEST * 2.0 ** min(failures - 1, 10), LONGEST_BACKOFF) if failures > 1 else 0.0
    return Next(next_run(schedule, now + max(wait, backoff), key), failures)


class Seen(Struct, frozen=True):
    """The parts of an answer that are remembered, to compare the next one with it."""

    etag: str = ""
    last_modified: str = ""
    body_hash: str = ""


def seen(etag: str | None, last_modified: str | None, body: bytes) -> Seen:
    return Seen((etag or "")[:1024], (last_modified or "")[:128], sha256(body).hexdigest())


def conditions(previous: Seen | None) -> Mapping[str, str]:
    """The request headers with which the source can answer 304 if nothing has changed."""
    if previous is None:
        return {}
    headers = {"If-None-Match": previous.etag, "If-Modified-Since": previous.last_modified}
    return {name: value for name, value in headers.items() if value}


def changed(previous: Seen, fetched: Seen) -> bool:
    """Whether the answer is another one. The source's ETag counts more than a comparison of bytes."""
    if previous.etag and previous.etag == fetched.etag:
        return False
    return previous.body_hash != fetched.body_hash


def explain(schedule: Schedule) -> str:
    """The schedule for people: *every 15 minutes*, *at 09:00 on Monday through Friday (Europe/Berlin)*."""
    if schedule.cron is not None:
        words = CronSim(schedule.cron, datetime(2024, 1, 1)).explain()
        return f"{words[:1].lower()}{words[1:]} ({schedule.time_zone})"
    assert schedule.every is not None
    return f"every {duration(schedule.every).removeprefix('1 ')}"


def hours(seconds: int) -> str:
    """The shortest number of hours that is read as so many seconds again."""
    written = (f"{seconds / 3600:.{digits}f}" for digits in range(9))
    return next((text for text in written if round(float(text) * 3600) == seconds), f"{seconds / 3600:.10g}")


def duration(seconds: int) -> str:
    sizes = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
    size, unit = next(pair for pair in sizes if seconds % pair[0] == 0)
    count = seconds // size
    return f"{count} {unit}{'' if count == 1 else 's'}"


class ScheduleState(Struct, frozen=True):
    webhook_id: str
    anchor: float
    next_run_at: float | None
    """None while it is switched off or paused."""
    lease_until: float | None
    consecutive_failures: int
    paused_at: float | None
    paused_reason: str
    last_at: float | None
    last_result: str
    last_reason: str
    last_duration_ms: int | None
    etag: str
    last_modified: str
    body_hash: str


class ScheduleRun(Struct, frozen=True):
    """The result of one run. It is written down together with the calls that it brought."""

    at: float
    result: str
    reason: str
    duration_ms: int
    next_run_at: float | None
    failures: int
    paused: bool
    seen: Seen | None = None
    """None leaves what was remembered as it is."""


def parts_of(fetched: Call, split_array: bool) -> list[Call] | str:
    """The answer of a source as one call, or as one for each element of its array; or why that cannot be divided."""
    headers, bodies = headers_of_part(fetched.headers), [fetched.body]
    text = fetched.body.removeprefix(b"\xef\xbb\xbf").lstrip()
    if split_array and text[:1] == b"[":
        try:
            bodies = elements_of(text)
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            return f"the answer is not valid JSON: {error}"
        if len(bodies) > MOST_ELEMENTS:
            return f"an array of {len(bodies)} elements; one run takes at most {MOST_ELEMENTS}"
    return [fetched.but(headers=headers, body=body) for body in bodies]
