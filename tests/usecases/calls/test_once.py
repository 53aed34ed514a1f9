"""A creation that is sent again, on both databases. Over HTTP it is tried in tests/surfaces/rest/framework/test_operation.py."""

import asyncio

import pytest

from postern.core.problems import Refused
from postern.usecases.access import idempotency
from postern.usecases.access.idempotency import KeptAnswer, once
from support.desk import ACTOR, Desk
from support.waiting import PATIENCE

pytestmark = pytest.mark.anyio


async def test_the_same_key_makes_one_thing_and_another_request_under_it_is_refused(desk: Desk) -> None:
    made: list[KeptAnswer] = []

    async def create() -> KeptAnswer:
        made.append((201, [("location", f"/things/{len(made)}")], b"{}"))
        return made[-1]

    first = await once(desk.gateway, ACTOR, "a key", b"a request", create)
    again = await once(desk.gateway, ACTOR, "a key", b"a request", create)
    assert first == (made[0], False) and again == (made[0], True) and len(made) == 1
    with pytest.raises(Refused) as other:
        await once(desk.gateway, ACTOR, "a key", b"another request", create)
    assert other.value.code == "idempotency_mismatch"


async def test_a_key_is_free_again_after_a_day(desk: Desk) -> None:
    now = desk.gateway.clock()
    desk.gateway.clock = lambda: now
    made = 0

    async def create() -> KeptAnswer:
        nonlocal made
        made += 1
        return 201, [], b"{}"

    for after, known in ((0, False), (86_399, True), (86_400, False)):
        desk.gateway.clock = lambda after=after: now + after  # type: ignore[misc]
        assert (await once(desk.gateway, ACTOR, "a key", b"a request", create))[1] is known, after
    assert made == 2


@pytest.mark.parametrize("status", [400, 503])
async def test_what_was_refused_may_be_tried_again_under_its_key(desk: Desk, status: int) -> None:
    answers: list[KeptAnswer] = [(status, [], b"no"), (201, [], b"yes")]

    async def create() -> KeptAnswer:
        return answers.pop(0)

    assert (await once(desk.gateway, ACTOR, "a key", b"a request", create))[0][0] == status
    assert (await once(desk.gateway, ACTOR, "a key", b"a request", create))[0][0] == 201


async def test_who_comes_while_the_first_is_still_at_work_hears_so_after_a_while(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "LONGEST_WAIT", 0.2)
    at_work = asyncio.Event()

    async def create() -> KeptAnswer:
        with pytest.raises(Refused) as refused:
            await asyncio.wait_for(once(desk.gateway, ACTOR, "a key", b"a request", create), PATIENCE)
        assert refused.value.code == "conflict"
        at_work.set()
        return 201, [], b"{}"

    assert await once(desk.gateway, ACTOR, "a key", b"a request", create) == ((201, [], b"{}"), False)
    assert at_work.is_set()
