"""Callers of this process that wait for a workflow's answer."""

import asyncio

from postern.usecases.runtime.process import Waiters


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
