"""How a start is tried again, and how runs end together."""

import pytest

from postern.core.deliveries.delivery import (
    FIRST_WAIT,
    LONGEST_ERROR,
    LONGEST_WAIT,
    End,
    EngineUnavailable,
    Trigger,
    delivery_key,
    end_of_runs,
    wait_before_retry,
)


@pytest.mark.parametrize(
    ("attempts", "longest"),
    [(1, FIRST_WAIT), (2, 2.0), (5, 16.0), (12, 2048.0), (13, LONGEST_WAIT), (100_000, LONGEST_WAIT)],
)
def test_each_wait_is_twice_the_one_before_and_at_most_an_hour(attempts: int, longest: float) -> None:
    waits = [wait_before_retry(attempts) for _ in range(300)]
    assert longest / 2 <= min(waits) < longest * 0.6
    assert longest * 0.9 < max(waits) <= longest


def test_an_engine_that_asks_for_time_has_it_up_to_an_hour() -> None:
    assert wait_before_retry(1, 90.0) == 90.0
    assert EngineUnavailable("busy", 10 * LONGEST_WAIT).retry_after == LONGEST_WAIT


def test_runs_end_together_when_the_last_is_over_and_one_that_failed_makes_it_a_failure() -> None:
    good, other = ("completed", 3.0, ""), ("completed", 5.0, "")
    assert end_of_runs([other, good]) == End("completed", 5.0)
    assert end_of_runs(iter([good, ("failed", 4.0, "no")])) == End("failed", 4.0, "no")
    assert end_of_runs([("failed", 4.0, ""), other]) == End("failed", 5.0, "no reason was given")
    three = [("failed", 1.0, "first"), good, ("failed", 2.0, "second"), ("failed", 2.0, "third")]
    assert end_of_runs(three) == End("failed", 3.0, "first (and 2 more failed)")
    long = end_of_runs([("failed", 1.0, "x" * 3000), ("failed", 1.0, "y")]).error
    assert len(long) == LONGEST_ERROR and long.endswith("xx (and 1 more failed)")
    assert end_of_runs([good, ("running", None, "")]) is None
    assert end_of_runs([]) is None


def test_a_trigger_has_the_six_variables_of_the_specification() -> None:
    trigger = Trigger(delivery_key("inv_1", 2), "wh_1", "inv_1", {"fieldTwo": "b"}, b"{}")
    assert trigger.key == "inv_1.2"
    assert trigger.variables == {
        "webhookId": "wh_1",
        "fieldOne": "",
        "fieldTwo": "b",
        "fieldThree": "",
        "fieldFour": "",
        "invocationId": "inv_1",
    }
