"""The room for bodies on their way: bounded, and nobody can take so much that nothing is left for others."""

from hypothesis import given
from hypothesis import strategies as st

from postern.core.calls.arriving import ArrivingBytes, Body

MIB = 1024 * 1024


class Room(ArrivingBytes):
    """Those who are turned away are noted down."""

    def __init__(self, most: int = 256 * MIB) -> None:
        super().__init__(most)
        self.turned_away: list[Body] = []

    def body(self, webhook_id: str, caller: str) -> Body:
        def turn_away() -> None:
            self.turned_away.append(body)
            self.give_back(body)

        body = Body(webhook_id, caller, turn_away)
        return body

    def fill(self, webhook_id: str, caller: str, most: int, piece: int = MIB // 16) -> Body:
        """A body that takes as much as there is to be had."""
        body = self.body(webhook_id, caller)
        while body.size < most and self.take(body, min(piece, most - body.size)):
            pass
        return body


def test_one_caller_leaves_the_most_of_it_to_the_others_on_the_same_webhook() -> None:
    room = Room()
    bodies = [room.fill("wh_1", "stranger", MIB) for _ in range(40)]
    assert 26 * MIB < room.held <= 256 * MIB // 9
    assert set(room.turned_away) == set(bodies[28:]), "who asks beyond its share, and nobody else"
    assert room.fill("wh_1", "sender", 25 * MIB).size == 25 * MIB


def test_one_webhook_leaves_half_of_it_to_the_other_webhooks() -> None:
    room = Room()
    for number in range(1000):
        room.fill("wh_1", f"stranger {number}", MIB)
    assert 120 * MIB < room.held <= 128 * MIB
    before = len(room.turned_away)
    assert room.fill("wh_2", "sender", 12 * MIB).size == 12 * MIB
    assert len(room.turned_away) == before, "nobody gives way to another webhook"


def test_in_a_full_webhook_the_callers_who_have_the_most_give_way_with_their_oldest() -> None:
    room = Room()
    strangers = [room.fill("wh_1", f"stranger {number % 100}", MIB - 1) for number in range(300)]
    sender = room.fill("wh_1", "sender", MIB)
    assert sender.size == MIB
    more = [room.fill("wh_1", f"stranger {number % 100}", MIB - 1) for number in range(300)]
    assert sender not in room.turned_away, "nobody has less"
    left = [one.caller for one in (*strangers, *more) if one not in room.turned_away]
    assert {left.count(caller) for caller in left} <= {1, 2}
    assert strangers[0] in room.turned_away
    assert all(one.size == MIB - 1 for one in (*strangers, *more) if one not in room.turned_away)


@given(st.lists(st.tuples(st.integers(1, 60), st.sampled_from("abc"), st.sampled_from("xyz")), max_size=200))
def test_what_is_taken_is_bounded_and_all_of_it_comes_back(wanted: list[tuple[int, str, str]]) -> None:
    room = Room(1000)
    taken = [room.fill(webhook_id, caller, size, 20) for size, webhook_id, caller in wanted]
    there = [one for one in taken if one not in room.turned_away]
    assert room.held == sum(one.size for one in there) <= 1000
    for one in there:
        room.give_back(one)
    assert room.held == 0
    assert not room._callers and not room._webhooks and not room._bodies, (
        "whoever has nothing on its way is not remembered"
    )
    assert room.fill("a", "x", 100).size == 100
