"""The DBOS engine beside a real DBOS app on a real Postgres."""

import base64
import os
import pickle
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace
from sqlalchemy.engine import make_url

from engines.conformance import (
    AnswerEndpoint,
    EngineConformance,
    Relayed,
    endpoint,
    the_example_answers,
    trigger,
)
from engines.dbos_server import running_dbos
from engines.relay import Relay
from postern.core.deliveries.delivery import EngineUnavailable, Started
from postern.engines.dbos import DbosEngine
from postern.engines.handover import Target
from support.postgres import PostgresServer

ECHO = Target("Echo")


@dataclass
class App:
    url: str
    ran: Path


@pytest.fixture(scope="module")
def app(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    folder = tmp_path_factory.mktemp("dbos")
    with postgres.database() as url, running_dbos(url, folder) as ran:
        yield App(url, ran)


class DbosHarness(Relayed):
    def __init__(self, gateway: AnswerEndpoint, app: App, relay: Relay) -> None:
        super().__init__(gateway, relay, app.ran)
        self.app = app
        url = make_url(app.url).set(host="127.0.0.1", port=relay.port)
        self.url = url.render_as_string(hide_password=False)
        self.engine = DbosEngine(self.url, targets=[ECHO])

    def refused(self) -> Any:
        return replace(trigger(), payload=b'{"number": 1e999}')


@pytest.fixture
async def harness(app: App) -> AsyncIterator[DbosHarness]:
    app.ran.write_text("")
    relay = Relay(int(make_url(app.url).port or 5432))
    await relay.open()
    async with endpoint() as gateway:
        made = DbosHarness(gateway, app, relay)
        await made.engine.open()
        yield made
        await made.engine.close()
        await relay.cut()


class TestDbos(EngineConformance): ...


async def test_it_is_asked_how_runs_ended_and_which_there_are(harness: DbosHarness) -> None:
    engine = harness.engine
    for one in (good := trigger(), bad := trigger(field_one="fail")):
        await engine.start(one)
        await engine.ended(one.key)
    await engine.start(waiting := trigger(field_one="wait"))
    ends = await engine.ends([good.key, bad.key, waiting.key, "inv_unknown.1"])
    assert {key: end and (end.state, end.error) for key, end in ends.items()} == {
        good.key: ("completed", ""),
        bad.key: ("failed", "Echo: DBOS has its error"),
        waiting.key: None,
    }
    [run] = await engine.runs(delivery_key=bad.key) or []
    assert (run.workflow, run.state, run.delivery_key) == ("Echo", "failed", bad.key)
    assert run.started_at <= (run.ended_at or 0)
    assert {f"{good.key}/Echo", f"{bad.key}/Echo"} <= {run.id for run in await engine.runs() or []}

    await engine.forget([good.key, waiting.key, "inv_unknown.1"])
    assert await engine.runs(delivery_key=good.key) == []
    assert len(await engine.runs(delivery_key=waiting.key) or []) == 1
    harness.app.ran.with_name("go").touch()
    assert await engine.ended(waiting.key) == "completed"


async def test_several_targets_are_each_started_once(harness: DbosHarness) -> None:
    engine = DbosEngine(harness.url, targets=[Target(), ECHO, Target("Other", webhook_id="wh_other")])
    asked = trigger()
    assert await engine.start(asked) == Started(2, ("Webhook Trigger", "Echo"))
    assert await engine.start(asked) == Started(2, ("Webhook Trigger", "Echo"))
    assert await engine.ended(asked.key) == "completed"
    assert len(await harness.ran()) == 1
    assert {run.id for run in await engine.runs(delivery_key=asked.key) or []} == {
        asked.key,
        f"{asked.key}/Echo",
    }
    await engine.close()


async def test_the_example_app_answers_the_order_look_up(harness: DbosHarness) -> None:
    await the_example_answers(harness, DbosEngine(harness.url))


async def test_a_database_without_dbos_loses_nothing_and_says_what_to_do(postgres_url: str) -> None:
    engine = DbosEngine(postgres_url)
    with pytest.raises(EngineUnavailable, match="has your app been started"):
        await engine.start(trigger())
    assert not (await engine.health()).ok
    assert await engine.runs() is None
    await engine.close()


async def test_what_others_pickled_is_never_read(harness: DbosHarness, tmp_path: Path) -> None:
    """A person who can write to that database must not be able to run code in the gateway."""
    await harness.engine.start(asked := trigger(field_one="fail"))
    await harness.engine.ended(asked.key)
    mark = tmp_path / "run"
    pickled = pickled_call(mark)
    with psycopg.connect(harness.app.url, autocommit=True) as connection:
        changed = connection.execute(
            "UPDATE dbos.workflow_status SET serialization = NULL, inputs = %s, output = %s, error = %s"
            " WHERE workflow_uuid = %s",
            (pickled, pickled, pickled, f"{asked.key}/Echo"),
        )
    assert changed.rowcount == 1
    assert len(await harness.engine.runs(delivery_key=asked.key) or []) == 1
    await harness.engine.ends([asked.key])
    await harness.engine.start(asked)
    assert not mark.exists()


def pickled_call(mark: Path) -> str:
    class Call:
        def __reduce__(self) -> Any:
            return (os.mkdir, (str(mark),))

    return base64.b64encode(pickle.dumps(Call())).decode()
