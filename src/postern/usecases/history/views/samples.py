"""What the last call carried, for whoever makes a workflow or a mapping."""

from typing import Any

from postern.core.documents import Document
from postern.usecases.answers import UNSET, Time, UnsetType, View


class Preview(View):
    """Of each path that was given: the value it finds."""

    field_one: str | UnsetType | None = UNSET
    field_two: str | UnsetType | None = UNSET
    field_three: str | UnsetType | None = UNSET
    field_four: str | UnsetType | None = UNSET


class TriedKey(View):
    """``calls``: how many of the last ones were looked at, and in how many of them the key was ``found``."""

    calls: int
    found: int
    example: str | None
    instead: str | None


class Recording(View):
    """``webhooks``: how many it concerns."""

    webhooks: int
    recording_until: Time


class NotRecording(View):
    """``webhooks``: how many it concerns."""

    webhooks: int
    recording_until: None


class Variable(View):
    """``expressions``: how each kind of workflow writes it."""

    path: str
    type: str
    example: Any
    expressions: dict[str, str]


TOO_LARGE = "a number that is too large to be read"
"""Why the event of a recorded call cannot be shown, though it was accepted."""


class Sample(View):
    """``event`` is null where nothing has been recorded yet, and where what was ``recordedAt`` holds a number that is too
    large to be read."""

    webhook_id: str
    recording_until: Time | None
    recorded_at: Time | None
    invocation_id: str | None
    event: Document | None
    variables: list[Variable]
