"""What an answer about a call says of its runs."""

from typing import Any

import msgspec
from msgspec.structs import replace

from postern.core.answer import WorkflowResponse
from postern.core.history.invocation import AnswerHeard, Delivery
from postern.core.history.marks import Marks
from postern.usecases.history.views import calls as views
from postern.usecases.history.views.requests import request_of
from postern.usecases.summary import summary_of
from support.house import House


async def test_what_became_of_the_runs_is_reported_only_where_there_are_some(house: House) -> None:
    call = await house.recorded(await house.webhook())
    await house.deliver()
    story = await house.story(call)

    def viewed(**changes: object) -> object:
        newest: Delivery = msgspec.structs.replace(story.deliveries[-1], **changes)
        return summary_of(replace(story, deliveries=[newest])).run_state

    assert viewed(state="started", runs=1, ask_at=5.0) == "running"
    assert viewed(state="started", runs=1, ask_at=None) == "unknown"
    assert viewed(state="lost", runs=1, ask_at=5.0) == "unknown"
    assert viewed(state="started", runs=0) is None
    assert viewed(state="failed", ended_at=7.0) == "failed"
    assert viewed(state="failed", ended_at=None) is None  # it could not be started
    assert viewed(state="completed", ended_at=7.0) == "completed"
    assert viewed(state="queued") is None


async def test_what_the_caller_heard_is_reported_as_far_as_it_is_known(house: House) -> None:
    call = await house.recorded(await house.webhook())
    story = await house.story(call)
    received, delivery = story.invocation.received_at, story.deliveries[0]

    def viewed(answered: AnswerHeard | None, status: int, **first: Any) -> tuple[int | None, float]:
        """Status, and milliseconds."""
        invocation = msgspec.structs.replace(story.invocation, status=status, duration_us=2_000)
        deliveries = [msgspec.structs.replace(delivery, **first)] if first else []
        shown = summary_of(replace(story, invocation=invocation, answered=answered, deliveries=deliveries))
        return shown.http_status, shown.duration_ms

    made = WorkflowResponse(201, (), b"")
    later = received + 3.0
    waits = {"deadline": received + 20}
    assert viewed(None, 200, runs=1) == (200, 2.0)
    assert viewed(None, 0) == (None, 2.0)
    assert viewed(None, 0, **waits, answer_code="") == (None, 2.0)
    for code, heard in (("completed", 200), ("workflow_failed", 502), ("response_timeout", 504)):
        assert viewed(None, 0, **waits, answer_code=code, responded_at=later) == (heard, 2.0)
    answer = {"answer_code": "accepted", "response": made, "responded_at": later}
    assert viewed(None, 0, **waits, **answer) == (201, 3000.0)
    noted = AnswerHeard(call, 504, received + 1.5, True)
    assert viewed(noted, 0, **waits, **answer) == (504, 1500.0), "what was noted is what was heard"
    assert viewed(None, 0, **waits, **answer, emission=2) == (None, 2.0), "a replay is heard by nobody"


async def test_a_delivery_tells_its_answer_its_next_try_and_who_had_it(house: House) -> None:
    story = await house.story(await house.recorded(await house.webhook()))

    def viewed(**changes: Any) -> views.Delivery:
        return views.delivery_of(msgspec.structs.replace(story.deliveries[0], **changes))

    queued = viewed(state="queued", next_at=5.0)
    assert (queued.next_attempt_at, queued.answer, queued.late, queued.response) == (5.0, None, False, None)
    assert viewed(state="started", next_at=5.0).next_attempt_at is None
    assert viewed(deadline=9.0).answer == "waiting"
    assert viewed(deadline=9.0, answer_code="completed").answer == "completed"
    assert viewed(responded_at=5.0, answer_code="accepted").late is False
    assert viewed(responded_at=5.0, answer_code="response_timeout").late is True
    assert viewed(state="queued", released_at=5.0).released_at == 5.0
    assert viewed(state="dropped", released_at=5.0).released_at is None
    assert [viewed(state=state, runs=0).nobody_listens for state in ("queued", "started")] == [False, True]
    answer = viewed(response=WorkflowResponse(201, (("x-a", "1"),), b"\xff")).response
    assert answer is not None
    assert (answer.status, answer.headers, answer.body) == (201, [("x-a", "1")], "\ufffd")
    log = [
        {"at": 1.0, "outcome": "started", "runs": 1, "workflows": ["old"]},
        {"at": 3.0, "outcome": "started", "runs": 1, "workflows": ["new"]},
        {"at": 4.0, "outcome": "unavailable", "detail": "away"},
    ]
    shown = viewed(log=log, state="started", runs=1)
    assert [one.at for one in shown.log] == [1.0, 3.0, 4.0]
    newest = msgspec.structs.replace(story.deliveries[0], log=log)
    assert summary_of(replace(story, deliveries=[newest])).workflows == ["new"]


async def test_of_a_body_that_was_cut_it_is_reported(house: House) -> None:
    story = await house.story(await house.recorded(await house.webhook(), b'{"n":1}'))
    for body, size, text, cut in (
        (b"{}", 2, "e30=", False),
        (b"{", 2, "ew==", True),
        (None, 2, None, False),
        (None, 0, "", False),
    ):
        invocation = msgspec.structs.replace(story.invocation, body=body, body_size=size)
        asked = request_of(invocation, story.deliveries, "")
        assert (asked.body_base64, asked.body_truncated) == (text, cut)
        shown = views.invocation_of(replace(story, invocation=invocation), None, [], Marks([], []))
        assert shown.body_truncated is cut
    assert request_of(story.invocation, [], "").fields == {}
