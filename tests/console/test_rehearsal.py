"""Pages without a browser and without a socket: what is made before anybody asks, and what the list of webhooks says."""

from pathlib import Path

import pytest
from starlette.requests import Request

from beds.house import OWNER, House, a_house
from postern.surfaces.console import rehearsal
from postern.surfaces.console.views import history, webhooks
from postern.surfaces.console.visit import Visit
from postern.usecases.history import replay

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_every_page_can_be_rehearsed_and_nothing_is_changed_by_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with a_house(tmp_path) as house:
        webhook = await house.webhook()
        await house.call(webhook, b'{"n": 1}')
        before = await entries(house)
        acts = await rehearsal.acts(house.gateway)
        assert len(acts) == len(rehearsal.PAGES) + len(rehearsal.WEBHOOK_PAGES) + 1
        for view, names in acts:
            shown = await view(Visit(rehearsal._request(names), house.gateway, rehearsal.ACTOR))
            assert (shown.status_code, len(shown.body) > 1000) == (200, True), view
            assert b"can reach this address" not in shown.body, "its address is public"
        assert await entries(house) == before


async def entries(house: House) -> int:
    return len(await house.gateway.store.audit.page(100))


async def test_a_webhook_whose_calls_cannot_be_started_is_marked_as_failing(tmp_path: Path) -> None:
    async with a_house(tmp_path) as house:
        webhook = await house.webhook(name="Orders")
        await house.call(webhook)
        await house.deliver()
        assert "Failing" not in await listed(house)
        house.engine.down = True
        await house.call(webhook)
        await house.deliver()
        page = await listed(house)
        assert "Failing" in page and "1 call could not be started in the workflow engine" in page


async def test_a_call_s_page_asks_again_until_its_start_is_known(tmp_path: Path) -> None:
    async with a_house(tmp_path) as house:
        webhook = await house.webhook()
        call = (await house.call(webhook)).json["invocationId"]
        assert 'hx-trigger="every' in await opened(house, call)
        await house.deliver()
        assert 'hx-trigger="every' not in await opened(house, call)
        await replay(house.gateway, OWNER, call)
        assert 'hx-trigger="every' in await opened(house, call)
        house.engine.down = True
        await house.deliver()
        assert 'hx-trigger="every' not in await opened(house, call), "what is tried again and again may take days"


async def opened(house: House, call: str) -> str:
    shown = await history.detail(Visit(rehearsal._request({"invocation": call}), house.gateway, OWNER))
    return bytes(shown.body).decode()


async def listed(house: House) -> str:
    request: Request = rehearsal._request({})
    shown = await webhooks.listing(Visit(request, house.gateway, OWNER))
    return bytes(shown.body).decode()
