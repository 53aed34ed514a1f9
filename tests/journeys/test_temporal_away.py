"""The Temporal server goes away for a while: calls are accepted meanwhile, and every one is started once it
is back."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from temporalio.client import Client

from engines.temporal_server import TemporalServer
from journeys.cluster import ask, make_webhook
from support.program import StartProgram
from support.waiting import wait_until


def started(temporal: TemporalServer) -> list[str]:
    """The ids of the workflows it was asked to start."""

    async def asked() -> list[str]:
        client = await Client.connect(f"127.0.0.1:{temporal.port}")
        return [found.id async for found in client.list_workflows()]

    return asyncio.run(asked())


@pytest.fixture
def temporal(tmp_path: Path) -> Iterator[TemporalServer]:
    server = TemporalServer("--db-filename", str(tmp_path / "temporal.db"))
    server.start()
    yield server
    server.stop()


def tried_in_vain(url: str) -> int:
    with psycopg.connect(url) as connection:
        (count,) = connection.execute(
            "SELECT count(*) FROM deliveries WHERE state = 'queued' AND attempts > 0"
        ).fetchone() or (0,)
        return int(count)


def test_calls_are_accepted_while_temporal_is_away_and_started_when_it_is_back(
    start_program: StartProgram, migrated_url: str, temporal: TemporalServer
) -> None:
    program = start_program(
        POSTERN_DATABASE_URL=migrated_url,
        POSTERN_ENGINE="temporal",
        POSTERN_TEMPORAL_ADDRESS=f"127.0.0.1:{temporal.port}",
    )
    _, path = make_webhook(program)
    accepted = []

    def call() -> None:
        status, reply = ask(program, "POST", path, {})
        assert status == 200
        accepted.append(f"{reply['invocationId']}.1")

    wait_until(lambda: ask(program, "GET", "/readyz")[1]["engine"]["ok"], what="Temporal to come up")
    call()
    wait_until(lambda: started(temporal) == accepted, what="the first workflow to be started", every=0.2)
    temporal.stop()
    for _ in range(10):
        call()
    assert not ask(program, "GET", "/readyz")[1]["engine"]["ok"]
    wait_until(lambda: tried_in_vain(migrated_url), what="a start to have failed")
    temporal.start()
    call()
    wait_until(
        lambda: sorted(started(temporal)) == sorted(accepted), what="every workflow to be started", every=0.3
    )
    assert len(accepted) == 12
