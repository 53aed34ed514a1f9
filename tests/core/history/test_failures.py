"""Errors that are the same but for what differs from call to call."""

import pytest

from postern.core.history.failures import alike, groups_of


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("ERP said 503", "ERP said 503"),
        ("no order 1042 in the shop", "no order … in the shop"),
        ("timeout after 10.25 s", "timeout after … s"),
        ("id 7f3c-9a1b, job_17: v2 is gone", "id …, …: v2 is gone"),
        ("", ""),
    ],
)
def test_numbers_and_ids_are_left_out_and_statuses_stay(error: str, said: str) -> None:
    assert alike(error) == said


def test_calls_that_failed_alike_are_one_group_the_largest_first() -> None:
    failed = [("a", "ERP said 503", 9.0), ("b", "no order 1042", 8.0), ("a", "no order 1041", 7.0)]
    failed += [("a", "once", 6.0), ("c", "ERP said 503", 5.0), ("a", "ERP said 503", 4.0)]
    groups = groups_of(failed)
    assert [(one.error, one.count, one.since, list(one.webhook_ids)) for one in groups] == [
        ("ERP said 503", 3, 4.0, ["a", "c"]),
        ("no order …", 2, 7.0, ["b", "a"]),
    ]
