"""The states of a connection: for every state and every event the next state and the one thing to do.

Nothing here does anything: the table decides, `connection.py` acts. A connection reads one request and owes one
answer at a time. Callers may send the next request before they have that answer: it is kept, nothing more is taken
from the network meanwhile, and it is read when the answer has gone out.

    NEW ──> HEAD ──> BODY ──> ANSWERING ──> IDLE ──> HEAD …
                                 └─> HOLDING ──> IDLE …
"""

from enum import IntEnum, auto
from typing import NamedTuple


class State(IntEnum):
    NEW = 0
    """Nothing has come yet."""
    IDLE = auto()
    """Every request is answered, and no other has begun."""
    HEAD = auto()
    """A head is coming in, and no answer is owed."""
    BODY = auto()
    """A body is coming in, and only the answer to it is owed."""
    ANSWERING = auto()
    """The request is whole, and its answer is owed."""
    HOLDING = auto()
    """The answer is owed, and more has come, which is kept until the answer has gone out."""
    UNWANTED = auto()
    """A body is coming in whose request is answered already."""
    LINGERING = auto()
    """The last answer is sent and our side is shut. The caller may still be sending: closing now would reset the
    connection, and answers that are on their way would be lost."""
    CLOSED = auto()


class ConnectionEvent(IntEnum):
    HEAD_BEGUN = 0
    HEAD_WHOLE = auto()
    BODY_PIECE = auto()
    REQUEST_WHOLE = auto()
    MORE = auto()
    """Bytes have come behind a whole request."""
    ANSWERED = auto()
    """The answer has gone out."""
    FINAL_ANSWER = auto()
    """The answer has gone out, and the connection ends after it."""
    INVALID = auto()
    """The bytes are no request, or too much of one."""
    OVERDUE = auto()
    """This state has lasted for too long: `LONGEST`."""
    CALLER_FINISHED = auto()
    """The caller has shut its side. It may still listen."""
    LEFT = auto()
    """The caller has shut its side, and it is one who does not listen then."""
    CROWDED_OUT = auto()
    """Others need the place."""
    ENDING = auto()
    """The server ends."""
    HOPELESS = auto()
    """The caller takes no answer, or sends without end what nobody wants."""
    LOST = auto()
    """The connection is gone."""


class Do(IntEnum):
    NOTHING = 0
    BEGIN = auto()
    HAND_ON = auto()
    """Hands this piece of the body to the exchange."""
    FINISH = auto()
    """The request is whole."""
    HOLD = auto()
    """Takes nothing more from the network."""
    READ_ON = auto()
    """Reads on, beginning with what was kept."""
    DISCARD = auto()
    END_AFTER_ANSWER = auto()
    """The answer that is owed is the last."""
    REFUSE = auto()
    """Drop the request that is not whole, answer why, and shut our side."""
    REFUSE_AND_CLOSE = auto()
    SHUT = auto()
    """Shut our side; an exchange that is left is dropped."""
    CLOSE = auto()
    """Closes after what was written has gone out."""
    ABORT = auto()
    DROP = auto()
    GIVE_UP = auto()
    """Says in the log that this cannot be, and aborts."""


class Transition(NamedTuple):
    state: State
    do: Do = Do.NOTHING
    restart: bool = False
    """Whether the time allowed begins anew."""


S, E = State, ConnectionEvent

_REFUSE = Transition(S.LINGERING, Do.REFUSE, True)
_SHUT = Transition(S.LINGERING, Do.SHUT, True)
_CLOSE = Transition(S.CLOSED, Do.CLOSE, True)
_ABORT = Transition(S.CLOSED, Do.ABORT, True)
_LOST = Transition(S.CLOSED, Do.DROP)
_REFUSE_AND_CLOSE = Transition(S.CLOSED, Do.REFUSE_AND_CLOSE, True)

_ROWS: dict[State, dict[ConnectionEvent, Transition]] = {
    S.NEW: {
        E.HEAD_BEGUN: Transition(S.HEAD, restart=True),
        E.INVALID: _REFUSE,
        E.OVERDUE: _REFUSE,
        E.CALLER_FINISHED: _CLOSE,
        E.CROWDED_OUT: _CLOSE,
        E.ENDING: _CLOSE,
    },
    S.IDLE: {
        E.HEAD_BEGUN: Transition(S.HEAD, restart=True),
        E.INVALID: _REFUSE,
        E.OVERDUE: _CLOSE,
        E.CALLER_FINISHED: _CLOSE,
        E.CROWDED_OUT: _CLOSE,
        E.ENDING: _CLOSE,
    },
    S.HEAD: {
        E.HEAD_WHOLE: Transition(S.BODY, Do.BEGIN),
        E.INVALID: _REFUSE,
        E.OVERDUE: _REFUSE,
        E.CALLER_FINISHED: _REFUSE,
        E.CROWDED_OUT: _REFUSE_AND_CLOSE,
        E.ENDING: _CLOSE,
    },
    S.BODY: {
        E.BODY_PIECE: Transition(S.BODY, Do.HAND_ON),
        E.REQUEST_WHOLE: Transition(S.ANSWERING, Do.FINISH),
        E.ANSWERED: Transition(S.UNWANTED, Do.READ_ON, True),
        E.FINAL_ANSWER: _SHUT,
        E.INVALID: _REFUSE,
        E.OVERDUE: _REFUSE,
        E.CALLER_FINISHED: _REFUSE,
        E.CROWDED_OUT: _REFUSE_AND_CLOSE,
        E.ENDING: Transition(S.BODY, Do.END_AFTER_ANSWER),
    },
    S.ANSWERING: {
        E.MORE: Transition(S.HOLDING, Do.HOLD),
        E.ANSWERED: Transition(S.IDLE, Do.READ_ON, True),
        E.FINAL_ANSWER: _CLOSE,
        E.CALLER_FINISHED: Transition(S.ANSWERING, Do.END_AFTER_ANSWER),
        E.ENDING: Transition(S.ANSWERING, Do.END_AFTER_ANSWER),
    },
    S.HOLDING: {
        E.MORE: Transition(S.HOLDING, Do.HOLD),
        E.ANSWERED: Transition(S.IDLE, Do.READ_ON, True),
        E.FINAL_ANSWER: _SHUT,
        E.CALLER_FINISHED: Transition(S.HOLDING, Do.END_AFTER_ANSWER),
        E.ENDING: Transition(S.HOLDING, Do.END_AFTER_ANSWER),
    },
    S.UNWANTED: {
        E.BODY_PIECE: Transition(S.UNWANTED, Do.DISCARD),
        E.REQUEST_WHOLE: Transition(S.IDLE, restart=True),
        E.INVALID: _SHUT,
        E.OVERDUE: _SHUT,
        E.CALLER_FINISHED: _CLOSE,
        E.CROWDED_OUT: _CLOSE,
        E.ENDING: _CLOSE,
    },
    S.LINGERING: {
        # The rest of a piece whose beginning was answered.
        E.BODY_PIECE: Transition(S.LINGERING, Do.DISCARD),
        E.REQUEST_WHOLE: Transition(S.LINGERING),
        E.INVALID: Transition(S.LINGERING),
        E.OVERDUE: _ABORT,
        E.CALLER_FINISHED: _CLOSE,
        E.CROWDED_OUT: _CLOSE,
        E.ENDING: _CLOSE,
    },
    S.CLOSED: {
        **{event: Transition(S.CLOSED) for event in ConnectionEvent},
        E.OVERDUE: _ABORT,  # what was written does not go out
        E.HOPELESS: _ABORT,
        E.LOST: _LOST,
    },
}

_IN_ANY_STATE = {E.LEFT: _CLOSE, E.HOPELESS: _ABORT, E.LOST: _LOST}

IMPOSSIBLE = Transition(S.CLOSED, Do.GIVE_UP)
"""We have lost count of requests and answers."""

TABLE = {
    state: {event: (_IN_ANY_STATE | row).get(event, IMPOSSIBLE) for event in ConnectionEvent}
    for state, row in _ROWS.items()
}


class Wait(IntEnum):
    REQUEST = 0
    """The time that a request may take to come in."""
    REST = auto()
    """The time that a connection may rest between two requests."""
    END = auto()
    """The time that a caller may take, after the last answer, to read on and to hang up."""


LONGEST = {
    S.NEW: Wait.REQUEST,
    S.IDLE: Wait.REST,
    S.HEAD: Wait.REQUEST,
    S.BODY: Wait.REQUEST,
    S.UNWANTED: Wait.REQUEST,
    S.LINGERING: Wait.END,
    S.CLOSED: Wait.END,
}
"""The time limit of each state. There is none while an answer is owed: then it is not the caller who is late."""
