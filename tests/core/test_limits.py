"""Token buckets: exact, and bounded however many strangers come."""

from postern.core.limits import Buckets


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


def test_the_number_of_buckets_is_bounded_and_the_longest_unused_goes() -> None:
    buckets = Buckets(most=100)
    buckets.take("real", 1, 1, 0.0)
    for stranger in range(1000):
        buckets.take(stranger, 1, 1, 0.0)
        buckets.wait("real", 1, 1, 0.0)
    assert len(buckets) == 100
