"""What became of calls, kept until it is written down."""

import pytest

from postern.core.deliveries.delivery import End
from postern.core.history.invocation import AnswerHeard
from postern.core.history.volume import answer_name, latency_bucket
from postern.usecases.runtime import endings as module
from postern.usecases.runtime.endings import Endings

EARLIER, LATER = End("failed", 1.0, "the first to say so"), End("completed", 2.0)


def answer(name: str) -> AnswerHeard:
    return AnswerHeard(f"inv_{name}", 200, 1.0, True)


def test_whatever_was_noticed_is_news_until_it_is_taken() -> None:
    endings = Endings()
    assert not endings.take()
    endings.count("wh_1", 200, 0.003)
    assert not endings.news.is_set(), "a count waits for the next round"
    assert endings.take().counted == {("wh_1", answer_name(200), latency_bucket(0.003)): 1}
    endings.answered(answer("1"))
    assert endings.news.is_set()
    assert endings.take().answered == [answer("1")]
    assert not endings.news.is_set()
    endings.ended("inv_1.1", LATER)
    assert endings.news.is_set()
    taken = endings.take()
    assert taken and taken.ends == {"inv_1.1": LATER}
    assert not endings.take()


def test_who_first_says_how_runs_ended_is_right() -> None:
    endings = Endings()
    endings.ended("inv_1.1", EARLIER)
    endings.ended("inv_1.1", LATER)
    taken = endings.take()
    assert taken.ends == {"inv_1.1": EARLIER}
    endings.ended("inv_1.1", LATER)
    endings.early("inv_1.1", EARLIER)
    taken = endings.take()
    assert taken.ends == {"inv_1.1": EARLIER}, (
        "it was said before, and only its start had not been written down"
    )
    endings.ended("inv_1.1", LATER)
    endings.ended("inv_2.1", LATER)
    endings.put_back(taken)
    assert endings.take().ends == {"inv_1.1": EARLIER, "inv_2.1": LATER}


def test_a_report_stands_before_what_is_noticed_while_it_is_written_down() -> None:
    endings = Endings()
    with endings.reported("inv_1.1", EARLIER) as end:
        assert end == EARLIER
        endings.ended("inv_1.1", LATER)
        assert endings.take().ends == {"inv_1.1": EARLIER}


@pytest.mark.parametrize("kept", [True, False])
def test_what_was_noticed_stands_before_a_report_until_it_is_written_down(kept: bool) -> None:
    endings = Endings()

    def written_for(report: End) -> End:
        with endings.reported("inv_1.1", report) as end:
            return end

    endings.ended("inv_1.1", EARLIER)
    assert written_for(LATER) == EARLIER
    taken = endings.take()
    assert written_for(LATER) == EARLIER
    if not kept:
        endings.put_back(taken)
    endings.over(taken)
    assert written_for(LATER) == (LATER if kept else EARLIER)


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
    monkeypatch.setattr(module, "MOST", 2)
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
