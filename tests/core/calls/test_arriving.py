"""The room for bodies on their way: bounded, and nobody can take so much that nothing is left for others."""

from hypothesis import given
from hypothesis import strategies as st

from postern.core.calls.arriving import ArrivingBytes

MIB = 1024 * 1024


def fill(arriving: ArrivingBytes, webhook_id: str, caller: str, piece: int = MIB // 16) -> int:
    """Take as much as there is to be had."""
    taken = 0
    while arriving.take(piece, webhook_id, caller):
        taken += piece
    return taken


def test_one_caller_leaves_the_most_of_it_to_the_others_on_the_same_webhook() -> None:
    arriving = ArrivingBytes(256 * MIB)
    assert 26 * MIB < fill(arriving, "wh_1", "stranger") <= 256 * MIB // 9
    assert arriving.take(25 * MIB, "wh_1", "sender")


def test_one_webhook_leaves_half_of_it_to_the_other_webhooks() -> None:
    arriving = ArrivingBytes(256 * MIB)
    assert sum(fill(arriving, "wh_1", f"stranger {number}") for number in range(1000)) <= 128 * MIB
    assert not arriving.take(MIB, "wh_1", "sender")
    assert arriving.take(12 * MIB, "wh_2", "sender")


@given(st.lists(st.tuples(st.integers(1, 60), st.sampled_from("abc"), st.sampled_from("xyz")), max_size=200))
def test_what_is_taken_is_bounded_and_all_of_it_comes_back(wanted: list[tuple[int, str, str]]) -> None:
    arriving = ArrivingBytes(1000)
    taken = [one for one in wanted if arriving.take(*one)]
    assert arriving.held == sum(size for size, _, _ in taken) <= 1000
    for one in taken:
        arriving.give_back(*one)
    assert arriving.held == 0
    assert not arriving._callers and not arriving._webhooks, (
        "whoever has nothing on its way is not remembered"
    )
    assert arriving.take(100, "a", "x")
