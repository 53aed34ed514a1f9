from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engines.embedded_stage import AnswerEndpoint, Stage

pytest.register_assert_rewrite("engines.conformance")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    await stage.engine.close()


@pytest.fixture
def endpoint(stage: Stage) -> AnswerEndpoint:
    return stage.endpoint
