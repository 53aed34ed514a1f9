"""The rules of the alarms: which counts open an incident, and which close it."""

import pytest

from postern.core.watch.alarms import (
    ALARMS,
    AlarmKind,
    Incident,
    has_recovered,
    incident_start,
    is_bad,
    reasons_to_tell,
)


@pytest.mark.parametrize(
    ("kind", "counted", "opens"),
    [
        ("runs_failed", {"accepted": 3, "end:failed": 3}, True),
        ("runs_failed", {"accepted": 90, "end:failed": 9, "end:completed": 10}, False),
        ("runs_failed", {"end:failed": 10, "end:completed": 10}, True),
        ("not_started", {"accepted": 3, "start:refused": 3}, True),
        ("not_started", {"accepted": 10, "start:refused": 4}, False),
        ("not_started", {"accepted": 10, "start:refused": 5, "end:failed": 5}, True),
        ("answers", {"answer:502": 3}, True),
        ("answers", {"answer:503": 9}, False),  # the database takes no calls: that is the gateway's own incident
        ("rejected", {"malformed_json": 5, "accepted": 5}, True),
        ("rejected", {"malformed_json": 4, "accepted": 4}, False),
        ("silence", {"malformed_json": 9}, False),
    ],
)  # fmt: skip
def test_an_incident_opens_where_half_of_the_latest_went_wrong_or_three_without_a_good_one(
    kind: AlarmKind, counted: dict[str, int], opens: bool
) -> None:
    assert (incident_start(kind, {100: counted}, 50) is not None) == opens


def test_few_bad_calls_close_it_only_after_its_first_hour() -> None:
    minutes = {100: {"malformed_json": 1, "accepted": 99}}
    assert not has_recovered("rejected", minutes, 50, 101, long=False)
    assert has_recovered("rejected", minutes, 50, 101, long=True)
    assert has_recovered("rejected", minutes | {101: {"accepted": 1}}, 50, 115, long=False)
    assert not has_recovered("rejected", {}, 50, 101, long=True)


def test_a_few_calls_do_not_make_a_reason_known() -> None:
    one = Incident(
        "inc_1", "wh_1", "rejected", 0.0, 0.0, 0.0, reasons={"malformed_json": 2, "origin_not_allowed": 3}
    )
    assert reasons_to_tell(one) == ("origin_not_allowed",)
    own = Incident("inc_2", "", "gateway", 0.0, 0.0, 0.0, reasons={"disk": 1})
    assert reasons_to_tell(own) == ("disk",)


def test_a_filtered_call_is_a_good_one_and_opens_nothing() -> None:
    filtered = {minute: {"filtered": 5} for minute in range(3)}
    assert not any(is_bad(kind, "filtered") for kind in ALARMS)
    assert incident_start("rejected", {**filtered, 3: {"credential_mismatch": 3}}, 50) is None
    assert has_recovered("rejected", filtered, 50, 3, long=False)
