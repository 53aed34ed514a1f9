"""What became of calls, kept until it is written down."""

import pytest

from postern.core.deliveries.delivery import End
from postern.core.history.invocation import AnswerHeard
from postern.usecases.runtime import endings as module
from postern.usecases.runtime.endings import Endings

EARLIER, LATER = End("failed", 1.0, "the first to say so"), End("completed", 2.0)


def answer(name: str) -> AnswerHeard:
    return AnswerHeard(f"inv_{name}", 200, 1.0, True)


def test_what_could_not_be_written_down_stands_before_what_came_since() -> None:
    endings = Endings()
    endings.answered(answer("1"))
    endings.count("wh_1", 200, 0.003)
    taken = endings.take()
    endings.answered(answer("2"))
    endings.count("wh_1", 200, 0.003)
    endings.count("wh_1", 503, 0.003)
    endings.put_back(taken)
    together = endings.take()
    assert together.answered == [answer("1"), answer("2")]
    assert sorted(together.counted.values()) == [1, 2]


@pytest.mark.parametrize("more", [0, 1])
def test_while_the_store_is_away_so_many_are_kept_of_answers_the_newest(
    more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_KEYS", 2)
    endings = Endings()
    for name in ("1", "2")[: 1 + more]:
        endings.answered(answer(name))
        endings.ended(f"inv_{name}.1", LATER)
    taken = endings.take()
    endings.answered(answer("3"))
    endings.ended("inv_3.1", LATER)
    endings.put_back(taken)
    together = endings.take()
    assert together.answered == [answer("2" if more else "1"), answer("3")]
    assert len(together.ends) == 2
