"""The event's name, as the sender gives it."""

from collections.abc import Callable
from functools import lru_cache

from postern.core.calls.content import Payload
from postern.core.calls.paths import Path, as_text, parse_path, walk_members


@lru_cache(maxsize=1000)
def _compiled(places: tuple[str, ...]) -> tuple[tuple[bytes, Path], ...]:
    pairs = [place.partition(":")[::2] for place in places]
    return tuple(
        (name.lower().encode(), ()) if kind == "header" else (b"", parse_path(name)) for kind, name in pairs
    )


def event_name(
    places: tuple[str, ...], header: Callable[[bytes], bytes | None], payload: Callable[[], Payload | None]
) -> str:
    """The first of these places (``header:Name`` or ``body:path``) that the call has; empty if it has none. ``header`` gives
    a header's value by its lower-case name."""
    for name, path in _compiled(places):
        if name:
            value = header(name)
            text = value.decode("utf-8", "replace") if value else ""
        else:
            body = payload()
            member = walk_members(body.members, path) if body is not None else None
            text = as_text(member) if member is not None else ""
        if text:
            return text
    return ""
