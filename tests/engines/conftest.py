import pytest

pytest.register_assert_rewrite("conformance")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
