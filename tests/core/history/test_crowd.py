"""When calls are counted instead of told."""

from postern.core.history.crowd import READABLE, SHORTEST, Crowd

CALL = ("wh_1", "accepted")


def test_what_anybody_can_read_is_reported() -> None:
    crowd = Crowd()
    for second in range(5):
        assert not crowd.arrive([CALL] * READABLE, float(second * 1.01))
    assert not crowd.is_over(9.0)


def test_more_in_a_second_is_counted_from_then_on_by_webhook_and_outcome() -> None:
    crowd = Crowd()
    assert not crowd.arrive([CALL] * READABLE, 10.0)
    assert crowd.arrive([CALL, ("wh_2", "rejected")], 10.5)
    assert crowd.arrive([CALL], 10.6)
    assert crowd.counts == {CALL: 2, ("wh_2", "rejected"): 1}
    assert crowd.rate(10.9) == READABLE + 3
    assert crowd.rate(11.1) == 3


def test_it_is_over_once_it_has_become_readable_and_not_before_a_while() -> None:
    crowd = Crowd()
    crowd.arrive([CALL] * (READABLE + 1), 10.0)
    assert not crowd.is_over(10.0 + SHORTEST - 0.1)
    crowd.arrive([CALL] * (READABLE + 1), 11.5)
    assert not crowd.is_over(10.0 + SHORTEST)
    assert crowd.is_over(12.6)
    crowd.end()
    assert not crowd.arrive([CALL], 12.7)
    assert crowd.arrive([CALL] * (READABLE + 1), 12.8)
    assert crowd.counts == {CALL: READABLE + 1}, "counted from the new beginning"
