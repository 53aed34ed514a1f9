from collections.abc import Iterator

import pytest

from support.client import PASSWORD, Client, admin_of
from support.program import Program


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """One real program for the tests that only ask it things."""
    settings = {
        "POSTERN_ADMIN_PASSWORD": PASSWORD,
        "POSTERN_ENGINE": "none",
        "POSTERN_OUTBOUND_ALLOWED": "127.0.0.1",
        "POSTERN_TELL": "ntfy+http://127.0.0.1:9/nobody",
    }
    with Program(tmp_path_factory.mktemp("served"), settings) as program:
        yield program


@pytest.fixture
def api(served: Program) -> Client:
    return admin_of(served)
