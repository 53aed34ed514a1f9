"""JSON that is handed on as it was written. Documents of a fixed form have a type of their own instead."""

from typing import Any

import msgspec

Document = dict[str, Any]
"""Settings, a scheme or a trigger under the names that the API has for them."""

Patch = dict[str, Any]
"""A merge patch (RFC 7396) of settings: what it names is set, null goes back to the default."""

BodyChanges = dict[str, Any]
"""Values to set in a body, by their paths."""

DAMAGED = "what was recorded here is damaged and cannot be read"


def read_kept(text: bytes, kind: Any, instead: Any) -> Any:
    """JSON as it was recorded. One record whose bytes are damaged must not take a list or a loop with it."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return instead
