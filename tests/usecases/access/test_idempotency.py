"""A creation that is sent again: whose key it is, how long it is somebody's, and who waits."""

import asyncio

import pytest

from postern.core.access.accounts import Actor
from postern.core.history.invocation import StoreUnavailable
from postern.core.problems import Refused
from postern.usecases.access import idempotency
from postern.usecases.access.idempotency import KeptAnswer, once
from support.clock import HeldClock
from support.house import OWNER, House
from support.refusals import refused


class Creation:
    """Answers so, and counts how often it was done."""

    def __init__(self, house: House, status: int = 201) -> None:
        self.house, self.status, self.times = house, status, 0

    async def __call__(self) -> KeptAnswer:
        self.times += 1
        return self.status, [("location", f"/things/{self.times}")], b"{}"

    async def asked(self, actor: Actor = OWNER, key: str = "a key") -> bool:
        """Whether it was known."""
        return (await once(self.house.gateway, actor, key, b"a request", self))[1]


async def test_a_key_is_its_owners_and_stands_for_one_thing(house: House) -> None:
    create = Creation(house)
    keys = Actor("a", "write", "key_1"), Actor("a", "write", "key_2")
    for actor in (*keys, Actor("a", "write"), Actor("b", "write")):
        for key in ("one", "two"):
            assert [await create.asked(actor, key) for _ in range(2)] == [False, True]
    assert create.times == 8
    assert await create.asked(Actor("renamed", "write", "key_1"), "one")
    for status, is_kept in ((200, True), (399, True), (400, False), (503, False)):
        create = Creation(house, status)
        assert [await create.asked(key=f"{status}") for _ in range(2)] == [False, is_kept], status


async def test_what_broke_may_be_tried_again_at_once_and_another_ones_answer_stays(house: House) -> None:
    create, other = Creation(house), Actor("b", "write")
    assert await create.asked(other) is False

    async def broken() -> KeptAnswer:
        raise Refused("conflict", "a reason")

    with pytest.raises(Refused, match="a reason"):
        await once(house.gateway, OWNER, "a key", b"a request", broken)
    assert (await create.asked(), await create.asked(other)) == (False, True)


async def test_what_was_done_is_told_where_its_answer_cannot_be_kept(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = Creation(house)

    async def away(*_: object) -> None:
        raise StoreUnavailable("away")

    with monkeypatch.context() as full:
        full.setattr(house.gateway.store.idempotency, "finish", away)
        assert await create.asked() is False
    assert create.times == 1


async def test_a_key_whose_process_died_is_free_after_a_minute(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "LONGEST_WAIT", 0)
    create, clock = Creation(house), HeldClock(house.gateway)

    async def dies() -> KeptAnswer:
        raise asyncio.CancelledError

    async def nothing(*_: object) -> None: ...

    with monkeypatch.context() as dead:
        dead.setattr(house.gateway.store.idempotency, "forget", nothing)
        with pytest.raises(asyncio.CancelledError):
            await once(house.gateway, OWNER, "a key", b"a request", dies)
    clock.now += 59
    refusal = await refused(create.asked())
    assert refusal.code == "conflict" and "still at work" in refusal.detail
    clock.now += 1
    assert await create.asked() is False


async def test_who_comes_second_waits_ten_seconds_for_the_answer_of_the_first(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "CHECK_ANSWER_EVERY", 2.5)
    create, looked, slept = Creation(house), asyncio.Event(), []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        looked.set()
        await asyncio.sleep(0)

    class Asyncio:
        CancelledError = asyncio.CancelledError

    monkeypatch.setattr(Asyncio, "sleep", staticmethod(sleep), raising=False)
    monkeypatch.setattr(idempotency, "asyncio", Asyncio)

    async def first() -> KeptAnswer:
        waiting = asyncio.create_task(create.asked())
        await looked.wait()
        answered.append(waiting)
        return 201, [], b"{}"

    answered: list[asyncio.Task[bool]] = []
    await once(house.gateway, OWNER, "a key", b"a request", first)
    assert await answered[0] is True and create.times == 0

    async def too_long() -> KeptAnswer:
        slept.clear()
        with pytest.raises(Refused, match="still at work"):
            await create.asked(key="another")
        return 201, [], b"{}"

    await once(house.gateway, OWNER, "another", b"a request", too_long)
    assert sum(slept) == 10


async def test_what_was_answered_is_answered_again_for_a_day(house: House) -> None:
    create, clock = Creation(house), HeldClock(house.gateway)
    assert await create.asked() is False
    for seconds, is_known in ((24 * 3600 - 1, True), (1, False)):
        clock.now += seconds
        assert await create.asked() is is_known
