from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from beds.house import House, a_house


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def house(tmp_path: Path, anyio_backend: str) -> AsyncIterator[House]:
    async with a_house(tmp_path) as house:
        yield house
