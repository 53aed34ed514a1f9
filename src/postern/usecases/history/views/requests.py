"""Answers about what a call brought: to repeat it, to test with it, to write a workflow for it."""

import json
import re
from base64 import b64encode
from typing import Annotated

import msgspec

from postern.core.documents import Document
from postern.core.history import invocation as recorded
from postern.core.history.sample import Variable
from postern.usecases.answers import UNSET, Time, UnsetType, View, as_plain, shown


class RecordedRequest(View):
    """A call as it came in, with credentials masked in headers and query. ``body_base64`` is null if the body is no longer
    kept; ``body_truncated``: only its beginning is kept. ``fields``: the four values that the webhook's mapping found when
    the call was accepted. ``event``: what has happened at the sender, if the call says so."""

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
    happened at the sender, empty if the call does not say. ``headers``: without credentials and signatures. ``event``: what a
    workflow gets."""

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
        headers=[list(pair) for pair in invocation.header_pairs],
        body_base64=None if invocation.body_is_gone else b64encode(invocation.body or b"").decode(),
        body_truncated=invocation.body_is_cut,
        fields=deliveries[0].fields if deliveries else {},
        event=event,
    )


def as_file(fixture: Fixture) -> str:
    return json.dumps(as_plain(fixture), ensure_ascii=False, indent=2) + "\n"


def file_name(fixture: Fixture, invocation_id: str) -> str:
    """A name made of its event, without an ending. It has letters, digits and dashes only, whatever was sent."""
    words = re.sub(r"[^a-z0-9]+", "-", (fixture.name or fixture.webhook).lower()).strip("-")[:60].strip("-")
    return f"{words or 'event'}-{invocation_id[-8:]}"


class Preview(View):
    """The value that each given path finds."""

    field_one: str | UnsetType | None = UNSET
    field_two: str | UnsetType | None = UNSET
    field_three: str | UnsetType | None = UNSET
    field_four: str | UnsetType | None = UNSET


class TriedKey(View):
    """``calls``: how many were looked at, and in how many of them the key was ``found``."""

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


TOO_LARGE = "a number that is too large to be read"
"""The reason why the event of an accepted call cannot be shown."""


class Sample(View):
    """``event`` is null if nothing has been recorded yet, or the recorded event holds a number that is too large to be
    read."""

    webhook_id: str
    recording_until: Time | None
    recorded_at: Time | None
    invocation_id: str | None
    event: Document | None
    variables: list[Variable]
