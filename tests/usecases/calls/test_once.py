"""A creation that is sent again, on both databases. Over HTTP it is tried in tests/surfaces/rest/framework/test_operation.py."""

import pytest

from postern.core.problems import Refused
from postern.usecases.access.idempotency import KeptAnswer, once
from support.desk import ACTOR, Desk

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
