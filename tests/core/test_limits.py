"""Token buckets: exact, and bounded however many strangers come."""

from postern.core.limits import Buckets, Limits, Tries


def test_a_bucket_gives_its_burst_and_then_its_rate() -> None:
    buckets = Buckets()
    assert [buckets.take("a", 10, 3, 100.0) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert 0.09 < buckets.take("a", 10, 3, 100.0) <= 0.1
    assert buckets.take("a", 10, 3, 100.1) == 0.0
    assert buckets.take("a", 10, 3, 100.1) > 0


def test_a_refused_call_takes_nothing() -> None:
    buckets = Buckets()
    buckets.take("a", 1, 1, 0.0)
    for _ in range(100):
        assert buckets.take("a", 1, 1, 0.5) > 0
    assert buckets.take("a", 1, 1, 1.0) == 0.0


def test_keys_do_not_share_and_idle_buckets_fill_up_again_to_the_burst_only() -> None:
    buckets = Buckets()
    assert buckets.take("a", 1, 2, 0.0) == buckets.take("b", 1, 2, 0.0) == 0.0
    assert [buckets.take("a", 1, 2, 1000.0) > 0 for _ in range(3)] == [False, False, True]


def test_a_flood_of_ever_new_keys_is_bounded_and_makes_nobody_at_the_limit_forgotten() -> None:
    buckets = Buckets(most=100)
    for _ in range(20):
        assert buckets.take("offender", 20 / 60, 20, 0.0) == 0.0
    for stranger in range(1000):
        buckets.take(stranger, 20 / 60, 20, 0.0)
    assert len(buckets) <= 100
    assert buckets.take("offender", 20 / 60, 20, 0.0) > 0


def test_what_is_full_again_is_forgotten_first() -> None:
    buckets = Buckets(most=100)
    for key in range(100):
        buckets.take(("old", key), 1, 20, 0.0)
    buckets.take("new", 1, 20, 1.0)
    assert len(buckets) == 1


def test_what_is_given_back_was_never_taken() -> None:
    buckets = Buckets()
    for _ in range(10):
        assert buckets.take("a", 1, 1, 0.0) == 0.0
        buckets.give_back("a", 1)
    assert (buckets.owed("a", 0.0), buckets.take("a", 1, 1, 0.0)) == (0.0, 0.0)


def test_tries_are_reserved_all_or_none() -> None:
    limits = Limits(lambda: 0.0)
    one, two = Tries("one", 2), Tries("two", 1)
    assert limits.reserve(one, two) == 0.0
    assert limits.reserve(one, two) > 0
    limits.give_back(two)
    assert limits.reserve(one, two) == 0.0
    assert limits.reserve(one) > 0
