"""When a call says that it was signed."""

from datetime import UTC, datetime

import pytest

from postern.core.signatures.freshness import parse_timestamp


@pytest.mark.parametrize("month", range(1, 13))
def test_a_date_of_http_is_read_in_every_month(month: int) -> None:
    then = datetime(2026, month, 15, 12, 30, 5, tzinfo=UTC)
    assert (
        parse_timestamp(then.strftime("%a, %d %b %Y %H:%M:%S GMT").encode(), "http_date") == then.timestamp()
    )
