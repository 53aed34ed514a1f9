"""The table of what a connection may do, pair by pair, without a socket."""

from itertools import product

import pytest

from postern.surfaces.http.states import IMPOSSIBLE, LONGEST, TABLE, ConnectionEvent, Do, State, Transition

S, E = State, ConnectionEvent
PAIRS = list(product(State, ConnectionEvent))
OWED = {S.BODY, S.ANSWERING, S.HOLDING}
"""The states in which an answer is owed."""
READING = {E.HEAD_BEGUN, E.HEAD_WHOLE, E.BODY_PIECE, E.REQUEST_WHOLE}
ANSWERED = {E.ANSWERED, E.FINAL_ANSWER}


def step(state: State, event: ConnectionEvent) -> Transition:
    return TABLE[state][event]


def test_every_state_knows_every_event() -> None:
    assert set(TABLE) == set(State)
    assert all(set(row) == set(ConnectionEvent) for row in TABLE.values())


@pytest.mark.parametrize(("state", "event"), PAIRS, ids=lambda one: one.name)
def test_a_pair_keeps_the_rules(state: State, event: ConnectionEvent) -> None:
    after, do, restart = step(state, event)
    assert isinstance(after, State) and isinstance(do, Do), (
        "both are numbers, and easily taken for each other"
    )
    if state is S.CLOSED:
        # Nothing is said any more, and nothing is read.
        assert after is S.CLOSED
        assert do in (Do.NOTHING, Do.ABORT, Do.DROP)
    if event is E.LOST:
        assert (after, do) == (S.CLOSED, Do.DROP)
    if event is E.HOPELESS:
        assert (after, do) == (S.CLOSED, Do.ABORT)
    if event is E.ENDING and state not in OWED:
        assert (after, do) in ((S.CLOSED, Do.CLOSE), (S.CLOSED, Do.NOTHING))
    if event is E.ENDING and state in OWED:
        assert after is state, "what is owed is still said"
    if do in (Do.REFUSE, Do.SHUT):
        assert after is S.LINGERING, "an answer to who is still sending must not be reset away"
        assert restart, "or it would last for as long as what was before"
    if do is Do.DISCARD:
        assert state in (S.UNWANTED, S.LINGERING)
    if event is E.BODY_PIECE and state is S.BODY:
        assert after is state
    if event is E.OVERDUE and state in OWED - {S.BODY}:
        assert step(state, event) == IMPOSSIBLE
        assert state not in LONGEST, "it is we who are late"
    if event in ANSWERED and state not in OWED | {S.CLOSED}:
        assert step(state, event) == IMPOSSIBLE, "an answer that nobody is owed"
    if event is E.FINAL_ANSWER and state in OWED:
        assert after in (S.LINGERING, S.CLOSED)
    if event is E.INVALID and state in (S.ANSWERING, S.HOLDING):
        assert step(state, event) == IMPOSSIBLE, "nothing is read while an answer is owed"
    elif event is E.INVALID and state is not S.CLOSED:
        assert after is S.LINGERING, "what came is refused, or was answered already"


def test_a_state_that_lasts_for_too_long_ends() -> None:
    for state in LONGEST:
        assert step(state, E.OVERDUE) != IMPOSSIBLE
    assert set(State) - set(LONGEST) == OWED - {S.BODY}


def test_nothing_is_read_where_nothing_can_be_made_of_it() -> None:
    for state, event in product((S.NEW, S.IDLE), READING - {E.HEAD_BEGUN}):
        assert step(state, event) == IMPOSSIBLE
