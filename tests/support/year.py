"""A year of calls, as senders of several kinds make them: the minutes in which calls came. Local time is Europe/Berlin."""

import math
import random
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

ZONE = "Europe/Berlin"
BEGINS = date(2026, 1, 1)
HISTORY, DAYS = 35, 365
"""Days before the year, from which the first rhythm is proposed; and days of the year."""
HOLIDAYS = frozenset(
    date.fromisoformat(text)
    for text in [
        "2025-12-25",
        "2025-12-26",
        "2026-01-01",
        "2026-04-03",
        "2026-04-06",
        "2026-05-01",
        "2026-05-14",
        "2026-05-25",
        "2026-10-03",
        "2026-12-25",
        "2026-12-26",
        "2027-01-01",
    ]
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


DAY = 1440


def _flow(first: float, end: float, an_hour: float, chance: random.Random) -> Iterator[float]:
    at = first + chance.expovariate(an_hour / 60)
    while at < end:
        yield at
        at += chance.expovariate(an_hour / 60)
