"""Answers about listeners."""

from postern.core import listeners as core
from postern.usecases.answers import Time, View, shown
from postern.usecases.history.views.requests import RecordedRequest


class Listener(View):
    """A `postern listen` that is connected now."""

    id: str
    name: str
    by: str
    address: str
    since: Time


class Entered(Listener):
    """``askWithin``: seconds after which a listener that has not asked for calls counts as gone."""

    ask_within: float


class HandedCall(View):
    """A recorded call that somebody (``askedBy``) wants a listener's program to see again. Nobody waits for its answer."""

    id: str
    asked_by: str
    request: RecordedRequest


class HandedCalls(View):
    calls: list[HandedCall]


def listener_of(listener: core.Listener) -> Listener:
    return shown(Listener, listener, by=listener.owner)
