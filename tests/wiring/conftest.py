"""What is tried on a gateway of this process, as the use cases are."""

import pytest

from support.desk import desk, settings

__all__ = ["anyio_backend", "desk", "settings"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
