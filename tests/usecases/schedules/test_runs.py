"""One run of a schedule, without a network: what is asked of the source, what its answer comes to, and what is told."""

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from postern.core.fetched import Fetched
from postern.core.history.invocation import StoreUnavailable
from postern.core.problems import FetchTrouble
from postern.usecases import schedules
from postern.usecases.access import audit
from postern.usecases.calls import readmission
from postern.usecases.history import history
from postern.usecases.history.views.calls import Invocation
from postern.usecases.schedules import LEASE, Scheduler
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.views import ScheduleRun, ScheduleState, Webhook
from support.clock import HeldClock
from support.house import OWNER, House
from support.refusals import refused
from support.waiting import PATIENCE, until

URL = "https://api.example.com/orders?key=k"
TOKEN = {"method": "token", "token": "a token of the tests"}


class Answer(Fetched):
    """What the source answers."""

    def __init__(self, body: bytes = b'{"n": 1}', status: int = 200, **headers: str) -> None:
        named = ((name.replace("_", "-").encode(), value.encode()) for name, value in headers.items())
        super().__init__(status, ((b"content-type", b"application/json"), *named), body)


class Source(HeldClock):
    """Stands where the network would be: it answers one after the other, the last one for ever, and notes what it was
    asked. The clock stands still."""

    def __init__(self, house: House, *answers: Answer | Exception) -> None:
        super().__init__(house.gateway)
        self.answers = list(answers) or [Answer()]
        self.asked: list[tuple[str, dict[str, str], float, int]] = []
        house.gateway.outbound.fetch = self

    async def __call__(
        self, url: str, *, headers: Mapping[str, str], timeout: float, max_bytes: int
    ) -> Answer:
        self.asked.append((url, dict(headers), timeout, max_bytes))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


async def scheduled(house: House, more: dict[str, Any] | None = None, **setting: Any) -> Webhook:
    return await house.webhook(schedule={"url": URL, "every": "1h", **setting}, **(more or {}))


async def run(house: House, webhook: Webhook) -> ScheduleRun:
    return await schedules.run_now(house.gateway, OWNER, webhook.id)


async def state(house: House, webhook: Webhook) -> ScheduleState:
    shown = (await webhooks.show(house.gateway, OWNER, webhook.id)).schedule_state
    assert shown is not None
    return shown


async def recorded(house: House, done: ScheduleRun) -> list[Invocation]:
    return [await history.show(house.gateway, OWNER, one) for one in done.invocation_ids]


# --- what is asked and what it comes to ------------------------------------------------------------------------------


async def test_the_source_is_asked_as_its_webhook_says(house: House) -> None:
    source = Source(house)
    webhook = await scheduled(
        house, {"payloadLimitBytes": 77, "authentication": TOKEN}, headers={"X-Shop": "a"}, timeoutSeconds=7
    )
    done = await run(house, webhook)
    assert source.asked == [(URL, {"X-Shop": "a"}, 7.0, 77)]
    assert (done.webhook_id, done.result, done.reason, done.paused) == (webhook.id, "accepted", None, False)
    (call,) = await recorded(house, done)
    assert (call.method, call.path, call.query) == ("GET", "https://api.example.com/orders", "")
    assert call.address == "api.example.com"
    assert await house.noted() == ("schedule run by hand", webhook.id, {})


async def test_what_a_run_took_in_is_started_at_once_and_it_never_waits_for_the_answer(house: House) -> None:
    Source(house)
    webhook = await scheduled(house, {"synchronousResponse": {"enabled": True}})
    house.gateway.runtime.engine.due.clear()
    await run(house, webhook)
    assert house.gateway.runtime.engine.due.is_set()
    await house.deliver()
    (trigger,) = house.engine.started.values()
    assert trigger.response is None


FAILURES: tuple[tuple[Any, str, int | None], ...] = (
    (Answer(status=199), "the source answered 199", 199),
    (Answer(status=300), "the source answered 300", 300),
    (Answer(status=304), "the source answered 304", 304),
    (FetchTrouble("nobody answered"), "nobody answered", None),
    (FetchTrouble("too large", 200), "too large", 200),
)


async def test_what_is_no_answer_is_recorded_as_a_failure(house: House) -> None:
    source = Source(house)
    webhook = await scheduled(house)
    for number, (answer, reason, status) in enumerate(FAILURES, 1):
        source.answers = [answer]
        done = await run(house, webhook)
        assert (done.result, done.reason) == ("failed", reason)
        (call,) = await recorded(house, done)
        assert (call.status, call.code, call.detail) == ("rejected", "fetch_failed", reason)
        assert (call.method, call.path) == ("GET", "https://api.example.com/orders")
        assert (call.address, call.body_size, call.http_status) == ("api.example.com", 0, status)
        heard = f"the source answered {status}" if status else "the source gave no answer"
        assert call.uncalled == f"fetched by the schedule; {heard}"
        cannot = ("cannot_be_admitted", "nobody sent it: a schedule could not fetch it")
        assert await readmission.standing(house.gateway, OWNER, call.id) == cannot
        (step,) = call.trace
        assert (step.step, step.ok) == ("schedule", False)
        assert step.detail == f"fetched https://api.example.com/orders: {reason}"
        assert (await state(house, webhook)).consecutive_failures == number
    house.gateway.outbound.fetch = None
    done = await run(house, webhook)
    assert done.reason == "this process cannot fetch"
    assert [one.http_status for one in await recorded(house, done)] == [None]


async def test_elements_are_numbered_and_those_that_are_rejected_are_counted(house: House) -> None:
    source = Source(house, Answer(b'[{"n":1},2,{"n":3}]'))
    webhook = await scheduled(house, splitArray=True)
    done = await run(house, webhook)
    no_object = "the body is JSON, but not an object"
    assert (done.result, done.reason) == ("accepted", f"1 of 3 elements rejected: {no_object}")
    numbered = [call.trace[0].detail.rpartition(", ")[2] for call in await recorded(house, done)]
    assert numbered == ["element 1 of 3", "element 2 of 3", "element 3 of 3"]
    source.answers = [Answer(b"[1, 2]"), Answer(b'[{"n":1}]'), Answer(b"[]"), Answer(b"[1,")]
    none = await run(house, webhook)
    assert (none.result, none.reason, len(none.invocation_ids)) == ("failed", no_object, 2)
    single = await run(house, webhook)
    assert (single.result, single.reason) == ("accepted", None)
    assert "element" not in (await recorded(house, single))[0].trace[0].detail
    empty = await run(house, webhook)
    assert (empty.result, empty.reason, empty.invocation_ids) == ("empty", "an empty array", [])
    broken = await run(house, webhook)
    assert broken.result == "failed" and (broken.reason or "").startswith("the answer is not valid JSON")
    assert [call.http_status for call in await recorded(house, broken)] == [200]


async def test_filtered_elements_are_no_failure(house: House) -> None:
    conditions = [{"of": "n", "is": "greater", "values": [1]}]
    webhook = await scheduled(house, {"conditions": conditions}, splitArray=True)
    Source(house, Answer(b'[{"n": 1}, {"n": 2}]'), Answer(b'[{"n": 1}, {"n": 0}]'))
    for filtered in (1, 2):
        done = await run(house, webhook)
        assert done.result == "accepted"
        assert done.reason == f"{filtered} of 2 filtered: the conditions do not hold"
    assert len(await house.history(status="filtered")) == 3


async def test_only_what_has_changed_starts_anything(house: House) -> None:
    same = Answer(b'{"n": 1}', etag='"1"', last_modified="Sun, 01 Nov 2026 10:00:00 GMT")
    source, webhook = Source(house), await scheduled(house, onlyWhenChanged=True)
    for answer, result, reason in (
        (same, "accepted", None),
        (same, "unchanged", "the answer is the same as before"),
        (Answer(status=304), "unchanged", "the source answered 304"),
        (Answer(status=500), "failed", "the source answered 500"),
        (Answer(b'{"n": 2}', etag='"2"'), "accepted", None),
        (Answer(b'{"n": 2}'), "unchanged", "the answer is the same as before"),
        (Answer(b'{"n": 3}'), "accepted", None),
    ):
        source.answers = [answer]
        done = await run(house, webhook)
        assert (done.result, done.reason) == (result, reason)
    conditions = [headers for _, headers, _, _ in source.asked]
    known = {"If-None-Match": '"1"', "If-Modified-Since": "Sun, 01 Nov 2026 10:00:00 GMT"}
    # A failure is no answer to compare with; and what is remembered is the last answer, with or without a tag.
    assert conditions == [{}, known, known, known, known, {"If-None-Match": '"2"'}, {}]
    shown = await state(house, webhook)
    assert (shown.last_result, shown.last_reason, shown.consecutive_failures) == ("accepted", None, 0)


# --- when the next one is --------------------------------------------------------------------------------------------


async def test_what_the_source_asks_for_is_waited_for(house: House) -> None:
    source = Source(house, Answer(status=429, retry_after="10000"), Answer(status=429))
    webhook = await scheduled(house)
    asked_for = (await run(house, webhook)).next_run_at
    assert asked_for is not None and 10_000 <= asked_for - source.now < 10_000 + 3630
    usual = (await run(house, webhook)).next_run_at
    assert usual is not None and usual - source.now <= 3630
    await webhooks.change(house.gateway, OWNER, webhook.id, {"schedule": {"enabled": False}})
    assert (await run(house, webhook)).next_run_at is None


async def test_what_cannot_be_run_by_hand_says_why(house: House) -> None:
    source = Source(house)
    nothing, off = await house.webhook(), await scheduled(house, {"enabled": False})
    webhook = await scheduled(house)
    for asked, why in (
        (run(house, nothing), "this webhook has no schedule"),
        (run(house, off), "this webhook is disabled and fetches nothing; enable it first"),
        (schedules.resume(house.gateway, OWNER, nothing.id), "this webhook has no schedule"),
        (schedules.resume(house.gateway, OWNER, webhook.id), "this schedule is not paused"),
    ):
        assert str(await refused(asked)) == f"conflict: {why}"
    assert await house.gateway.store.schedules.take(webhook.id, source.now, LEASE) is not None
    before = (await audit.listing(house.gateway, OWNER)).items
    for seconds in (0, LEASE - 1):
        source.now += seconds
        assert str(await refused(run(house, webhook))) == "conflict: it is being run right now"
    assert (await audit.listing(house.gateway, OWNER)).items == before, "what did not happen is not noted"
    source.now += 1
    assert (await run(house, webhook)).result == "accepted"
    assert await house.gateway.store.schedules.take(webhook.id, source.now, LEASE) is not None
    source.now -= 3600
    assert (await run(house, webhook)).result == "accepted", "nobody holds a lease for so long"


async def test_a_change_of_the_setting_while_it_runs_wins(house: House) -> None:
    source = Source(house)
    webhook = await scheduled(house)

    async def meanwhile(*given: Any, **more: Any) -> Answer:
        await webhooks.change(house.gateway, OWNER, webhook.id, {"schedule": {"every": "2h"}})
        return await source(*given, **more)

    house.gateway.outbound.fetch = meanwhile
    expected = "conflict: its setting was changed while it ran: nothing was recorded"
    assert str(await refused(run(house, webhook))) == expected
    assert await house.history() == []


# --- the loop --------------------------------------------------------------------------------------------------------


async def due(house: House, source: Source, many: int = 1) -> list[Webhook]:
    made = [await scheduled(house) for _ in range(many)]
    source.now += 3700
    return made


async def test_no_more_runs_are_under_way_than_there_are_places(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedules, "FETCHES_AT_ONCE", 3)
    source, going = Source(house), asyncio.Event()

    async def slow(*given: Any, **more: Any) -> Answer:
        await going.wait()
        return await source(*given, **more)

    house.gateway.outbound.fetch = slow
    await due(house, source, 5)
    scheduler = Scheduler(house.gateway)
    assert [await scheduler.round() for _ in range(2)] == [3, 0]
    going.set()
    await asyncio.gather(*scheduler._running)
    assert [await scheduler.round() for _ in range(2)] == [2, 0]
    await asyncio.gather(*scheduler._running)
    assert len(source.asked) == 5
    assert len(await house.history()) == 5


async def test_a_run_that_is_due_begins_as_soon_as_a_place_is_free(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not when the loop looks again, which is in ten minutes here."""
    monkeypatch.setattr(schedules, "FETCHES_AT_ONCE", 1)
    monkeypatch.setattr(schedules, "CHECK_SCHEDULES_EVERY", 600)
    source = Source(house)
    await due(house, source, 3)
    scheduler = Scheduler(house.gateway)
    running = asyncio.create_task(scheduler.run())
    await until(lambda: len(source.asked) >= 3)
    scheduler.stop()
    await asyncio.wait_for(running, PATIENCE)


async def test_a_run_has_two_minutes_before_another_process_takes_it_over(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, moments = Source(house), iter((10.0, 11.5))
    webhook = await scheduled(house)

    async def looked_at(*given: Any, **more: Any) -> Answer:
        found = (await house.gateway.store.schedules.states([webhook.id]))[webhook.id]
        assert found.lease_until == source.now + 120
        return await source(*given, **more)

    house.gateway.outbound.fetch = looked_at
    monkeypatch.setattr(schedules, "time", SimpleNamespace(perf_counter=lambda: next(moments)))
    assert (await run(house, webhook)).duration_ms == 1500
    assert (await state(house, webhook)).last_duration_ms == 1500


@pytest.mark.parametrize("trouble", [StoreUnavailable("the disk is full"), RuntimeError("a bug")])
async def test_a_run_that_ends_badly_is_logged_and_ends_nothing_else(
    house: House, trouble: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source(house)
    broken, fine = await due(house, source, 2)
    finish = house.gateway.store.schedules.finish

    async def fails(claimed: Any, *given: Any) -> Any:
        if claimed.webhook_id == broken.id:
            raise trouble
        return await finish(claimed, *given)

    monkeypatch.setattr(house.gateway.store.schedules, "finish", fails)
    scheduler = Scheduler(house.gateway)
    with capture_logs() as lines:
        assert await scheduler.round() == 2
        await asyncio.gather(*scheduler._running)
    assert [one.webhook_id for one in await house.history()] == [fine.id]
    assert [line["webhook"] for line in lines if line["log_level"] in ("warning", "error")] == [broken.id]


async def test_only_what_waits_for_a_later_time_than_its_next_one_is_brought_forward(house: House) -> None:
    source = Source(house)
    waits = await scheduled(house)
    await run(house, waits)
    assert await schedules.catch_up(house.gateway) == 0
    planned = (await state(house, waits)).next_run_at
    source.now -= 7200
    with capture_logs() as lines:
        assert await schedules.catch_up(house.gateway) == 1
    assert [line["count"] for line in lines] == [1]
    following = (await state(house, waits)).next_run_at
    assert following is not None and planned is not None
    assert (0 < following - source.now <= 3630, planned > following) == (True, True)
    with capture_logs() as lines:
        assert await schedules.catch_up(house.gateway) == 0, "it waits for its next time already"
    assert lines == []
    await webhooks.change(house.gateway, OWNER, waits.id, {"schedule": None})
    assert await schedules.catch_up(house.gateway) == 0
