"""The time at which a call says that it was signed: the four forms that senders write, and the window around the receipt.

The text itself is what was signed and is never formatted anew; what is parsed here serves the freshness check
alone.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from typing import Literal, get_args

TimestampFormat = Literal["unix", "unix_ms", "iso8601", "http_date"]
TIMESTAMP_FORMATS: tuple[TimestampFormat, ...] = get_args(TimestampFormat)
FORMAT_WORDS: dict[TimestampFormat, str] = {
    "unix": "seconds since 1970",
    "unix_ms": "milliseconds since 1970",
    "iso8601": "an ISO 8601 date",
    "http_date": "an HTTP date",
}

_LONGEST = 40
_ISO = re.compile(rb"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:?\d\d)?", re.ASCII)
# The library reads nearly anything as a date.
_HTTP = re.compile(
    rb"(?:[A-Z][a-z]{2}, )?\d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d (?:GMT|UTC|[+-]0000)", re.ASCII
)


def parse_timestamp(text: bytes, form: TimestampFormat) -> float | None:
    """Seconds since 1970, or None where the text is not in this form."""
    return _PARSERS[form](text) if len(text) <= _LONGEST else None


def write_timestamp(seconds: float, form: TimestampFormat) -> str:
    """The moment as a sender writes it, in whole seconds."""
    moment = _EPOCH + timedelta(seconds=int(seconds))
    match form:
        case "unix":
            return str(int(seconds))
        case "unix_ms":
            return str(int(seconds) * 1000)
        case "iso8601":
            return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        case "http_date":
            return format_datetime(moment, usegmt=True)


def _unix(text: bytes) -> float | None:
    # int() alone would also take blanks, signs, underscores and digits of other scripts.
    return float(text) if text.isdigit() and len(text) <= 12 else None


def _unix_ms(text: bytes) -> float | None:
    return int(text) / 1000 if text.isdigit() and len(text) <= 15 else None


def _iso8601(text: bytes) -> float | None:
    if not _ISO.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text.decode().upper())
    except ValueError:
        return None
    # A time without a zone can only be meant as UTC: a local time would tell the receiver nothing.
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _http_date(text: bytes) -> float | None:
    try:
        moment = parsedate_to_datetime(text.decode()) if _HTTP.fullmatch(text) else None
        return moment.replace(tzinfo=UTC).timestamp() if moment else None
    except (ValueError, OverflowError):
        return None


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PARSERS: dict[TimestampFormat, Callable[[bytes], float | None]] = {
    "unix": _unix,
    "unix_ms": _unix_ms,
    "iso8601": _iso8601,
    "http_date": _http_date,
}


def out_of_window(signed_at: float, received_at: float, tolerance: int) -> tuple[str, str] | None:
    """A code and words where the call is too old or too new. A tolerance of 0 asks nothing."""
    if tolerance <= 0:
        return None
    # Senders cut their time to whole seconds, so ours is cut too: otherwise a window of 5 s would really be
    # one of 4.
    age = int(received_at) - signed_at
    if age > tolerance:
        return (
            "timestamp_expired",
            f"the call was signed {age:.0f} s before it arrived; the scheme allows {tolerance} s",
        )
    if -age > tolerance:
        return (
            "timestamp_in_future",
            f"by its own clock the call was signed {-age:.0f} s after it arrived; the scheme allows {tolerance} s",
        )
    return None
