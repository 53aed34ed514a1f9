"""Times: as people write them, and as answers show them."""

import re
from datetime import UTC, datetime

LAST_MOMENT = 253402300800.0
"""The end of the year 9999."""

_AGO = re.compile(r"([0-9]{1,9})([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"  # for +00:00


def to_the_minute(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


class Time(float):
    """Seconds since 1970; as text, ISO 8601 in UTC."""

    def __str__(self) -> str:
        return iso(self)

    @classmethod
    def maybe(cls, seconds: float | None) -> "Time | None":
        return None if seconds is None else cls(seconds)


def moment(text: str, now: float) -> float:
    """Reads ISO 8601 (UTC if no zone is named), seconds since 1970, or how long ago. ``ValueError`` says how to write it."""
    try:
        if ago := _AGO.fullmatch(text):
            at = now - int(ago[1]) * _UNITS[ago[2]]
        elif text.replace(".", "", 1).isdecimal():
            at = float(text)
        else:
            given = datetime.fromisoformat(text)
            at = (given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp()
        if 0 <= at < LAST_MOMENT:
            return at
    except (ValueError, OverflowError):
        pass
    raise ValueError("write a time like 2026-11-21T09:00:00Z, or how long ago it was: 45s, 30m, 1h, 2d")
