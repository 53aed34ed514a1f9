"""What a workflow gets of a call."""

import json
import sys
from typing import Any


def event_of(document: str | bytes) -> dict[str, Any]:
    event: dict[str, Any]
    try:
        event = json.loads(document)
    except ValueError:
        event = json.loads(document, parse_int=_whole_number)
    return event


def _whole_number(digits: str) -> int | str:
    """Python reads no number of more than 4,300 digits, for it would take too long: such a one arrives as its text.
    Otherwise whoever knows a webhook's URL could make its runs fail before their first line."""
    return int(digits) if len(digits) <= sys.get_int_max_str_digits() else digits
