"""What the counts of a bucket of time tell."""

import pytest

from postern.core.history.volume import LATENCY_BOUNDS_MS, Counts, Volume, latency_bucket

NONE = [0] * len(LATENCY_BOUNDS_MS)


def counts(within: list[int], slower: int = 0) -> Counts:
    made = Counts()
    made.add("accepted", sum(within) + slower, within + NONE[len(within) :])
    return made


@pytest.mark.parametrize(
    ("within", "slower", "percent", "milliseconds"),
    [
        ([4], 0, 50, 1),
        ([2, 2], 0, 50, 1),
        ([2, 2], 0, 75, 2),
        ([19, 1], 0, 95, 1),
        ([19, 2], 0, 95, 2),
        ([0, 0, 4, 0], 0, 99, 5),
        ([1], 9, 10, 1),
        ([1], 9, 11, None),
        ([], 0, 50, None),
    ],
)
def test_a_percentile_says_no_more_than_the_bound_that_was_counted(
    within: list[int], slower: int, percent: int, milliseconds: int | None
) -> None:
    assert counts(within, slower).percentile(percent) == milliseconds


def test_what_is_added_is_summed_up() -> None:
    made = Volume()
    made.add("accepted", 3, [1, 2, *NONE[2:]])
    made.add("duplicate", 3, [3, *NONE[1:]])
    made.add("duplicate", 1, NONE)
    assert made.calls.by_name == {"accepted": 3, "duplicate": 4}
    assert (made.calls.total, made.calls.within[:3]) == (7, [4, 2, 0])
    assert made.outcomes() == {"accepted": 3, "filtered": 0, "duplicate": 4, "handshake": 0, "rejected": 0}
    twice = Volume()
    for _ in range(2):
        twice.add_all(made)
    assert (twice.calls.total, twice.calls.by_name["duplicate"], twice.calls.within[0]) == (14, 8, 8)


def test_a_bound_is_part_of_what_is_below_it() -> None:
    buckets = [latency_bucket(one) for one in (0.0, 0.001, 0.0011, 30.0, 31.0)]
    assert buckets == [0, 0, 1, len(NONE) - 1, len(NONE)]
