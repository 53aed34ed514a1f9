from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.desk import desk, settings
from support.house import House, a_house

__all__ = ["desk", "house", "settings"]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with a_house(tmp_path) as house:
        yield house
