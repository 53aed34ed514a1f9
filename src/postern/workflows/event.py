"""The event that a workflow gets for a call."""

import json
import math
import sys
from typing import Any

import msgspec

FIELD_NAMES = ("fieldOne", "fieldTwo", "fieldThree", "fieldFour")


def event_of(document: str | bytes) -> dict[str, Any]:
    """A number that Python cannot hold arrives as its text: one beyond what a float holds, or of more than 4,300
    digits, which take too long to read. Otherwise whoever knows a webhook's URL could make its runs fail before their
    first line, or count with infinity."""
    event: dict[str, Any]
    try:
        event = msgspec.json.decode(document)
    except (msgspec.DecodeError, ValueError, RecursionError):
        event = json.loads(document, parse_int=_whole_number, parse_float=_number)
    return event


def _whole_number(digits: str) -> int | str:
    return int(digits) if len(digits) <= sys.get_int_max_str_digits() else digits


def _number(text: str) -> float | str:
    return number if math.isfinite(number := float(text)) else text
