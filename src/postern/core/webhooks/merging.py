"""Merges what two people change in one webhook at the same time. If both change one setting, both values are shown."""

from typing import Any

from msgspec import Struct

from postern.core.documents import Document, Patch


class Collision(Struct, frozen=True):
    """A setting that both changed, to different values."""

    field: str
    theirs: Any
    mine: Any


NO_SETTINGS = ("matchCount", "lastMatchedAt", "rotation")
"""Values beside the settings that change with every call."""


def has_moved(seen: Any, present: Any) -> bool:
    """Whether somebody has changed what a form showed."""
    if not (isinstance(seen, dict) and isinstance(present, dict)):
        return bool(seen != present)
    return any(has_moved(was, present.get(name)) for name, was in seen.items() if name not in NO_SETTINGS)


def merged(form: Patch, seen: Document, present: Document, path: str = "") -> tuple[Patch, list[Collision]]:
    """The part of a form that its user changed. A setting that is as it was ``seen`` stays as it is at present."""
    patch: Patch = {}
    collisions: list[Collision] = []
    for name, mine in form.items():
        was, theirs, here = seen.get(name), present.get(name), f"{path}{name}"
        if mine == {} and isinstance(was or theirs, list):
            continue  # an empty change of what is told as a list of names
        if isinstance(mine, dict) and isinstance(was, dict) and not merged(mine, was, was)[0]:
            continue  # also where the other one has taken all of it away
        if isinstance(mine, dict) and isinstance(was, dict | None) and isinstance(theirs, dict):
            deeper, collided = merged(mine, was or {}, theirs, f"{here}.")
            collisions += collided
            if deeper:
                patch[name] = deeper
        elif mine != was:
            patch[name] = mine
            if theirs not in (was, mine):
                collisions.append(Collision(here, theirs, mine))
    return patch, collisions
