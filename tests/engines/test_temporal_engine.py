import asyncio
import importlib.util
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from engines.conformance import AnswerEndpoint, EngineConformance, Relayed, endpoint, trigger, until
from engines.relay import Relay
from engines.temporal_server import TemporalServer
from postern.core.deliveries.delivery import EngineUnavailable, Started
from postern.engines.handover import Target, read_targets
from postern.engines.temporal import TemporalEngine
from postern.usecases.deliveries.starting import START_TIMEOUT
from support.waiting import PATIENCE, free_port

EXAMPLE = Path(__file__).parents[2] / "examples" / "temporal_worker.py"


def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("temporal_worker", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["temporal_worker"] = module
    spec.loader.exec_module(module)
    return module


worker_example = example()


@workflow.defn(name="Webhook Trigger")
class Echo:
    """Does what the conformance suite asks of a workflow. The document it was run with is read back from its
    history."""

    @workflow.run
    async def run(self, document: dict[str, Any]) -> None:
        if document["fieldOne"] == "fail":
            raise ApplicationError("as asked", non_retryable=True)
        await worker_example.answer_caller(document, {"echo": document["fieldOne"]})


@workflow.defn(name="Second")
class Second:
    @workflow.run
    async def run(self, document: dict[str, Any]) -> str:
        return str(document["invocationId"])


INTERVALS = ("history.transferProcessorUpdateAckInterval", "history.visibilityProcessorUpdateAckInterval")
"""A deletion waits for these: 30 seconds as shipped."""


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    """A Temporal server that keeps its data in memory."""
    soon = [part for one in INTERVALS for part in ("--dynamic-config-value", f'{one}="100ms"')]
    made = TemporalServer(*soon)
    made.start()
    yield made.port
    made.stop()


class TemporalHarness(Relayed):
    def __init__(self, gateway: AnswerEndpoint, client: Client, queue: str, relay: Relay) -> None:
        super().__init__(gateway, relay, Path())  # no file: what was run is in the server's history
        self.client = client
        self.queue = queue
        self.engine = TemporalEngine(f"127.0.0.1:{relay.port}", targets=[Target(queue=queue)])

    async def ran(self) -> list[dict[str, Any]]:
        found = []
        asked = f'TaskQueue = "{self.queue}" AND WorkflowType = "Webhook Trigger"'
        async for run in self.client.list_workflows(asked):
            handle = self.client.get_workflow_handle(run.id, run_id=run.run_id)
            first = await anext(aiter(handle.fetch_history_events(page_size=1)))
            found.append(json.loads(first.workflow_execution_started_event_attributes.input.payloads[0].data))
        return found

    def refused(self) -> Any:
        return trigger(field_one="x" * 3_000_000)


@asynccontextmanager
async def temporal(server: int, gateway: AnswerEndpoint) -> AsyncIterator[TemporalHarness]:
    async def ready() -> Client | None:
        try:
            return await Client.connect(f"127.0.0.1:{server}")
        except RuntimeError:
            return None

    client = await until(ready, 60)
    queue = f"postern-{time.time_ns()}"
    relay = Relay(server)
    await relay.open()
    made = TemporalHarness(gateway, client, queue, relay)
    await made.engine.open()
    async with Worker(
        client,
        task_queue=queue,
        workflows=[Echo, Second],
        activities=[worker_example.respond, worker_example.look_up_order],
        workflow_runner=UnsandboxedWorkflowRunner(),
        graceful_shutdown_timeout=timedelta(0),
    ):
        yield made
    await made.engine.close()
    await relay.cut()


class TestTemporal(EngineConformance): ...


@pytest.fixture
async def harness(server: int) -> AsyncIterator[TemporalHarness]:
    async with endpoint() as gateway, temporal(server, gateway) as made:
        yield made


async def test_the_payload_arrives_with_every_digit(harness: TemporalHarness) -> None:
    await harness.engine.start(asked := trigger())
    handle = harness.client.get_workflow_handle(asked.key)
    await handle.result()
    event = (await handle.fetch_history()).events[0]
    sent = event.workflow_execution_started_event_attributes.input.payloads[0].data
    assert b'"total":10.00,"id":123456789012345678901234567890' in sent


async def test_several_targets_are_each_started_once(harness: TemporalHarness) -> None:
    targets = [Target(queue=harness.queue), Target("Second", harness.queue)]
    targets.append(Target("Third", harness.queue, webhook_id="wh_other"))
    engine = TemporalEngine(f"127.0.0.1:{harness.relay.port}", targets=targets)
    await engine.open()
    asked = trigger(response=harness.endpoint.slot())
    assert await engine.start(asked) == Started(2, ("Webhook Trigger", "Second"))
    assert await engine.start(asked) == Started(2, ("Webhook Trigger", "Second"))
    assert await engine.ended(asked.key) == "completed"
    assert await harness.client.get_workflow_handle(f"{asked.key}/Second").result() == asked.invocation_id

    async def both_listed() -> bool:
        return len(await engine.runs(delivery_key=asked.key) or []) == 2

    await until(both_listed)
    await engine.close()


def test_two_targets_cannot_share_a_workflow_id() -> None:
    for other in (Target(queue="other"), Target(webhook_id="wh_1")):
        with pytest.raises(ValueError, match="same workflow"):
            TemporalEngine(targets=[Target(), other])


def test_targets_are_read_from_one_line() -> None:
    assert read_targets("", Target()) == (Target(),)
    both = Target(), Target("Refund", "refunds", "wh_1")
    assert read_targets("Webhook Trigger, Refund@refunds#wh_1", Target()) == both
    with pytest.raises(ValueError, match="names no workflow"):
        read_targets("@queue", Target())


async def test_a_trigger_nobody_wants_starts_nothing(harness: TemporalHarness) -> None:
    engine = TemporalEngine(f"127.0.0.1:{harness.relay.port}", targets=[Target(webhook_id="wh_other")])
    await engine.open()
    assert (await engine.start(trigger())).runs == 0


async def test_a_namespace_that_does_not_exist_loses_nothing(harness: TemporalHarness) -> None:
    engine = TemporalEngine(f"127.0.0.1:{harness.relay.port}", namespace="nowhere")
    await engine.open()
    with pytest.raises(EngineUnavailable):
        await engine.start(trigger())
    assert not (await engine.health()).ok


async def test_health_says_when_no_worker_listens(harness: TemporalHarness) -> None:
    engine = TemporalEngine(f"127.0.0.1:{harness.relay.port}", targets=[Target(queue="nobody")])
    await engine.open()
    health = await engine.health()
    assert health.ok
    assert "no worker" in health.detail


async def test_a_server_that_was_never_there_is_unavailable_at_once() -> None:
    engine = TemporalEngine(f"127.0.0.1:{free_port()}")
    await engine.open()
    async with asyncio.timeout(START_TIMEOUT):
        with pytest.raises(EngineUnavailable):
            await engine.start(trigger())


async def test_what_is_forgotten_is_gone_and_what_runs_stays(harness: TemporalHarness) -> None:
    await harness.engine.start(done := trigger())
    waiting = TemporalEngine(f"127.0.0.1:{harness.relay.port}", targets=[Target(queue="nobody")])
    await waiting.open()
    await waiting.start(running := trigger())

    async def states(key: str) -> list[str]:
        return [run.state for run in await harness.engine.runs(delivery_key=key) or []]

    async def both_listed() -> bool:
        return await states(done.key) == ["completed"] and await states(running.key) == ["running"]

    await until(both_listed)
    await harness.engine.forget([done.key, running.key])

    async def only_the_running_one() -> bool:
        return await states(done.key) == [] and await states(running.key) == ["running"]

    await until(only_the_running_one)


async def test_the_example_worker_answers_the_order_look_up(server: int, tmp_path: Path) -> None:
    environment = {**os.environ, "TEMPORAL_ADDRESS": f"127.0.0.1:{server}", "ORDER_LOOKUP_WEBHOOK": "wh_1"}
    with (tmp_path / "worker.log").open("wb") as log:
        worker = await asyncio.create_subprocess_exec(
            sys.executable, str(EXAMPLE), env=environment, stdout=log, stderr=log
        )
        try:
            async with endpoint() as gateway:
                engine = TemporalEngine(f"127.0.0.1:{server}")
                await engine.open()
                await engine.start(asked := trigger(field_one="1001", response=gateway.slot()))
                async with asyncio.timeout(PATIENCE):
                    assert await engine.ended(asked.key) == "completed"
        finally:
            worker.terminate()
            await worker.wait()
    [answer] = gateway.accepted
    order = {"name": "#1001", "financialStatus": "PAID", "fulfillmentStatus": "FULFILLED"}
    assert answer == {"status": 200, "headers": {}, "body": {"orders": [order]}}
