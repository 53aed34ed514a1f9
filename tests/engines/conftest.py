from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from engines.embedded_stage import AnswerEndpoint, Stage
from postern.engines.embedded import engine as embedded
from postern.engines.embedded import supervisor

pytest.register_assert_rewrite("engines.conformance")


@pytest.fixture(scope="session", autouse=True)
def ends_are_asked_for_often() -> Iterator[None]:
    """Asks for ends more often than production, which asks once a second: hundreds of these tests wait for an end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedded, "ASKED_EVERY", 0.05)
        yield


@pytest.fixture(scope="session", autouse=True)
def engines_that_die_are_started_again_soon() -> Iterator[None]:
    """Production lets one that dies again and again rest for half a minute."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(supervisor, "LONGEST_PAUSE", 0.5)
        yield


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    await stage.engine.close()


@pytest.fixture
def endpoint(stage: Stage) -> AnswerEndpoint:
    return stage.endpoint
