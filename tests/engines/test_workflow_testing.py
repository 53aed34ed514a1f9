"""`postern.workflows.testing`: what a test says of a workflow is what the engine would have done."""

import asyncio
import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from postern.workflows import StepFailed, respond, sleep, step, workflow
from postern.workflows.testing import REAL, Answer, Clock, in_turn, load_event, make_event, run

WEEK = 7 * 24 * 3600.0


@step(retries=2, wait=3.0)
def charge(number: str, *, amount: int) -> dict[str, Any]:
    raise AssertionError("the real one reaches out")


@step
def mail(to: str, text: str) -> None:
    raise AssertionError("the real one reaches out")


@workflow
def paid(event: Any) -> str:
    charged = charge(event["fieldOne"], amount=5)
    respond({"charged": charged["id"]}, status=201, headers={"X-Shop": "1"})
    sleep(WEEK)
    mail(event["payload"]["email"], "How do you like it?")
    return "done"


EVENT = make_event({"email": "ada@example.com"}, fieldOne="1001")


def test_a_run_tells_its_answer_its_steps_in_order_and_what_they_were_called_with() -> None:
    went = run(paid, EVENT, steps={"charge": lambda number, *, amount: {"id": f"ch_{number}"}, "mail": None})
    assert went.answer == Answer(201, {"X-Shop": "1"}, {"charged": "ch_1001"})
    assert went.names == ["charge", "mail"]
    charged, mailed = went.steps
    assert (charged.args, charged.kwargs, charged.result) == (("1001",), {"amount": 5}, {"id": "ch_1001"})
    assert mailed.args == ("ada@example.com", "How do you like it?")
    assert (went.result, went.error) == ("done", None)
    assert went.calls("mail") == [mailed]


def test_no_time_passes_but_the_clocks() -> None:
    clock = Clock(datetime(2026, 3, 1, tzinfo=UTC))
    fakes = {"charge": {"id": "1"}, "mail": lambda *_: clock.now.isoformat()}
    went = run(paid, EVENT, steps=fakes, clock=clock)
    assert went.sleeps == [WEEK]
    assert (clock.passed, clock.now) == (WEEK, datetime(2026, 3, 8, tzinfo=UTC))
    assert went.calls("mail")[0].result == "2026-03-08T00:00:00+00:00"


def test_a_step_is_tried_again_as_in_the_engine_and_its_pauses_pass() -> None:
    charging = in_turn(TimeoutError("no answer"), OSError, {"id": "3"})
    went = run(paid, EVENT, steps={"charge": charging, "mail": None})
    assert (went.steps[0].tries, went.steps[0].result) == (3, {"id": "3"})
    assert went.clock.passed == 3.0 + 6.0 + WEEK


def test_a_step_that_fails_for_good_fails_the_workflow_with_the_engines_words() -> None:
    went = run(paid, EVENT, steps={"charge": TimeoutError("no answer")}, raises=StepFailed)
    assert str(went.error) == "charge failed: TimeoutError: no answer"
    assert (went.steps[0].tries, went.steps[0].error) == (3, "charge failed: TimeoutError: no answer")
    assert (went.answer, went.names) == (None, ["charge"])


def test_what_a_workflow_raises_is_raised_unless_it_is_expected() -> None:
    @workflow
    def lost(event: Any) -> None:
        event["nothing"]

    with pytest.raises(KeyError):
        run(lost)
    assert isinstance(run(lost, raises=KeyError).error, KeyError)
    with pytest.raises(KeyError):
        run(lost, raises=ValueError)
    with pytest.raises(AssertionError, match="was to fail with KeyError"):
        run(paid, EVENT, steps={"charge": {"id": "1"}, "mail": None}, raises=KeyError)


def test_a_step_that_nobody_speaks_of_fails_the_test_whatever_the_workflow_catches() -> None:
    @workflow
    def careful(event: Any) -> None:
        try:
            charge("1", amount=1)
        except Exception:
            respond("caught")

    with pytest.raises(AssertionError, match="came to the step charge"):
        run(careful, steps={"chrage": {"id": "1"}})
    with pytest.raises(AssertionError, match="came to the step mail"):
        run(paid, EVENT, steps={"charge": {"id": "1"}})


def test_a_steps_own_function_runs_where_it_is_asked_for() -> None:
    @step
    def double(number: int) -> int:
        return number * 2

    @workflow
    def doubles(event: Any) -> None:
        respond(double(21))

    for steps in (None, {"double": REAL}):
        assert run(doubles, steps=steps).answer == Answer(200, {}, 42)


def test_a_sleeping_run_is_taken_up_from_the_top_as_in_the_engine() -> None:
    tops: list[dict[str, Any]] = []

    @workflow
    def naps(event: Any) -> None:
        tops.append(dict(event))
        event["fieldOne"] = "changed"
        mail("a", "b")
        sleep(60)

    went = run(naps, EVENT, steps={"mail": None})
    assert tops == [EVENT, EVENT], "the event is as it came, each time"
    assert went.names == ["mail"], "a step is done once"


def test_a_workflow_whose_steps_change_by_chance_fails_as_in_the_engine() -> None:
    first = step(name="first")(lambda: None)
    second = step(name="second")(lambda: None)
    turns = iter([first, second])

    @workflow
    def chance(event: Any) -> None:
        next(turns)()
        sleep(60)

    with pytest.raises(BaseException, match="the workflow has changed since this run began"):
        run(chance)
    assert random  # such a workflow usually asks this


def test_async_workflows_run_too_from_an_async_test_as_well() -> None:
    @step(retries=1)
    async def fetch(number: str) -> str:
        raise AssertionError("the real one reaches out")

    @workflow
    async def prices(event: Any) -> None:
        respond([await fetch("1"), await fetch("2")])
        sleep(3600)

    async def slowly(number: str) -> str:
        await asyncio.sleep(0)
        return f"{number} EUR"

    for stand_in in (slowly, lambda number: f"{number} EUR"):
        went = run(prices, steps={"fetch": stand_in})
        assert went.answer is not None and went.answer.body == ["1 EUR", "2 EUR"]
        assert went.sleeps == [3600]

    async def tested() -> None:
        assert run(prices, steps={"fetch": in_turn(OSError, "1", "2")}).calls("fetch")[0].tries == 2

    asyncio.run(tested())


def test_two_steps_at_once_fail_as_in_the_engine() -> None:
    @step
    async def fetch() -> None:
        await asyncio.sleep(0)

    @workflow
    async def both(event: Any) -> None:
        await asyncio.gather(fetch(), fetch())

    with pytest.raises(RuntimeError, match="a run takes its steps one after the other"):
        run(both)


def test_only_the_first_answer_is_taken_and_none_where_nobody_waits() -> None:
    taken: list[bool] = []

    @workflow
    def twice(event: Any) -> None:
        taken.extend([respond("one"), respond("two")])

    assert [one.body for one in run(twice).answers] == ["one", "two"]
    run(twice, somebody_waits=False)
    assert taken == [True, False, False, False]


def test_what_a_stand_in_returns_is_what_json_makes_of_it() -> None:
    went = run(paid, EVENT, steps={"charge": {"id": (1, 2)}, "mail": None})
    assert went.answer is not None and went.answer.body == {"charged": [1, 2]}
    pair = step(name="pair")(lambda: (1, 2))
    compared = run(workflow(name="compare")(lambda event: respond(pair() == [1, 2])))
    assert compared.answer == Answer(200, {}, True), "so that a run that is taken up again sees the same"
    with pytest.raises(StepFailed, match="what charge returned is not JSON"):
        run(paid, EVENT, steps={"charge": {"id": object()}})


def test_an_event_is_read_from_a_file_or_made(tmp_path: Path) -> None:
    file = tmp_path / "paid.json"
    file.write_text(json.dumps({"posternEvent": 1, "name": "paid", "event": EVENT}))
    assert load_event(file) == EVENT
    assert load_event(str(file))["payload"] == {"email": "ada@example.com"}
    assert make_event()["webhookId"] == "wh_test"
    with pytest.raises(TypeError, match="an event has no fieldFive"):
        make_event(fieldFive="x")
    for text, wrong in (
        ("{", "is not JSON"),
        ("[]", "is no event that `postern history save` wrote"),
        ('{"event": {}}', "is no event"),
        ('{"posternEvent": 2, "event": {}}', "another version"),
    ):
        file.write_text(text)
        with pytest.raises(ValueError, match=wrong):
            load_event(file)
    with pytest.raises(FileNotFoundError):
        load_event(tmp_path / "nowhere.json")
