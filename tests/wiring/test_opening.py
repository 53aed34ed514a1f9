"""What a gateway knows when it is ready for its first call, and what it leaves behind where it cannot be."""

import threading
from pathlib import Path

import pytest

from postern.core.access.accounts import Actor
from postern.settings import Settings
from postern.usecases.listeners import listeners
from postern.usecases.listeners.listeners import EnterRequest
from postern.wiring.gateway import opened
from support.desk import Desk

pytestmark = pytest.mark.anyio

ADA = Actor("ada", "write", "usr_ada", "ses_1")
ADDRESS = "http://127.0.0.1:9"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        {"POSTERN_DATA_DIR": str(tmp_path / "data"), "POSTERN_ENGINE": "none", "POSTERN_LOG": "off"}
    )


async def test_it_knows_who_listens(settings: Settings) -> None:
    async with opened(settings, ADDRESS) as gateway:
        webhook = await Desk(gateway).webhook(synchronousResponse={"enabled": True, "timeoutSeconds": 20})
        entered = await listeners.enter(
            gateway, ADA, EnterRequest(name="ada@laptop", answers=webhook), "192.0.2.7"
        )
    async with opened(settings, ADDRESS) as gateway:
        answering = gateway.runtime.listeners.answering(webhook, gateway.clock())
        assert answering is not None
        assert answering.id == entered.id


async def test_one_that_cannot_start_leaves_no_database_open(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "data" / "address").mkdir(parents=True)
    before = set(threading.enumerate())
    with pytest.raises(IsADirectoryError):
        async with opened(settings, ADDRESS):
            pass
    left = {thread.name for thread in set(threading.enumerate()) - before}
    assert {name for name in left if not name.startswith("asyncio_")} == set()
