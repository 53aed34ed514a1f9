"""Simulated years of calls by twenty kinds of senders, and how well the rhythm does that is proposed from the 30 days before.

python -m bench.year 1 6 > bench/results/…     the seeds between these two, as a table
"""

import math
import random
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from statistics import median
from typing import NamedTuple
from zoneinfo import ZoneInfo

from postern.core.watch.rhythm import DAYS, REMEMBERED, Proposal, propose

BERLIN, UTC, NEW_YORK = "Europe/Berlin", "UTC", "America/New_York"
HOLIDAYS = frozenset(
    date(year, month, day)
    for year in (2025, 2026, 2027)
    for month, day in [(1, 1), (5, 1), (10, 3), (12, 25), (12, 26)]
) | {date(2026, 4, 3), date(2026, 4, 6), date(2026, 5, 14), date(2026, 5, 25), date(2027, 3, 26), date(2027, 3, 29)}  # fmt: skip
BLACK_FRIDAY = date(2026, 11, 27)
OUTAGES = 40
KINDS = {
    "weekday shop, 60 an hour": (BERLIN, BERLIN),
    "weekday shop, 10 an hour": (BERLIN, BERLIN),
    "weekday shop, 2 an hour": (BERLIN, BERLIN),
    "weekday shop, 10, closed for two weeks": (BERLIN, BERLIN),
    "weekday shop, 10, shrinks to a third": (BERLIN, BERLIN),
    "web shop, 20 an hour": (BERLIN, BERLIN),
    "web shop, 120 an hour": (BERLIN, BERLIN),
    "US shop, asked in UTC": (NEW_YORK, UTC),
    "hourly": (UTC, UTC),
    "hourly from 8 to 20 h": (BERLIN, BERLIN),
    "the same, asked in UTC": (BERLIN, UTC),
    "nightly": (BERLIN, BERLIN),
    "every 5 minutes": (UTC, UTC),
    "every quarter on workdays": (UTC, UTC),
    "bursts": (UTC, UTC),
    "pushes of an ERP": (BERLIN, BERLIN),
    "payday": (BERLIN, BERLIN),
    "10 a month": (UTC, UTC),
    "weekly": (UTC, UTC),
    "30 a month": (UTC, UTC),
}
"""By name: whose hours the calls keep, and in which zone the rhythm is asked for."""


class Year(NamedTuple):
    proposed: Proposal | None
    false: list[int]
    """False alarms by quarter."""
    outages: list[tuple[int, int]]
    """Minutes until it is told, and calls missed by then, of outages that begin at a random call."""


def minute_of(day: date, minute: float, zone: str) -> int:
    midnight = datetime.combine(day, datetime.min.time(), ZoneInfo(zone)).timestamp()
    return int(midnight // 60 + minute)


def begins_of(seed: int) -> date:
    return date(2026, 1 + seed * 5 % 12, 1)


def calls_of(kind: str, seed: int, days: int = 365) -> list[int]:
    """The minutes of all calls, from the history on, in order."""
    chance, begins, zone = random.Random(f"{kind} {seed}"), begins_of(seed), KINDS[kind][0]
    found: list[int] = []
    for number in range(-DAYS, days):
        day = begins + timedelta(number)
        if not (kind.endswith("two weeks") and 100 <= number < 114):
            size = 1 - 2 / 3 * max(number, 0) / 365 if kind.endswith("third") else 1.0
            found += [minute_of(day, at, zone) for at in _of_day(kind, day, chance, size)]
    return sorted(found)


def _of_day(kind: str, day: date, chance: random.Random, size: float) -> Iterator[float]:
    weekend, closed = day.weekday() >= 5, day in HOLIDAYS
    season = size * (1 + 0.3 * math.sin(2 * math.pi * (day.timetuple().tm_yday - 260) / 365))
    name, _, rest = kind.partition(", ")
    if name in ("weekday shop", "US shop") and not (weekend or closed):
        an_hour = 10 if name == "US shop" else int(rest.split(" ")[0].strip(","))
        yield from _flow(8 * 60, 18 * 60, an_hour * season, chance)
    elif name == "web shop":  # at night less, on Sundays more, on holidays a bit less
        season *= 6 if abs((day - BLACK_FRIDAY).days) <= 3 else 1
        season *= 1.3 if day.weekday() == 6 else 0.7 if closed else 1
        for first, end, share in ((0, 6, 0.05), (6, 9, 0.5), (9, 24, 1.0)):
            yield from _flow(first * 60, end * 60, int(rest.split(" ")[0]) * season * share, chance)
    elif name.startswith(("hourly", "the same")):
        for hour in range(24) if kind == "hourly" else range(8, 20):
            yield hour * 60 + 7 + chance.expovariate(1)
    elif name == "nightly":
        for _ in range(chance.randint(20, 200)):
            yield 180 + chance.uniform(0, 12)
    elif name == "every 5 minutes":
        for number in range(288):
            yield number * 5 + min(chance.expovariate(2), 4)
    elif name.startswith("every quarter") and not weekend:
        for quarter in range(96):
            yield quarter * 15 + min(chance.expovariate(2), 10)
    elif name == "bursts":  # some a day, at any time, each of many calls
        for begin in _flow(0, 1440, 0.5, chance):
            for _ in range(chance.randint(5, 60)):
                yield begin + chance.expovariate(0.5)
    elif name == "pushes of an ERP" and not (weekend or closed):
        for hour in (7, 12, 17):
            begin = hour * 60 + chance.gauss(10, 8)
            for _ in range(chance.randint(1, 4)):
                yield begin + chance.expovariate(0.3)
    elif name == "payday":  # a shop of 5 an hour, ten times as many at the end of a month
        busy = 10 if day.day >= 28 or day.day == 1 else 1
        yield from _flow(7 * 60, 22 * 60, 5 * busy, chance)
    elif name in ("10 a month", "30 a month") and chance.random() < int(name[:2]) / 30.5:
        yield chance.uniform(0, 1440)
    elif name == "weekly" and day.weekday() == 0:
        yield 180 + chance.expovariate(1)


def _flow(first: float, end: float, an_hour: float, chance: random.Random) -> Iterator[float]:
    at = first + chance.expovariate(an_hour / 60)
    while at < end:
        yield at
        at += chance.expovariate(an_hour / 60)


def live(kind: str, seed: int, days: int = 365) -> Year:
    zone, begins = KINDS[kind][1], begins_of(seed)
    calls, since = calls_of(kind, seed, days), minute_of(begins, 0, zone)
    minutes = sorted(set(calls))
    proposed = propose(minutes, since, zone, HOLIDAYS)
    if proposed is None:
        return Year(None, [], [])
    quarter = days * 1440 // 4
    of_year = minutes[bisect_left(minutes, since) :]
    false = [0, 0, 0, 0]
    rings = proposed.rhythm.rings(of_year, of_year[-1])
    for rung in rings:
        false[min((rung - since) // quarter, 3)] += 1
    chance, outages = random.Random(f"outage {kind} {seed}"), []
    for _ in range(OUTAGES):
        first = chance.randrange(bisect_right(calls, since) + 1, len(calls) * 9 // 10)
        last = calls[bisect_left(calls, calls[first]) - 1]
        ended = bisect_left(rings, last) - bisect_left(rings, last - REMEMBERED)
        told = proposed.rhythm.deadline(last, ended)
        outages.append((told - calls[first], bisect_right(calls, told) - bisect_left(calls, calls[first])))
    return Year(proposed, false, outages)


def main() -> None:
    first, last, *kinds = sys.argv[1:]
    seeds = range(int(first), int(last) + 1)
    print(
        "| Kind | Proposed | False alarms a quarter: mean, worst | Told after, median / p90 min | Calls missed, median / p90 | For example |"
    )
    print("|---|---|---|---|---|---|")
    for kind in kinds or KINDS:
        years = [live(kind, seed) for seed in seeds]
        found = [one for one in years if one.proposed is not None]
        row = [kind, f"{len(found)} of {len(years)}"]
        if found:
            quarters = [count for one in found for count in one.false]
            row.append(f"{sum(quarters) / len(quarters):.2f}, {max(quarters)}")
            for sizes in zip(*(one for year in found for one in year.outages), strict=True):
                row.append(f"{median(sizes):.0f} / {sorted(sizes)[len(sizes) * 9 // 10]}")
            example = found[0].proposed
            assert example is not None
            row.append(f"{example.in_words}; rang {len(example.rings)}, moved {example.moved}")
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
