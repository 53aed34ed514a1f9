"""Which listener answers which webhook, as a process knows it, and who is woken for a call."""

from msgspec.structs import replace

from postern.core.listeners import Listener
from postern.usecases.runtime.process import Listeners

ANSWERING = Listener("lsn_1", "ada@laptop", "usr_1", "ada", "192.0.2.7", 0.0, 10.0, "wh_1")


def test_a_listener_answers_for_as_long_as_its_lease_lasts_and_nobody_ended_it() -> None:
    listeners = Listeners()
    assert listeners.answering("wh_1", 0.0) is None
    listeners.take_in([ANSWERING, replace(ANSWERING, id="lsn_2", answers=None)])
    assert listeners.answering("wh_1", 9.9) is ANSWERING
    assert listeners.answering("wh_1", 10.0) is None
    assert listeners.answering("wh_2", 0.0) is None
    listeners.take_in([replace(ANSWERING, ended_by="bob")])
    assert listeners.answering("wh_1", 0.0) is None
    listeners.take_in([])
    assert listeners.answering("wh_1", 0.0) is None


def test_every_request_of_a_listener_is_woken_and_no_other_one_s() -> None:
    listeners = Listeners()
    with listeners.waiting("lsn_1") as one, listeners.waiting("lsn_2") as other:
        with listeners.waiting("lsn_1") as another:
            listeners.wake("lsn_1")
            assert (one.is_set(), another.is_set(), other.is_set()) == (True, True, False)
            one.clear()
        listeners.wake("lsn_1")  # the one that is left is still there
        assert one.is_set()
    assert not listeners._waiting
    listeners.wake("lsn_1")  # nobody waits


def test_when_the_process_ends_nobody_waits_on() -> None:
    listeners = Listeners()
    with listeners.waiting("lsn_1") as one, listeners.waiting("lsn_2") as other:
        assert not listeners.closed
        listeners.close()
        assert (listeners.closed, one.is_set(), other.is_set()) == (True, True, True)
