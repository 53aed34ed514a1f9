"""The choice of connections to close when there are too many: those that keep others waiting, and never one that is
being answered."""

import random

from postern.surfaces.http.crowding import Progress, Standing, give_up

NOW = 1000.0


def test_who_rests_goes_before_whose_head_does_not_come_before_whose_body_does_not() -> None:
    known = [
        Standing(Progress.BODY, NOW - 50, "a"),
        Standing(Progress.ANSWERING, NOW - 900, "b"),
        Standing(Progress.HEAD, NOW - 40, "c"),
        Standing(Progress.IDLE, NOW - 30, "d"),
        Standing(Progress.UNREAD, NOW - 30, "e"),
        Standing(Progress.READING, NOW - 90, "f"),
    ]
    assert give_up(known, 6, NOW) == [3, 4, 2, 0, 5]
    assert give_up(known, 1, NOW) == [3]


def test_among_equals_the_address_that_holds_the_most_goes_first_and_then_the_longest_there() -> None:
    known = [
        Standing(Progress.IDLE, NOW - 90, "few"),
        Standing(Progress.IDLE, NOW - 20, "many"),
        Standing(Progress.IDLE, NOW - 30, "many"),
        Standing(Progress.IDLE, NOW - 10, "many"),
    ]
    assert give_up(known, 4, NOW) == [2, 1, 3, 0]


def test_what_an_address_holds_beyond_its_share_goes_before_what_others_hold() -> None:
    crowd = [Standing(Progress.READING, NOW - 5, "stranger") for _ in range(3)]
    rest = [Standing(Progress.IDLE, NOW - 50, "sender"), Standing(Progress.HEAD, NOW - 50, "sender")]
    assert give_up([*rest, *crowd], 2, NOW) == [2, 3]
    assert give_up([*rest, *crowd], 3, NOW) == [0, 1, 2], "this many are its share"


def test_of_newcomers_only_those_of_one_address_go_first() -> None:
    crowd = [Standing(Progress.HEAD, NOW - 0.5, "stranger") for _ in range(20)]
    assert 0 not in give_up([Standing(Progress.IDLE, NOW, "sender"), *crowd], 20, NOW)


def test_no_answer_is_ever_taken_away() -> None:
    dice = random.Random(20261121)
    for _ in range(300):
        known = [
            Standing(dice.choice(list(Progress)), NOW - dice.random() * 3, dice.choice("abc"))
            for _ in range(30)
        ]
        closed = give_up(known, 25, NOW)
        may_go = sum(one.progress != Progress.ANSWERING for one in known)
        assert len(closed) == len(set(closed)) == min(25, may_go)
        assert all(known[place].progress != Progress.ANSWERING for place in closed)
