"""A webhook's rhythm: for hours of the week, how long no call may come at the longest. A person sets it; it can be proposed,
with the evidence, from the times of past calls.

Quiet minutes count only in the hours of a row. Half of the longest quiet in one row and half of it in another one are together as
much as is allowed: where fewer calls come, a minute without any says less. All times are minutes since 1970, because calls are
counted by the minute.
"""

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate, pairwise
from zoneinfo import ZoneInfo

from msgspec import Struct

from postern.core.schedules import duration, parse_schedule

DAYS = 30
"""Days of history that a proposal is made from."""
FEWEST_CALLS, FEWEST_DAYS = 20, 10
"""A history with fewer minutes, or days, with a call is too short for a proposal."""
MOST_RINGS = 1
"""Incidents that a rhythm would have opened in that history, for it to be proposed."""
DAY, HOUR = 1440, 60
SHORTEST, LONGEST = 4, 30 * DAY
"""Minutes of quiet that a proposal may allow at least and at most. Calls are counted some seconds after they came."""
HOLIDAY = 0.05
"""The part of a usual day's calls below which a day does not show how long a wait may be."""
LEVEL, LEVELS = 3.0, 3
"""Hours are in one row if their calls differ by less than this factor; those with fewer calls than the last level are in none."""
SURELY, FEW, LOOKED_AT = 5, 8, 40
TAILS, RARELY, DRIFT = (0.1, 0.03), 20.0, 1.2
"""The parts of the gaps that show how they grow; how many times as many gaps must come before one is expected to be longer than
is allowed; and how much longer than by chance alone, because calls become fewer in some seasons."""
REMEMBERED = 90 * DAY
"""A silence that ended by itself was none: for so long it makes the rhythm more patient."""
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Row(Struct, frozen=True):
    days: frozenset[int]
    """Monday is 0."""
    hours: frozenset[int]
    quiet: int
    """Minutes."""

    def __str__(self) -> str:
        return f"{_in_days(self.days)} {_in_hours(self.hours)}: {self.quiet}"


class Rhythm(Struct, frozen=True):
    rows: tuple[Row, ...]
    time_zone: str
    quiet_days: frozenset[date] = frozenset()
    """Public holidays. They do not count, except in rows of every day."""

    def quiet_at(self, day: date, hour: int) -> int:
        """The longest quiet in this hour, by the first row that names it; 0 if the hour does not count."""
        for row in self.rows:
            if day.weekday() in row.days and hour in row.hours:
                return 0 if len(row.days) < 7 and day in self.quiet_days else row.quiet
        return 0

    def deadline(self, last: int, ended: int = 0) -> int:
        """The minute by which the next call should come, after one in the minute ``last``. ``ended``: silences that ended by
        themselves lately; each of them allows half as much again."""
        zone = ZoneInfo(self.time_zone)
        began = datetime.fromtimestamp(last * 60, zone)
        # In local time every day has 24 hours; when the clocks are changed, one hour more is allowed.
        at, left = began.replace(tzinfo=None), 1 + ended / 2
        for _ in range(2 * LONGEST // HOUR * 7):
            quiet, rest = self.quiet_at(at.date(), at.hour), HOUR - at.minute
            needed = math.ceil(left * quiet - 1e-6)
            if quiet and needed <= rest:
                at += timedelta(minutes=needed)
                break
            left -= rest / quiet if quiet else 0
            at += timedelta(minutes=rest)
        ends = at.replace(tzinfo=zone)
        moved = abs((ends.utcoffset() or timedelta()) - (began.utcoffset() or timedelta()))
        return int((ends.astimezone(UTC) + moved).timestamp() // 60)

    def rings(self, calls: Sequence[int], until: int) -> list[int]:
        """The minutes at which it would have opened an incident, one for each silence. ``calls``: minutes with a call, in order."""
        shortest = min(row.quiet for row in self.rows)
        minutes: list[int] = []
        for call, end in pairwise((*calls, until)):
            if end - call > shortest:
                due = self.deadline(call, len(minutes) - bisect_left(minutes, call - REMEMBERED))
                minutes += [due] if due < end else []
        return minutes


def rhythm_of(rows: Sequence[str], time_zone: str, quiet_days: Collection[date] = frozenset()) -> Rhythm:
    """``Mon-Fri 8-18: 90``: from 8 to 18 h on these days, at most 90 minutes without a call. Raises ``ValueError``."""
    return Rhythm(tuple(map(row_of, rows)), time_zone, frozenset(quiet_days))


def row_of(text: str) -> Row:
    days, hours, quiet = _parts_of(text)
    if not (text.isascii() and quiet.isdecimal() and 0 < int(quiet[:6]) <= LONGEST):
        raise ValueError(f"write days, hours, and minutes from 1 to {LONGEST}, like Mon-Fri 8-18: 90")
    return Row(_days_of(days), _hours_of(hours), int(quiet[:6]))


def _parts_of(row: str) -> tuple[str, str, str]:
    when, _, quiet = row.partition(":")
    days, _, hours = when.strip().partition(" ")
    return days, hours.strip(), quiet.strip()


class Sentence(Struct, frozen=True):
    """*Nothing came for 2 hours, on weekdays, from 8 to 18*: a row as it was chosen, which may still be refused."""

    days: str
    begin: str
    end: str
    quiet: str

    def __str__(self) -> str:
        return f"{self.days} {self.begin}-{self.end}: {self.quiet}"


def sentence_of(rows: Sequence[str]) -> Sentence | None:
    """None where one sentence does not say them."""
    days, hours, quiet = _parts_of(rows[0] if len(rows) == 1 else "")
    begin, _, end = hours.partition("-")
    if not all(text.isascii() and text.isdecimal() and len(text) <= 6 for text in (begin, end, quiet)):
        return None
    is_offered = max(int(begin), int(end)) <= 24 and int(quiet)
    return Sentence(days, begin, end, quiet) if is_offered else None


def _days_of(text: str) -> frozenset[int]:
    """``Mon-Fri,Sun``. Raises ``ValueError``."""
    days: set[int] = set()
    short = [name[:3] for name in _WEEKDAYS]
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first not in short or (last or first) not in short:
            raise ValueError("days, like Mon-Fri or Sat,Sun")
        count = (short.index(last or first) - short.index(first)) % 7
        days |= {(short.index(first) + more) % 7 for more in range(count + 1)}
    return frozenset(days)


def _hours_of(text: str) -> frozenset[int]:
    """``8-18``: from 8 to 18 h. Raises ``ValueError``."""
    hours: set[int] = set()
    for part in text.split(","):
        first, _, end = part.strip().partition("-")
        if not (first.isdecimal() and end.isdecimal() and int(first) < int(end) <= 24):
            raise ValueError("hours, like 8-18 or 0-6,22-24")
        hours |= set(range(int(first), int(end)))
    return frozenset(hours)


def _in_days(days: Collection[int]) -> str:
    return ",".join(
        _WEEKDAYS[first][:3] + (f"-{_WEEKDAYS[last][:3]}" if last > first else "")
        for first, last in _runs(days)
    )


def _in_hours(hours: Collection[int]) -> str:
    return ",".join(f"{first}-{last + 1}" for first, last in _runs(hours))


def _runs(numbers: Collection[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs


class Proposal(Struct, frozen=True):
    rhythm: Rhythm
    in_words: str
    """*Monday to Friday, 8 to 18 h: at most 40 minutes without a call*."""
    rings: list[int]
    """The minutes at which it would have opened an incident."""
    moved: int
    """How many it would have opened if each call had come an hour earlier, or later: the larger number."""

    @property
    def keeps_hours(self) -> bool:
        """Whether it depends on the hours or the days of people."""
        row = self.rhythm.rows[0]
        return len(row.days) * len(row.hours) < 7 * 24


def propose(
    calls: Sequence[int], until: int, time_zone: str, quiet_days: Collection[date] = frozenset()
) -> Proposal | None:
    """The rhythm that these calls have kept, with room for chance and for quieter seasons; None if the calls are too few.
    ``calls``: the minutes with a call, in order."""
    zone = ZoneInfo(parse_schedule(cron="@daily", time_zone=time_zone).time_zone)
    first = until - DAYS * DAY
    calls = calls[bisect_left(calls, first) : bisect_left(calls, until)]
    if len(calls) < FEWEST_CALLS:
        return None
    first = max(first, calls[0])
    hours = [datetime.fromtimestamp(start * 60, zone) for start in range(first - first % HOUR, until, HOUR)]
    of_hour = Counter((call - first + first % HOUR) // HOUR for call in calls)
    of_day: Counter[date] = Counter()
    for place, hour in enumerate(hours):
        of_day[hour.date()] += of_hour[place]
    if sum(count > 0 for count in of_day.values()) < FEWEST_DAYS:
        return None
    best: Rhythm | None = None
    least = math.inf
    looked_at = calls[: len(calls) // 2 : len(calls) // (2 * LOOKED_AT) + 1]
    for weight, usual in _shapes(len(calls), hours, of_hour, _groups(of_day, quiet_days)):
        loads = [
            weight.get((hour.weekday(), hour.hour), 0.0) if hour.date() in usual else 0.0 for hour in hours
        ]
        allowed = _allowed(calls, first - first % HOUR, loads)
        rhythm = _rhythm(weight, allowed, str(zone), frozenset(quiet_days))
        if rhythm is None or len(rhythm.rings(calls, until)) > MOST_RINGS:
            continue
        # Between two that take about as long to notice a silence, the one with fewer rows is better.
        told_after = sum(rhythm.deadline(call) - call for call in looked_at) * (1 + 0.1 * len(rhythm.rows))
        if told_after < least:
            best, least = rhythm, told_after
    if best is None:
        return None
    moved = max(len(best.rings([call + by for call in calls], until + by)) for by in (-HOUR, HOUR))
    return Proposal(best, _in_words(best), best.rings(calls, until), moved)


def _shapes(
    calls: int, hours: Sequence[datetime], of_hour: Mapping[int, int], groups: Sequence[set[date]]
) -> Iterator[tuple[dict[tuple[int, int], float], set[date]]]:
    """Yields what may be usual: how many calls come in which hours of the week, and the days that show it. With few calls, an hour
    or a day without any may be chance."""
    every, usual = {hour.date() for hour in hours}, set().union(*groups)
    yield _weights(hours, of_hour, every, 0), every
    if calls >= 7 * SURELY:
        yield _weights(hours, of_hour, usual, 0), usual
    if calls >= 24 * SURELY:
        yield _weights(hours, of_hour, usual, 1), usual
        weight: dict[tuple[int, int], float] = {}
        for days in groups:
            weight |= _weights(hours, of_hour, days, LEVELS)
        yield weight, usual


def _groups(of_day: Mapping[date, int], quiet_days: Collection[date]) -> list[set[date]]:
    """Days of the week with about as many calls, without holidays and days that look like one."""
    days: dict[int, list[date]] = defaultdict(list)
    for day in of_day:
        if day not in quiet_days:
            days[day.weekday()].append(day)
    typical = {weekday: sorted(of_day[day] for day in same)[len(same) // 2] for weekday, same in days.items()}
    most = max(typical.values(), default=0)
    levels: dict[int, set[date]] = defaultdict(set)
    for weekday, same in days.items():
        if typical[weekday] > HOLIDAY * most:
            level = round(math.log(most / typical[weekday], 2))
            levels[level] |= {day for day in same if of_day[day] > HOLIDAY * typical[weekday]}
    return list(levels.values())


def _weights(
    hours: Sequence[datetime], of_hour: Mapping[int, int], days: Collection[date], levels: int
) -> dict[tuple[int, int], float]:
    """By weekday and hour: the calls that usually come in it, as the mean of all hours of its row. Hours with next to no calls are
    in no row, unless there are no ``levels``."""
    counts: dict[int, list[int]] = defaultdict(list)
    for place, start in enumerate(hours):
        if start.date() in days:
            counts[start.hour].append(of_hour.get(place, 0))
    mean = {hour: sum(per_day) / len(per_day) for hour, per_day in counts.items()}
    most = max(mean.values())
    rows: dict[int, list[int]] = defaultdict(list)
    for hour, usual in mean.items():
        if not levels:
            rows[0].append(hour)
        elif usual * LEVEL**LEVELS > most:
            rows[min(int(math.log(most / usual, LEVEL) + 1e-9), levels - 1)].append(hour)
    weekdays = {day.weekday() for day in days}
    return {
        (weekday, hour): sum(mean[row_hour] for row_hour in row) / len(row)
        for row in rows.values()
        for hour in row
        for weekday in weekdays
    }


def _allowed(calls: Sequence[int], first: int, loads: Sequence[float]) -> float:
    """How many calls that usually come may be missing before it is no chance any more: as the longest gaps grow, they would be
    longer by chance in a longer time, and in a quieter season."""
    before = [0.0, *accumulate(loads)]

    def until(minute: int) -> float:
        hour, rest = divmod(minute - first, HOUR)
        return before[hour] + loads[hour] * rest / HOUR

    gaps = sorted(until(later) - until(call) for call, later in pairwise(calls))
    limits = []
    for part in TAILS:
        tail = gaps[int(len(gaps) * (1 - part)) :]
        over = sum(tail) / len(tail) - tail[0]
        if len(tail) < FEW:
            over = max(over, sum(gaps) / len(gaps))
        limits.append(tail[0] + over * math.log(len(tail) * RARELY) * DRIFT)
    return max(_without_outlier(gaps), min(limits))


def _without_outlier(gaps: list[float]) -> float:
    """The longest gap. One that is more than three times any other is left out: it was a holiday, or an outage."""
    *_, second, longest = gaps
    return second if longest > 3 * second else longest


def _rhythm(
    weight: Mapping[tuple[int, int], float], allowed: float, time_zone: str, quiet_days: frozenset[date]
) -> Rhythm | None:
    by_quiet: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for (weekday, hour), usual in weight.items():
        by_quiet[_round(allowed * HOUR / usual)][weekday].add(hour)
    rows = []
    for quiet, of_days in sorted(by_quiet.items()):
        same: dict[frozenset[int], set[int]] = defaultdict(set)
        for weekday, hours in of_days.items():
            same[frozenset(hours)].add(weekday)
        rows += [Row(frozenset(days), hours, quiet) for hours, days in same.items()]
    if not rows or rows[0].quiet > LONGEST:
        return None
    return Rhythm(tuple(rows), time_zone, quiet_days)


def _round(minutes: float) -> int:
    """Up, to a number that people write. A minute more: a gap as long as the longest is none yet."""
    step = 1 if minutes < 30 else 5 if minutes < 120 else 10 if minutes < 480 else 60
    return max(SHORTEST, math.ceil((minutes + 1) / step) * step)


def _in_words(rhythm: Rhythm) -> str:
    said = []
    for row in rhythm.rows:
        days = [
            _WEEKDAYS[first] + (f" to {_WEEKDAYS[last]}" if last > first else "")
            for first, last in _runs(row.days)
        ]
        when = "every day" if len(row.days) == 7 else ", ".join(days)
        hours = [f"{first} to {last + 1} h" for first, last in _runs(row.hours)]
        when += "" if len(row.hours) == 24 else ", " + ", ".join(hours)
        said.append(f"{when}: at most {duration(row.quiet * 60)} without a call")
    return "; ".join(said)
