"""Answers about listeners."""

from typing import Literal

from postern.core import listeners as core
from postern.usecases.answers import Time, View, shown
from postern.usecases.history.views.requests import RecordedRequest


class Listener(View):
    """A `postern listen` that is connected now. ``answers``: the webhook whose calls it answers in the place of the
    workflow; null for one that only listens."""

    id: str
    name: str
    by: str
    address: str
    since: Time
    answers: str | None


class Entered(Listener):
    """``askWithin``: seconds after which a listener that has not asked for calls counts as gone."""

    ask_within: float


class HandedCall(View):
    """A call for a listener. ``answer``: its caller waits until ``until`` for what the listener's program answers.
    ``replay``: somebody (``askedBy``) wants it to be seen again, and nobody waits."""

    id: str
    kind: Literal["answer", "replay"]
    until: Time | None
    asked_by: str | None
    request: RecordedRequest


class HandedCalls(View):
    calls: list[HandedCall]


class Taken(View):
    """``heard``: whether the caller heard this answer. ``detail`` says why not."""

    heard: bool
    detail: str


def listener_of(one: core.Listener) -> Listener:
    return shown(Listener, one, by=one.owner)
