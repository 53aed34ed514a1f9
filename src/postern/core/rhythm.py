"""A webhook's rhythm: after each of these times a call comes within the grace. Read from a cron expression that a person
sets; proposed, with the evidence, from when calls have come.

Everything is in minutes since 1970, because calls are counted by the minute.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import date, datetime, timedelta
from statistics import fmean, pvariance
from zoneinfo import ZoneInfo

from msgspec import Struct

from postern.core.schedules import Schedule, next_run, parse_schedule

DAYS = 30
"""So many days are looked back for a proposal."""
FEWEST_CALLS, FEWEST_DAYS = 20, 10
"""Of a history with fewer minutes, or days, that had a call nothing is proposed."""
MOST_RINGS = 1
"""A rhythm that would have rung more often is not proposed."""
SHORTEST_GRACE, LONGEST_GRACE = 4, 7 * 1440
DAY, HOUR = 1440, 60
MANY, SURELY = 5, 8
"""Calls within the grace: at least so many on each day, or of calls at random so many on average."""
_STEPS = (60, 30, 20, 15, 10, 5, 2, 1)
_GRACES = (4, 5, 10, 15, 20, 30, 40, 60, 90, 120, 180, 240, 360, 480, 720, 1080, 1440, 2160, 2880, 4320, 5760)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Rhythm(Struct, frozen=True):
    times: Schedule
    grace: int
    quiet_days: frozenset[date] = frozenset()
    """On these none need come, where the rhythm keeps to days of the week: public holidays are like its other days."""

    def deadline(self, last: int) -> int:
        """The minute by which the next call should have come, after one in the minute ``last``."""
        at = last * 60.0
        for _ in range(len(self.quiet_days) * DAY + 1):
            at = next_run(self.times, at)
            if not self._is_quiet(at):
                break
            at = self._end_of_day(at) - 1
        return int(at // 60) + self.grace

    def _is_quiet(self, at: float) -> bool:
        if not self.quiet_days or (self.times.cron or "").endswith(" *"):
            return False
        return self._local(at).date() in self.quiet_days

    def _end_of_day(self, at: float) -> float:
        local = self._local(at)
        return datetime.combine(local.date() + timedelta(1), datetime.min.time(), local.tzinfo).timestamp()

    def _local(self, at: float) -> datetime:
        return datetime.fromtimestamp(at, ZoneInfo(self.times.time_zone))

    def rings(self, calls: Sequence[int], until: int) -> list[int]:
        """When it would have rung, given the minutes in which calls came, in order. Once for each silence."""
        found = []
        place = 0
        while place < len(calls):
            due = self.deadline(calls[place])
            following = bisect_right(calls, due) - 1
            if following == place:
                if due >= until:
                    break
                found.append(due)
                following += 1
            place = following
        return found


def rhythm_of(cron: str, grace: int, time_zone: str, quiet_days: Collection[date] = frozenset()) -> Rhythm:
    """Raises ``InvalidSchedule``."""
    return Rhythm(parse_schedule(cron=cron, time_zone=time_zone), grace, frozenset(quiet_days))


class Proposal(Struct, frozen=True):
    cron: str
    grace: int
    time_zone: str
    in_words: str
    """*Monday to Friday, 8 to 18 h, at most 40 minutes apart*."""
    rings: list[int]
    """The minutes at which it would have rung in the days that were looked at."""


class _Hours:
    """Of each hour of the days looked at: how long it took at most until the next call, and how many calls came in it."""

    def __init__(self, calls: Sequence[int], first: int, until: int, zone: ZoneInfo) -> None:
        self.calls, self.until = calls, until
        self.hours: dict[int, tuple[date, int]] = {}
        """The local day and hour, by the hour's first minute."""
        for start in range(first - first % HOUR, until, HOUR):
            local = datetime.fromtimestamp(start * 60, zone)
            # Where the zone's hours do not begin with those of UTC, they begin some minutes later than said here.
            self.hours[start] = local.date(), local.hour
        self.of_day = Counter(self.hours[call - call % HOUR][0] for call in calls)
        self.of_hour: Counter[tuple[int, int]] = Counter()
        for call in calls:
            day, hour = self.hours[call - call % HOUR]
            self.of_hour[day.weekday(), hour] += 1

    def waits(self, days: Collection[date], minute: int | None) -> dict[int, int]:
        """By hour of the day: the longest wait for a call from any minute of it, or from this one."""
        found: dict[int, list[int]] = defaultdict(list)
        for start, (day, hour) in self.hours.items():
            if day in days:
                wait = self._longest(start) if minute is None else self._wait(start + minute)
                if wait is not None:
                    found[hour].append(wait)
        return {hour: _without_outlier(waits) for hour, waits in found.items()}

    def comes(self, days: Collection[date], hour: int, minute: int | None, grace: int) -> bool:
        """Whether it is no luck that a call came within the grace on each of these days: on each many came, or as many as on the
        others; of a few at random there would be none on some day. Where calls flow, they go on until the grace is over."""
        late = 59 if minute is None else minute
        counts = self._counts(days, hour, late, late + grace)
        if not counts or (
            minute is None and min(self._counts(days, hour, late + grace // 2, late + grace)) == 0
        ):
            return False
        mean, spread = fmean(counts), pvariance(counts)
        return min(counts) >= MANY or mean * mean >= SURELY * max(spread, 0.01)

    def _counts(self, days: Collection[date], hour: int, first: int, last: int) -> list[int]:
        return [
            bisect_right(self.calls, start + last) - bisect_left(self.calls, start + first)
            for start, (day, of_day) in self.hours.items()
            if of_day == hour and day in days and start + last < self.until
        ]

    def _wait(self, at: int) -> int | None:
        place = bisect_left(self.calls, at)
        return self.calls[place] - at if place < len(self.calls) else None

    def _longest(self, start: int) -> int | None:
        first, end = bisect_left(self.calls, start), bisect_left(self.calls, start + HOUR)
        if end == len(self.calls):
            return None
        after = [start - 1, *self.calls[first:end]]
        return max(
            (later - before - 1 for before, later in zip(after, self.calls[first : end + 1], strict=True) if before < start + HOUR - 1),
            default=0,
        )  # fmt: skip


def _without_outlier(waits: list[int]) -> int:
    """The longest; where one day's is more than three times any other's, that one aside: a holiday, or an outage."""
    *_, second, longest = [0, *sorted(waits)]
    return second if len(waits) > 2 and longest > 3 * max(second, 2) else longest


def propose(
    calls: Sequence[int], until: int, time_zone: str, quiet_days: Collection[date] = frozenset()
) -> Proposal | None:
    """The rhythm that would tell soonest of a silence, and would have rung once at most. ``calls``: the minutes in which
    calls came, in order. None where they are too few, or come as they like."""
    first = until - DAYS * DAY
    calls = calls[bisect_left(calls, first) : bisect_left(calls, until)]
    zone = parse_schedule(cron="0 0 * * *", time_zone=time_zone).time_zone
    if len(calls) < FEWEST_CALLS:
        return None
    seen = _Hours(calls, max(first, calls[0]), until, ZoneInfo(zone))
    if len(seen.of_day) < FEWEST_DAYS:
        return None
    looked_at = sorted({day for day, _ in seen.hours.values()})
    best: Proposal | None = None
    least = math.inf
    for told_after, cron, grace, words in sorted(_candidates(seen, looked_at, quiet_days)):
        if told_after >= least:
            break
        rings = rhythm_of(cron, grace, zone, quiet_days).rings(calls, until)
        # One that would have rung is worth it only where each that would not tells much later.
        if len(rings) <= MOST_RINGS and told_after * (1 + len(rings)) < least:
            least = told_after * (1 + len(rings))
            best = Proposal(cron, grace, zone, words, rings)
    return best


def _candidates(
    seen: _Hours, looked_at: list[date], quiet_days: Collection[date]
) -> Iterator[tuple[float, str, int, str]]:
    """How long after its beginning each would tell of a silence, on average; its cron expression, grace, and words."""
    active = {
        weekday
        for weekday in range(7)
        for days in [[day for day in looked_at if day.weekday() == weekday and day not in quiet_days]]
        if len(days) > 1 and sum(day in seen.of_day for day in days) >= 0.75 * len(days)
    }
    usual = sorted(seen.of_day[day] for day in looked_at if day.weekday() in active)
    for weekdays in {frozenset(active), frozenset(active & {0, 1, 2, 3, 4})}:
        # A day on which nearly nothing came, as on a holiday, says nothing of how long a wait may be.
        days = {
            day
            for day in looked_at
            if day.weekday() in weekdays
            and (len(weekdays) == 7 or day not in quiet_days)
            and seen.of_day[day] * 20 > usual[len(usual) // 2]
        }
        for minute in (None, *_usual_minutes(seen.calls)):
            waits = seen.waits(days, minute)
            for longest in sorted(set(waits.values())):
                hours = {hour for hour, wait in waits.items() if wait <= longest}
                grace = _grace(longest, len(days) * len(hours))
                hours = {hour for hour in hours if grace and seen.comes(days, hour, minute, grace)}
                if grace and hours:
                    cron = _cron(weekdays, hours, minute, grace)
                    words = _words(weekdays, hours, minute, grace)
                    yield _told_after(seen.of_hour, weekdays, hours, minute, grace), cron, grace, words


def _usual_minutes(calls: Sequence[int]) -> list[int]:
    """Just before the minute of the hour in which most calls come, where most of them do."""
    [(minute, _)] = Counter(call % HOUR for call in calls).most_common(1)
    near = sum((call - minute + 10) % HOUR <= 20 for call in calls)
    return [(minute - early) % HOUR for early in range(11)] if near >= 0.8 * len(calls) else []


def _grace(longest: int, waits: int) -> int | None:
    """The longest wait there was, and more: what has been seen so often is not all that there is. Of waits at random the
    longest of a quarter is longer than that of a month by this much."""
    enough = longest * (1 + 7 / math.log(max(waits, 3)))
    return next((grace for grace in _GRACES if grace >= enough), None)


def _step(grace: int) -> int:
    return next(step for step in _STEPS if step <= max(grace / 4, 1))


def _told_after(
    of_hour: Counter[tuple[int, int]],
    weekdays: Collection[int],
    hours: Collection[int],
    minute: int | None,
    grace: int,
) -> float:
    asked = [day * 24 + hour for day in weekdays for hour in hours]
    total = 0.0
    for (weekday, hour), count in of_hour.items():
        here = weekday * 24 + hour
        away = min((one - here) % 168 for one in asked)
        if minute is not None and away == 0:
            away = min(((one - here) % 168 or 168) for one in asked)
        total += count * (away * HOUR + grace + (_step(grace) if minute is None else 0))
    # Of two that tell about as soon, the one that is said in fewer words.
    return total / of_hour.total() * (1 + 0.1 * (len(_runs(hours)) + len(_runs(weekdays))))


def _cron(weekdays: Collection[int], hours: Collection[int], minute: int | None, grace: int) -> str:
    step = _step(grace)
    minutes = (
        str(minute) if minute is not None else "0" if step == HOUR else "*" if step == 1 else f"*/{step}"
    )
    days = "*" if len(weekdays) == 7 else _ranges([day + 1 for day in weekdays])  # Sunday is 7
    return f"{minutes} {'*' if len(hours) == 24 else _ranges(hours)} * * {days}"


def _runs(numbers: Collection[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs


def _ranges(numbers: Collection[int]) -> str:
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in _runs(numbers))


def _words(weekdays: Collection[int], hours: Collection[int], minute: int | None, grace: int) -> str:
    days = [
        _WEEKDAYS[first] + (f" to {_WEEKDAYS[last]}" if last > first else "")
        for first, last in _runs(weekdays)
    ]
    at = [f"{first} to {last + 1} h" for first, last in _runs(hours)]
    when = "every day" if len(weekdays) == 7 else ", ".join(days)
    when += "" if len(hours) == 24 else ", " + ", ".join(at)
    if minute is not None:
        return f"{when}, within {duration(grace)} after minute {minute} of the hour"
    return f"{when}, at most {duration(grace)} apart"


def duration(minutes: int) -> str:
    for size, unit in ((DAY, "day"), (HOUR, "hour"), (1, "minute")):
        if minutes % size == 0 and minutes >= size:
            count = minutes // size
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "no time"
