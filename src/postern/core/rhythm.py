"""A webhook's rhythm: after each time of a cron expression, a call comes within the grace. A person sets it; it can be proposed,
with the evidence, from the times of past calls.

All times are minutes since 1970, because calls are counted by the minute.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import date, datetime, timedelta
from statistics import fmean, pvariance
from zoneinfo import ZoneInfo

from msgspec import Struct

from postern.core.schedules import Schedule, duration, next_run, parse_schedule

DAYS = 30
"""Days of history that a proposal is made from."""
FEWEST_CALLS, FEWEST_DAYS = 20, 10
"""A history with fewer minutes, or days, with a call is too short for a proposal."""
MOST_RINGS = 1
"""Incidents that a rhythm would have opened in that history, for it to be proposed."""
DAY, HOUR = 1440, 60
MANY, SURELY = 5, 8
"""Calls within the grace: at least this many on each day; or on average this many, if calls are random."""
_STEPS = (60, 30, 20, 15, 10, 5, 2, 1)
_GRACES = (4, 5, 10, 15, 20, 30, 40, 60, 90, 120, 180, 240, 360, 480, 720, 1080, 1440, 2160, 2880, 4320, 5760)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Rhythm(Struct, frozen=True):
    times: Schedule
    grace: int
    quiet_days: frozenset[date] = frozenset()
    """Public holidays. No call is expected on them, unless the rhythm holds on all days of the week."""

    def deadline(self, last: int) -> int:
        """The minute by which the next call should come, after one in the minute ``last``."""
        zone, every_day = ZoneInfo(self.times.time_zone), (self.times.cron or "").endswith(" *")
        at = next_run(self.times, last * 60.0)
        while not every_day and (day := datetime.fromtimestamp(at, zone).date()) in self.quiet_days:
            midnight = datetime.combine(day + timedelta(1), datetime.min.time(), zone).timestamp()
            at = next_run(self.times, midnight - 1)
        return int(at // 60) + self.grace

    def rings(self, calls: Sequence[int], until: int) -> list[int]:
        """The minutes at which it would have opened an incident, one for each silence. ``calls``: minutes with a call, in order."""
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
    """The minutes at which it would have opened an incident."""


class _Hours:
    """The hours of the days looked at, with the calls in them and the waits for the next call."""

    def __init__(self, calls: Sequence[int], first: int, until: int, zone: ZoneInfo) -> None:
        self.calls, self.until = calls, until
        self.hours: dict[int, tuple[date, int]] = {}
        """The local day and hour, by the hour's first minute."""
        for start in range(first - first % HOUR, until, HOUR):
            local = datetime.fromtimestamp(start * 60, zone)
            # In a zone that is not whole hours from UTC, hours begin some minutes later than this.
            self.hours[start] = local.date(), local.hour
        self.of_day = Counter(self.hours[call - call % HOUR][0] for call in calls)
        self.of_hour: Counter[tuple[int, int]] = Counter()
        for call in calls:
            day, hour = self.hours[call - call % HOUR]
            self.of_hour[day.weekday(), hour] += 1

    def waits(self, days: Collection[date], minute: int | None) -> dict[int, int]:
        """By hour of the day: the longest wait for a call, from any minute of it or from this one."""
        first, last = (0, HOUR - 1) if minute is None else (minute, minute)
        found: dict[int, list[int]] = defaultdict(list)
        for start, (day, hour) in self.hours.items():
            wait = self._longest_wait(start + first, start + last) if day in days else None
            if wait is not None:
                found[hour].append(wait)
        return {hour: _without_outlier(waits) for hour, waits in found.items()}

    def comes(self, days: Collection[date], hour: int, minute: int | None, grace: int) -> bool:
        """Whether it is no chance that a call came within the grace on each of these days: each had many calls, or about as many as
        the others. If calls may come at any minute, some must come in the second half of the grace, too."""
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

    def _longest_wait(self, first: int, last: int) -> int | None:
        """The longest wait that begins between these minutes; None if no call has ended it."""
        place, end = bisect_left(self.calls, first), bisect_left(self.calls, last)
        if end == len(self.calls):
            return None
        begins = [first, *(call + 1 for call in self.calls[place:end])]
        return max(ends - begin for begin, ends in zip(begins, self.calls[place : end + 1], strict=True))


def _without_outlier(waits: list[int]) -> int:
    """The longest wait. One that is more than three times any other is left out: it was a holiday, or an outage."""
    *_, second, longest = [0, *sorted(waits)]
    return second if len(waits) > 2 and longest > 3 * max(second, 2) else longest


def propose(
    calls: Sequence[int], until: int, time_zone: str, quiet_days: Collection[date] = frozenset()
) -> Proposal | None:
    """The rhythm that would notice a silence soonest and would have opened at most one incident; None if the calls are too few
    or have no rhythm. ``calls``: the minutes with a call, in order."""
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
        # A rhythm that would have opened one is better only if it notices a silence in half the time.
        if len(rings) <= MOST_RINGS and told_after * (1 + len(rings)) < least:
            least = told_after * (1 + len(rings))
            best = Proposal(cron, grace, zone, words, rings)
    return best


def _candidates(
    seen: _Hours, looked_at: list[date], quiet_days: Collection[date]
) -> Iterator[tuple[float, str, int, str]]:
    """Yields possible rhythms: the minutes after which a silence is noticed on average, cron expression, grace, words."""
    active = {
        weekday
        for weekday in range(7)
        for days in [[day for day in looked_at if day.weekday() == weekday and day not in quiet_days]]
        if len(days) > 1 and sum(day in seen.of_day for day in days) >= 0.75 * len(days)
    }
    usual = sorted(seen.of_day[day] for day in looked_at if day.weekday() in active)
    for weekdays in {frozenset(active), frozenset(active & {0, 1, 2, 3, 4})}:
        # A day with nearly no call, as a holiday has, does not show how long a wait may be.
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
    """If most calls come around one minute of the hour: that minute and the ten before it."""
    [(minute, _)] = Counter(call % HOUR for call in calls).most_common(1)
    near = sum((call - minute + 10) % HOUR <= 20 for call in calls)
    return [(minute - early) % HOUR for early in range(11)] if near >= 0.8 * len(calls) else []


def _grace(longest: int, waits: int) -> int | None:
    """The longest wait seen, and more: random waits have a longer maximum in a quarter than in a month, by this much."""
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
        # A call may come after this hour's minute, and then the next hour counts.
        away = min((one - here) % 168 or (0 if minute is None else 168) for one in asked)
        total += count * (away * HOUR + grace + (_step(grace) if minute is None else 0))
    # Between two that take about as long, the one with fewer words is better.
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
        return f"{when}, within {duration(grace * 60)} after minute {minute} of the hour"
    return f"{when}, at most {duration(grace * 60)} apart"
