"""What a connection may do, and when: for every state and every event the next state and the one thing to do.

Nothing here does anything: the table decides, `connection.py` acts. A connection reads one request after the
other and owes an answer to each, in order. Callers may send the next request while answers to earlier ones are
owed, so there are states for both.

    NEW ──> HEAD ──> BODY ──> ANSWERING ──> IDLE ──> HEAD …
                                 └─> NEXT_HEAD ──> NEXT_BODY ──> ANSWERING …
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
    """All that came are whole requests, and answers are owed."""
    NEXT_HEAD = auto()
    """A head is coming in while answers are owed."""
    NEXT_BODY = auto()
    """A body is coming in while answers to earlier requests are owed."""
    UNWANTED = auto()
    """A body is coming in whose request is answered already."""
    REFUSING = auto()
    """What came is no request. The caller hears so after the answers that are owed; nothing more is read."""
    LINGERING = auto()
    """Every answer is sent and our side is shut. The caller may still be sending: closing now would reset the
    connection, and answers that are on their way would be lost."""
    CLOSED = auto()


class Event(IntEnum):
    HEAD_BEGUN = 0
    HEAD_WHOLE = auto()
    BODY_PIECE = auto()
    REQUEST_WHOLE = auto()
    NONE_OWED = auto()
    """An answer has gone out, and it was the last that was owed."""
    ONE_OWED = auto()
    """An answer has gone out, and one is still owed: to the newest request."""
    SEVERAL_OWED = auto()
    """An answer has gone out, and several are still owed."""
    FINAL_ANSWER = auto()
    """An answer has gone out after which the connection ends."""
    INVALID = auto()
    """What came is no request, or too much of one."""
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
    """The newest exchange has its turn at once."""
    QUEUE = auto()
    """It waits for its turn, and nothing more is read until then."""
    HAND_ON = auto()
    """This piece of the body is for the newest exchange."""
    QUEUE_PIECE = auto()
    """So it is, before its turn."""
    FINISH = auto()
    """The newest request is whole."""
    READ_ON = auto()
    BEGIN_NEXT = auto()
    """The oldest exchange that is left has its turn."""
    DISCARD = auto()
    END_AFTER_NEWEST = auto()
    """The answer to the newest request is the last."""
    DROP_NEWEST = auto()
    """The newest request will not be whole."""
    REFUSE = auto()
    """Drop the newest request where it is not whole, answer why, and shut our side."""
    REFUSE_AND_CLOSE = auto()
    SHUT = auto()
    """Shut our side; exchanges that are left are dropped."""
    CLOSE = auto()
    """What was written still goes out."""
    ABORT = auto()
    DROP_ALL = auto()
    GIVE_UP = auto()
    """This cannot be: say so in the log, and abort."""


class Step(NamedTuple):
    state: State
    do: Do = Do.NOTHING
    restart: bool = False
    """Whether the time allowed begins anew."""


S, E = State, Event

_REFUSE = Step(S.LINGERING, Do.REFUSE, True)
_SHUT = Step(S.LINGERING, Do.SHUT, True)
_CLOSE = Step(S.CLOSED, Do.CLOSE, True)
_ABORT = Step(S.CLOSED, Do.ABORT, True)
_LOST = Step(S.CLOSED, Do.DROP_ALL)
_REFUSE_AND_CLOSE = Step(S.CLOSED, Do.REFUSE_AND_CLOSE, True)

_ROWS: dict[State, dict[Event, Step]] = {
    S.NEW: {
        E.HEAD_BEGUN: Step(S.HEAD, restart=True),
        E.INVALID: _REFUSE,
        E.OVERDUE: _REFUSE,
        E.CALLER_FINISHED: _CLOSE,
        E.CROWDED_OUT: _CLOSE,
        E.ENDING: _CLOSE,
    },
    S.IDLE: {
        E.HEAD_BEGUN: Step(S.HEAD, restart=True),
        E.INVALID: _REFUSE,
        E.OVERDUE: _CLOSE,
        E.CALLER_FINISHED: _CLOSE,
        E.CROWDED_OUT: _CLOSE,
        E.ENDING: _CLOSE,
    },
    S.HEAD: {
        E.HEAD_WHOLE: Step(S.BODY, Do.BEGIN),
        E.INVALID: _REFUSE,
        E.OVERDUE: _REFUSE,
        E.CALLER_FINISHED: _REFUSE,
        E.CROWDED_OUT: _REFUSE_AND_CLOSE,
        E.ENDING: _CLOSE,
    },
    S.BODY: {
        E.BODY_PIECE: Step(S.BODY, Do.HAND_ON),
        E.REQUEST_WHOLE: Step(S.ANSWERING, Do.FINISH),
        E.NONE_OWED: Step(S.UNWANTED, Do.READ_ON, True),
        E.FINAL_ANSWER: _SHUT,
        E.INVALID: _REFUSE,
        E.OVERDUE: _REFUSE,
        E.CALLER_FINISHED: _REFUSE,
        E.CROWDED_OUT: _REFUSE_AND_CLOSE,
        E.ENDING: Step(S.BODY, Do.END_AFTER_NEWEST),
    },
    S.ANSWERING: {
        E.HEAD_BEGUN: Step(S.NEXT_HEAD, restart=True),
        E.NONE_OWED: Step(S.IDLE, Do.READ_ON, True),
        E.ONE_OWED: Step(S.ANSWERING, Do.BEGIN_NEXT),
        E.SEVERAL_OWED: Step(S.ANSWERING, Do.BEGIN_NEXT),
        E.FINAL_ANSWER: _CLOSE,
        E.INVALID: Step(S.REFUSING, restart=True),
        E.CALLER_FINISHED: Step(S.ANSWERING, Do.END_AFTER_NEWEST),
        E.ENDING: Step(S.ANSWERING, Do.END_AFTER_NEWEST),
    },
    S.NEXT_HEAD: {
        E.HEAD_WHOLE: Step(S.NEXT_BODY, Do.QUEUE),
        E.NONE_OWED: Step(S.HEAD, Do.READ_ON, True),
        E.ONE_OWED: Step(S.NEXT_HEAD, Do.BEGIN_NEXT),
        E.SEVERAL_OWED: Step(S.NEXT_HEAD, Do.BEGIN_NEXT),
        E.FINAL_ANSWER: _SHUT,
        E.INVALID: Step(S.REFUSING, restart=True),
        E.CALLER_FINISHED: Step(S.REFUSING, restart=True),
        E.ENDING: Step(S.NEXT_HEAD, Do.END_AFTER_NEWEST),
    },
    S.NEXT_BODY: {
        E.BODY_PIECE: Step(S.NEXT_BODY, Do.QUEUE_PIECE),
        E.REQUEST_WHOLE: Step(S.ANSWERING, Do.FINISH),
        # Until now it was we who did not read on.
        E.ONE_OWED: Step(S.BODY, Do.BEGIN_NEXT, True),
        E.SEVERAL_OWED: Step(S.NEXT_BODY, Do.BEGIN_NEXT),
        E.FINAL_ANSWER: _SHUT,
        E.INVALID: Step(S.REFUSING, Do.DROP_NEWEST, True),
        E.CALLER_FINISHED: Step(S.REFUSING, Do.DROP_NEWEST, True),
        E.ENDING: Step(S.NEXT_BODY, Do.END_AFTER_NEWEST),
    },
    S.UNWANTED: {
        E.BODY_PIECE: Step(S.UNWANTED, Do.DISCARD),
        E.REQUEST_WHOLE: Step(S.IDLE, restart=True),
        E.INVALID: _SHUT,
        E.OVERDUE: _SHUT,
        E.CALLER_FINISHED: _CLOSE,
        E.CROWDED_OUT: _CLOSE,
        E.ENDING: _CLOSE,
    },
    S.REFUSING: {
        E.NONE_OWED: _REFUSE,
        E.ONE_OWED: Step(S.REFUSING, Do.BEGIN_NEXT),
        E.SEVERAL_OWED: Step(S.REFUSING, Do.BEGIN_NEXT),
        E.FINAL_ANSWER: _SHUT,
        E.CALLER_FINISHED: Step(S.REFUSING),
        E.ENDING: Step(S.REFUSING),
    },
    S.LINGERING: {
        # Of the piece with whose beginning the last answer was given.
        E.HEAD_BEGUN: Step(S.LINGERING),
        E.BODY_PIECE: Step(S.LINGERING, Do.DISCARD),
        E.REQUEST_WHOLE: Step(S.LINGERING),
        E.INVALID: Step(S.LINGERING),
        E.OVERDUE: _ABORT,
        E.CALLER_FINISHED: _CLOSE,
        E.CROWDED_OUT: _CLOSE,
        E.ENDING: _CLOSE,
    },
    S.CLOSED: {
        **{event: Step(S.CLOSED) for event in Event},
        E.OVERDUE: _ABORT,  # what was written does not go out
        E.HOPELESS: _ABORT,
        E.LOST: _LOST,
    },
}

_IN_ANY_STATE = {
    E.LEFT: _CLOSE,
    E.HOPELESS: _ABORT,
    E.LOST: _LOST,
}

IMPOSSIBLE = Step(S.CLOSED, Do.GIVE_UP)
"""We have lost count of requests and answers."""

TABLE = {
    state: {event: (_IN_ANY_STATE | row).get(event, IMPOSSIBLE) for event in Event}
    for state, row in _ROWS.items()
}


class Wait(IntEnum):
    REQUEST = 0
    """As long as a request may take to come in."""
    REST = auto()
    """As long as a connection may rest between two requests."""


LONGEST = {
    S.NEW: Wait.REQUEST,
    S.IDLE: Wait.REST,
    S.HEAD: Wait.REQUEST,
    S.BODY: Wait.REQUEST,
    S.UNWANTED: Wait.REQUEST,
    S.LINGERING: Wait.REQUEST,
    S.CLOSED: Wait.REQUEST,
}
"""How long a state may last; where answers are owed, it is not the caller who is late."""
