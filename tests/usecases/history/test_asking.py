"""What is asked for in words: times and pages."""

from datetime import UTC, datetime

import pytest

from postern.core.problems import Refused
from postern.usecases.answers import first_page
from postern.usecases.history import samples
from postern.usecases.history.filters import moment
from support.house import OWNER, House


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, None),
        ("", None),
        ("0", 0.0),
        ("1700000000.5", 1_700_000_000.5),
        ("2023-11-14T22:13:20Z", 1_700_000_000.0),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000.0),
        ("2023-11-14T22:13:20", 1_700_000_000.0),
        ("2023-11-14", datetime(2023, 11, 14, tzinfo=UTC).timestamp()),
    ],
)
def test_a_time_is_iso_8601_or_seconds(text: str | None, seconds: float | None) -> None:
    assert moment(text, "since") == seconds


@pytest.mark.parametrize(
    "text", ["yesterday", "-1", "1.2.3", "99999999999999", "1" * 400, "1969-12-31T23:59:59Z"]
)
def test_what_is_no_time_is_refused_by_its_field(text: str) -> None:
    with pytest.raises(Refused) as refused:
        moment(text, "since")
    assert (refused.value.code, refused.value.errors[0].field) == ("invalid_request", "since")


def test_a_page_tells_where_the_next_one_goes_on_and_the_last_one_nothing() -> None:
    assert first_page(["a", "b", "c"], 2, str) == (["a", "b"], "b")
    assert first_page(["a", "b"], 2, str) == (["a", "b"], None)
    assert first_page([], 2, str) == ([], None)


@pytest.mark.anyio
@pytest.mark.parametrize("seconds", [0.5, 24 * 3600 + 1])
async def test_events_are_recorded_for_a_second_to_a_day(house: House, seconds: float) -> None:
    webhook = await house.webhook()
    with pytest.raises(Refused) as refused:
        await samples.arm(house.gateway, OWNER, webhook.id, seconds)
    assert (refused.value.code, refused.value.errors[0].field) == ("invalid_request", "seconds")
    for allowed in (1, 24 * 3600):
        assert (await samples.arm(house.gateway, OWNER, webhook.id, allowed)).webhooks == 1
