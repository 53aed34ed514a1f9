"""Token buckets: exact, and bounded however many strangers come."""

from collections.abc import Callable

from postern.core.limits import (
    COST_OF_RECORDING,
    FAILED_AUTHENTICATIONS_PER_MINUTE,
    MOST_REJECTED_AT_ONCE,
    REJECTED_PER_SECOND,
    Buckets,
    Limits,
    Tries,
)


def test_a_bucket_gives_its_burst_and_then_its_rate() -> None:
    buckets = Buckets()
    assert [buckets.take("a", 10, 3, 100.0) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert 0.09 < buckets.take("a", 10, 3, 100.0) <= 0.1
    assert buckets.take("a", 10, 3, 100.1) == 0.0
    assert buckets.take("a", 10, 3, 100.1) > 0


def test_a_rejected_call_takes_nothing() -> None:
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


def test_who_owes_least_is_forgotten_first_however_long_it_is_known() -> None:
    buckets = Buckets(most=4)
    for key, taken in (("old and busy", 9), ("little", 1), ("more", 2), ("much", 5), ("new", 3)):
        for _ in range(taken):
            buckets.take(key, 1, 20, 0.0)
    assert [buckets.owed(key, 0.0) for key in ("old and busy", "little", "more", "much")] == [9, 0, 0, 5]


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


def waits(ask: Callable[[], float], clock: list[float]) -> float:
    """Takes all there is; how long until there is one more."""
    for _ in range(200):
        if ask():
            break
    else:
        raise AssertionError("there is no limit")
    began = clock[0]
    while ask():
        clock[0] += 0.125
    return clock[0] - began


def test_the_first_rejected_calls_of_an_address_are_recorded_however_many_others_come() -> None:
    clock = [0.0]
    limits = Limits(lambda: clock[0])

    def recorded(address: str, size: int = 0, proven: bool = False) -> bool:
        return limits.records("wh_1", address, size, proven)

    assert all(recorded("a") for _ in range(FAILED_AUTHENTICATIONS_PER_MINUTE)), "they take of nobody's room"
    assert limits.over("wh_1", "a") and not limits.over("wh_1", "b") and not limits.over("wh_2", "a")
    more = MOST_REJECTED_AT_ONCE // COST_OF_RECORDING
    assert [recorded("a") for _ in range(more + 1)] == [True] * more + [False]
    assert all(recorded("b", 25 << 20) for _ in range(FAILED_AUTHENTICATIONS_PER_MINUTE))
    assert not recorded("b") and recorded("b", proven=True), "the sender shares with no stranger"
    clock[0] = 2.99
    assert limits.over("wh_1", "a")
    clock[0] = 3.0
    assert not limits.over("wh_1", "a")
    assert recorded("a") and recorded("a", 3 * REJECTED_PER_SECOND - COST_OF_RECORDING) and not recorded("a")


def test_sixty_handshakes_at_once_and_then_one_a_second_are_answered() -> None:
    clock = [0.0]
    limits = Limits(lambda: clock[0])
    assert [limits.handshake("wh_1") for _ in range(61)] == [0.0] * 60 + [1.0]
    assert limits.handshake("wh_2") == 0.0
    assert limits.call("wh_1", 1.0, 1) == 0.0, "calls have a bucket of their own"
    assert waits(lambda: limits.handshake("wh_1"), clock) == 1.0


def test_tries_come_back_by_their_own_rate() -> None:
    clock = [0.0]
    limits = Limits(lambda: clock[0])
    assert waits(lambda: limits.reserve(Tries("a")), clock) == 3.0
    assert waits(lambda: limits.reserve(Tries("b", 1)), clock) == 60.0
    assert limits.owed(Tries("b", 1)) == 60.0


def test_tries_are_reserved_all_or_none() -> None:
    limits = Limits(lambda: 0.0)
    one, two = Tries("one", 2), Tries("two", 1)
    assert limits.reserve(one, two) == 0.0
    assert limits.reserve(one, two) > 0
    limits.give_back(two)
    assert limits.reserve(one, two) == 0.0
    assert limits.reserve(one) > 0
