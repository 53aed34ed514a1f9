"""The Restate engine beside a real Restate server, from npm."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from engines.conformance import (
    AnswerEndpoint,
    EngineConformance,
    Relayed,
    endpoint,
    the_example_answers,
    trigger,
    until,
)
from engines.relay import Relay
from engines.restate_server import Server, restate_server, running_restate
from postern.core.deliveries.delivery import EngineRejected, EngineUnavailable, Started
from postern.engines.handover import Target
from postern.engines.restate import RestateEngine
from stand_in import Reply, stand_in

ECHO = Target("Echo/run", "")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    binary = restate_server()
    if binary is None:
        pytest.skip("RESTATE WAS NOT TESTED: there is no npm on this machine, or no Restate for it")
    with running_restate(binary, tmp_path_factory.mktemp("restate")) as made:
        yield made


class RestateHarness(Relayed):
    def __init__(self, gateway: AnswerEndpoint, server: Server, relay: Relay) -> None:
        super().__init__(gateway, relay, server.ran)
        self.url = f"http://127.0.0.1:{relay.port}"
        self.engine = RestateEngine(self.url, targets=[ECHO])

    def refused(self) -> Any:
        # What is over 32 MiB is, and then as often as not the connection breaks before it can say so.
        return None


@pytest.fixture
async def harness(server: Server) -> AsyncIterator[RestateHarness]:
    server.ran.write_text("")
    relay = Relay(server.ingress)
    await relay.open()
    async with endpoint() as gateway:
        made = RestateHarness(gateway, server, relay)
        await made.engine.open()
        yield made
        await made.engine.close()
        await relay.cut()


class TestRestate(EngineConformance): ...


async def test_the_payload_arrives_whole(harness: RestateHarness) -> None:
    await harness.engine.start(asked := trigger())
    assert await harness.engine.ended(asked.key) == "completed"
    [document] = await harness.ran()
    assert document["payload"]["id"] == 123456789012345678901234567890


async def test_several_targets_are_each_started_once(harness: RestateHarness) -> None:
    targets = [ECHO, Target("Echo/second", ""), Target("WebhookTrigger/run", "", "wh_other")]
    engine = RestateEngine(harness.url, targets=targets)
    asked = trigger()
    assert await engine.start(asked) == Started(2, ("Echo/run", "Echo/second"))
    assert await engine.start(asked) == Started(2, ("Echo/run", "Echo/second"))
    assert await engine.ended(asked.key) == "completed"
    assert len(await harness.ran()) == 1
    await engine.close()


async def test_it_is_asked_how_runs_ended(harness: RestateHarness) -> None:
    engine = harness.engine
    for one in (good := trigger(), bad := trigger(field_one="fail"), large := trigger(field_one="large")):
        await engine.start(one)
        await engine.ended(one.key)
    ends = await engine.ends([good.key, bad.key, large.key, "inv_unknown.1"])
    assert {key: end and (end.state, end.error) for key, end in ends.items()} == {
        good.key: ("completed", ""),
        bad.key: ("failed", "Echo/run: as asked"),
        large.key: ("completed", ""),
    }


async def test_a_call_whose_second_run_still_goes_on_has_not_ended() -> None:
    async with stand_in(lambda asked: Reply(470 if "/Echo/second/" in asked.target else 200)) as server:
        engine = RestateEngine(server.url, targets=[ECHO, Target("Echo/second", "")])
        assert await engine.ends(["inv.1"]) == {"inv.1": None}
        await engine.close()


FAILED = Reply(500, {"X-Restate-Error-Source": "invocation"})


@pytest.mark.parametrize(("second", "end"), [(FAILED, "failed"), (Reply(404), "completed")])
async def test_a_call_ends_as_its_runs_do_and_nobody_waits_for_one_that_is_not_there(
    second: Reply, end: str
) -> None:
    async with stand_in(lambda asked: second if "/Echo/second/" in asked.target else Reply(200)) as server:
        engine = RestateEngine(server.url, targets=[ECHO, Target("Echo/second", "")])
        assert await engine.ended("inv.1") == end
        await engine.close()


async def test_a_proxy_s_error_is_not_the_end_of_a_run() -> None:
    for status in (500, 502):
        async with stand_in(lambda _, status=status: Reply(status, body=b"Bad gateway")) as server:
            engine = RestateEngine(server.url, targets=[ECHO])
            with pytest.raises(EngineUnavailable, match=f"Restate answered {status}: Bad gateway"):
                await engine._end(ECHO, "inv.1")
            await engine.close()


async def test_a_service_that_is_not_registered_loses_nothing_and_health_says_so(
    harness: RestateHarness,
) -> None:
    engine = RestateEngine(harness.url, targets=[Target("Nobody/run", "")])
    with pytest.raises(EngineUnavailable, match="not found") as caught:
        await engine.start(trigger())
    assert caught.value.only_this, "calls of other webhooks may be for services that are there"
    health = await engine.health()
    assert health.ok and "Nobody is not registered" in health.detail
    await engine.close()


async def test_a_trigger_nobody_wants_starts_nothing(harness: RestateHarness) -> None:
    engine = RestateEngine(harness.url, targets=[replace(ECHO, webhook_id="wh_other")])
    assert (await engine.start(trigger())).runs == 0
    await engine.close()


async def test_the_example_service_answers_the_order_look_up(harness: RestateHarness) -> None:
    await the_example_answers(harness, RestateEngine(harness.url))


async def test_the_api_key_is_sent_and_an_answer_that_makes_no_sense_loses_nothing() -> None:
    replies = iter([Reply(401, body=b"who are you?"), Reply(503, {"Retry-After": "7"}), Reply(413)])
    async with stand_in(lambda _: next(replies)) as server:
        engine = RestateEngine(server.url, api_key="key_1")
        with pytest.raises(EngineUnavailable, match="401: who are you"):
            await engine.start(trigger())
        with pytest.raises(EngineUnavailable) as caught:
            await engine.start(trigger())
        with pytest.raises(EngineRejected):
            await engine.start(trigger())
        await engine.close()
    assert caught.value.retry_after == 7
    assert {request.headers["authorization"] for request in server.received} == {"Bearer key_1"}


async def test_a_run_that_is_not_over_is_waited_for(harness: RestateHarness) -> None:
    """Its caller holds it up: the answer is taken late."""
    taken = asyncio.Event()

    async def late(_: Any) -> Reply:
        await taken.wait()
        return Reply(200)

    async with stand_in(late) as caller:
        slot = dataclasses.replace(harness.endpoint.slot(), url=caller.url)
        await harness.engine.start(asked := trigger(response=slot))
        await until(lambda: _true(bool(caller.received)))
        assert await harness.engine.ends([asked.key]) == {asked.key: None}
        waiting = asyncio.create_task(harness.engine.ended(asked.key))
        taken.set()
        assert await waiting == "completed"


async def _true(value: bool) -> bool:
    return value
