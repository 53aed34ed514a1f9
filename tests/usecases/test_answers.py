"""The response action's door: what a workflow may not say is refused by the name of the part that is
wrong."""

from typing import Any

import pytest

from beds.house import House
from postern.core.problems import Refused
from postern.usecases.respond import respond

pytestmark = pytest.mark.anyio


async def test_an_answer_that_cannot_be_sent_is_refused_by_the_field_that_is_wrong(house: House) -> None:
    slow = await house.webhook(synchronousResponse={"enabled": True, "timeoutSeconds": 1})
    invocation = (await house.call(slow)).json["invocationId"]
    (trigger,) = house.engine.started.values()
    assert trigger.response is not None

    async def refused(status: Any = 200, headers: Any = None, body: Any = "") -> list[str]:
        assert trigger.response is not None
        with pytest.raises(Refused) as refusal:
            await respond(house.gateway, invocation, trigger.response.token, status, headers, body)
        return [error.field for error in refusal.value.errors]

    assert await refused(status=99) == ["status"]
    assert await refused(headers={"Set-Cookie": "a=1"}) == ["headers"]
    assert await refused(headers={"X-Kind": "a\nb"}) == ["headers"]
    assert await refused(headers=["X-Kind"]) == ["headers"]
    assert await refused(body="x" * (1024 * 1024 + 1)) == ["body"]
