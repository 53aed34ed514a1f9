"""Callers of this process that wait for a workflow's answer."""

import asyncio

from postern.usecases.runtime.process import Waiters


def test_only_who_waits_for_a_key_is_woken_for_it() -> None:
    waiters = Waiters()
    one, another, other = (waiters.register(key) for key in ("a", "a", "b"))
    waiters.wake("a")
    assert [event.is_set() for event in (one, another, other)] == [True, True, False]
    waiters.wake_all()
    assert other.is_set()


def test_who_has_left_is_forgotten() -> None:
    waiters = Waiters()
    one, another = waiters.register("a"), waiters.register("a")
    assert ("a" in waiters, len(waiters)) == (True, 2)
    waiters.leave("a", one)
    assert ("a" in waiters, len(waiters)) == (True, 1)
    waiters.leave("a", another)
    assert ("a" in waiters, len(waiters)) == (False, 0)
    waiters.leave("a", another)
    waiters.leave("b", asyncio.Event())


def test_when_time_is_up_everybody_looks() -> None:
    waiters = Waiters()
    event = waiters.register("a")
    waiters.send_away()
    assert waiters.time_is_up and event.is_set()
