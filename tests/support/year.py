"""Simulated years of calls by several kinds of senders, and how well proposed rhythms do in them. Local time is Europe/Berlin."""

import math
import random
import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from postern.core.rhythm import DAY, Proposal, Rhythm, propose, rhythm_of
from postern.core.schedules import next_run

ZONE = "Europe/Berlin"
BEGINS = date(2026, 1, 1)
HISTORY, DAYS = 35, 365
"""Days before the year, from which the first rhythm is proposed; and days of the year."""
HOLIDAYS = frozenset(
    [date(2025, 12, 25), date(2025, 12, 26), date(2027, 1, 1)]
    + [date(2026, 1, 1), date(2026, 4, 3), date(2026, 4, 6), date(2026, 5, 1), date(2026, 5, 14)]
    + [date(2026, 5, 25), date(2026, 10, 3), date(2026, 12, 25), date(2026, 12, 26)]
)
BLACK_FRIDAY = date(2026, 11, 27)
KINDS = (
    "weekday shop",
    "small shop",
    "busy shop",
    "web shop",
    "hourly",
    "quarters",
    "nightly",
    "bursts",
    "every minute",
    "rare",
)


PERIODS = {"hourly": 60, "nightly": DAY}
"""Minutes between calls that come at set times: the longest that are stated."""


def local_days() -> Iterator[date]:
    for number in range(-HISTORY, DAYS):
        yield BEGINS + timedelta(number)


def minute_of(day: date, minute: float, zone: str = ZONE) -> int:
    midnight = datetime.combine(day, datetime.min.time(), ZoneInfo(zone)).timestamp()
    return int(midnight // 60 + minute)


FIRST, LAST = minute_of(BEGINS, 0), minute_of(BEGINS + timedelta(DAYS), 0)


def zone_of(kind: str) -> str:
    """Machines keep to UTC."""
    return ZONE if "shop" in kind else "UTC"


def calls_of(kind: str, seed: int) -> list[int]:
    """The minutes in which calls came, in order, each once."""
    chance = random.Random(f"{kind} {seed}")
    found: set[int] = set()
    for day in local_days():
        found.update(minute_of(day, at, zone_of(kind)) for at in _of_day(kind, day, chance))
    return sorted(found)


def _of_day(kind: str, day: date, chance: random.Random) -> Iterator[float]:
    weekend, closed = day.weekday() >= 5, day in HOLIDAYS
    season = 1 + 0.3 * math.sin(2 * math.pi * (day.timetuple().tm_yday - 260) / 365)
    if abs((day - BLACK_FRIDAY).days) <= 3:
        season *= 6
    match kind:
        case "weekday shop" | "small shop" | "busy shop" if not (weekend or closed):
            an_hour = {"weekday shop": 10, "small shop": 3, "busy shop": 120}[kind] * season
            yield from _flow(8 * 60, 18 * 60, an_hour, chance)
        case "web shop":  # at night less, on Sundays more, on holidays a bit less
            for hour in range(24):
                share = 0.05 if hour < 6 else 0.5 if hour < 9 else 1.0
                an_hour = 30 * season * share * (1.3 if day.weekday() == 6 else 0.7 if closed else 1)
                yield from _flow(hour * 60, hour * 60 + 60, an_hour, chance)
        case "hourly":
            for hour in range(24):
                yield hour * 60 + 7 + chance.expovariate(1)
        case "quarters":
            for quarter in range(96):
                yield quarter * 15 + min(chance.expovariate(2), 10)
        case "nightly":
            for _ in range(chance.randint(20, 200)):
                yield 180 + chance.uniform(0, 12)
        case "bursts":  # some a day, at any time, each of many calls
            for begin in _flow(0, DAY, 0.5, chance):
                for _ in range(chance.randint(5, 60)):
                    yield begin + chance.expovariate(0.5)
        case "every minute":
            for minute in range(DAY):
                if chance.random() < 0.98:
                    yield minute
        case "rare":
            if chance.random() < 10 / 30:
                yield chance.uniform(0, DAY)


def _flow(first: float, end: float, an_hour: float, chance: random.Random) -> Iterator[float]:
    at = first + chance.expovariate(an_hour / 60)
    while at < end:
        yield at
        at += chance.expovariate(an_hour / 60)


class Lived(NamedTuple):
    """A year with the rhythm that was proposed before it, and with a new proposal after each false alarm."""

    said: list[str]
    false: list[int]
    """By quarter."""
    outages: list["Outage"]


class Outage(NamedTuple):
    """It begins after a random call. The gap is the longest time between two calls that the rhythm states."""

    after_first: int
    """Minutes from the first lost call until the silence is told."""
    after_expected: int
    """Minutes from the first lost call that the rhythm expected: one that came after a time of its cron expression."""
    gap: int

    def is_in_time(self, minutes: int) -> bool:
        return minutes <= max(5, 2 * self.gap)


def live(kind: str, seed: int, quiet_days: frozenset[date], outages: int = 20) -> Lived | None:
    """None if nothing is proposed."""
    calls, zone = calls_of(kind, seed), zone_of(kind)
    proposed, at = propose(calls, FIRST, zone, quiet_days), FIRST
    if proposed is None:
        return None
    taken, false = [(FIRST, proposed)], [0, 0, 0, 0]
    while rung := _next_ring(taken[-1][1], calls, at, quiet_days):
        false[(rung - FIRST) * 4 // (LAST - FIRST)] += 1
        at = calls[min(bisect_right(calls, rung), len(calls) - 1)]
        taken.append((at, propose(calls, at, zone, quiet_days) or taken[-1][1]))
    chance, noticed = random.Random(f"outage {kind} {seed}"), []
    for _ in range(outages):
        last = chance.randrange(bisect_right(calls, FIRST), len(calls) - 1)
        rhythm = next((one for since, one in reversed(taken) if since <= calls[last]), taken[0][1])
        told = _rhythm(rhythm, quiet_days).deadline(calls[last])
        begins = int(next_run(_rhythm(rhythm, quiet_days).times, calls[last] * 60.0) // 60)
        expected = calls[min(bisect_left(calls, max(begins, calls[last + 1])), len(calls) - 1)]
        gap = max(rhythm.grace, PERIODS.get(kind, 0))
        noticed.append(Outage(told - calls[last + 1], told - expected, gap))
    return Lived([one.in_words for _, one in taken], false, noticed)


def _rhythm(proposed: Proposal, quiet_days: frozenset[date]) -> Rhythm:
    return rhythm_of(proposed.cron, proposed.grace, proposed.time_zone, quiet_days)


def _next_ring(proposed: Proposal, calls: list[int], at: int, quiet_days: frozenset[date]) -> int | None:
    since = max(bisect_right(calls, at) - 1, 0)
    return next(iter(_rhythm(proposed, quiet_days).rings(calls[since:], LAST)), None)


def main() -> None:
    """`python tests/support/year.py 1001 1020` prints a line for each kind, over the seeds between these two."""
    for quiet_days in (HOLIDAYS, frozenset[date]()):
        print(f"\n{len(quiet_days)} quiet days")
        for kind in sys.argv[3:] or KINDS:
            lived = [live(kind, seed, quiet_days) for seed in range(int(sys.argv[1]), int(sys.argv[2]) + 1)]
            found = [one for one in lived if one is not None]
            if not found:
                print(f"{kind:13} nothing proposed")
                continue
            quarters = Counter(count for one in found for count in one.false)
            outages = [one for year in found for one in year.outages]
            after = sorted(one.after_first for one in outages)
            in_time = sum(one.is_in_time(one.after_first) for one in outages)
            expected = sum(one.is_in_time(one.after_expected) for one in outages)
            print(
                f"{kind:13} {len(found)} of {len(lived)} | false alarms in a quarter: {dict(sorted(quarters.items()))} | noticed after "
                f"{after[len(after) // 2]} min, 90 % within {after[len(after) * 9 // 10]}, last {after[-1]}; within two gaps of the first "
                f"expected call {expected} of {len(after)}, of the first lost call {in_time} | {Counter(one.said[0] for one in found).most_common(1)[0][0]}",
                flush=True,
            )


if __name__ == "__main__":
    main()
