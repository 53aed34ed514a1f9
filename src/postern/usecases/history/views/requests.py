"""What a call brought: to be repeated, kept as a fixture of tests, or described by types."""

import json
import re
from base64 import b64encode
from typing import Annotated, Any

import msgspec

from postern.core.documents import Document
from postern.core.history import invocation as recorded
from postern.usecases.answers import UNSET, Time, UnsetType, View, as_plain, shown


class RecordedRequest(View):
    """A call as it came in, but for credentials, which are masked in headers and query. ``body_base64`` is null where the
    body is not kept any more; ``body_truncated``: of a rejected call only the beginning is kept. ``fields``: the four
    values that the webhook's mapping found when the call was accepted. ``event``: what has happened at the sender, where the
    call says so."""

    invocation_id: str
    webhook_id: str
    received_at: Time
    method: str
    path: str
    query: str
    headers: list[Annotated[list[str], msgspec.Meta(min_length=2, max_length=2)]]
    body_base64: str | None
    body_truncated: bool
    fields: dict[str, str]
    event: str


class Fixture(View):
    """A recorded call as a file for tests of workflows. ``postern_event``: the version of this form. ``name``: what has
    happened at the sender, empty where the call does not say. ``headers``: without credentials and signatures.
    ``event``: what a workflow gets."""

    postern_event: int
    name: str
    webhook: str
    received_at: Time
    headers: list[Annotated[list[str], msgspec.Meta(min_length=2, max_length=2)]]
    event: Document


class PayloadTypes(View):
    """``source``: a Python module with ``Event`` and ``Payload``. ``calls``: how many were read for it."""

    webhook_id: str
    name: str
    calls: int
    source: str


def request_of(
    invocation: recorded.Invocation, deliveries: list[recorded.Delivery], event: str
) -> RecordedRequest:
    return shown(
        RecordedRequest,
        invocation,
        invocation_id=invocation.id,
        path=invocation.path.decode("latin-1"),
        query=invocation.query.decode("latin-1"),
        headers=msgspec.json.decode(invocation.headers, type=list[list[str]]),
        body_base64=None if invocation.body_is_gone else b64encode(invocation.body or b"").decode(),
        body_truncated=invocation.body_is_cut,
        fields=deliveries[0].fields if deliveries else {},
        event=event,
    )


def as_file(found: Fixture) -> str:
    """What stands in the file."""
    return json.dumps(as_plain(found), ensure_ascii=False, indent=2) + "\n"


def file_name(found: Fixture, invocation_id: str) -> str:
    """After its event, without an ending: letters, digits and dashes alone, whatever was sent."""
    words = re.sub(r"[^a-z0-9]+", "-", (found.name or found.webhook).lower()).strip("-")[:60].strip("-")
    return f"{words or 'event'}-{invocation_id[-8:]}"


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
