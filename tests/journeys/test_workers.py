"""Several workers of one program: whichever of them ends, starts or cannot, callers are answered and nothing is lost."""

import os
import signal
from collections import Counter
from http.client import HTTPConnection
from pathlib import Path

import psycopg
import pytest

from journeys.cluster import Callers, CountingEngine, ask, deliveries_by_state, history_of, make_webhook
from journeys.cluster import an_engine as an_engine
from support.program import Program, run_postern
from support.waiting import PATIENCE, wait_until


def of_workers(folder: Path, database: str, engine: CountingEngine, **more: str) -> Program:
    """Two of them."""
    given = {"POSTERN_DATABASE_URL": database, "POSTERN_ENGINE": "http", "POSTERN_HTTP_URL": engine.url}
    return Program(folder, given | more, ("--workers", "2"))


def test_workers_are_replaced_one_after_the_other_and_nothing_is_lost(
    migrated_url: str, tmp_path: Path, engine: CountingEngine
) -> None:
    with of_workers(tmp_path, migrated_url, engine) as program:
        _, path = make_webhook(program)
        # Whichever worker a connection is dealt to: each hears of a new webhook by itself.
        wait_until(
            lambda: all(ask(program, "POST", path, {})[0] == 200 for _ in range(20)),
            what="both workers to know the webhook",
        )
        callers = Callers([program.port], path, 3)
        wait_until(lambda: len(callers.acknowledged) > 100, what="calls to be accepted")
        program.process.send_signal(signal.SIGHUP)
        wait_until(
            lambda: "every worker has been replaced" in program.output(), what="the workers to be replaced"
        )
        after = len(callers.acknowledged)
        wait_until(lambda: len(callers.acknowledged) > after + 100, what="the new workers to accept calls")
        callers.close()
        assert callers.refused == {}
        # A connection that was kept open ends with its worker, at worst under a request: that one got no
        # answer.
        assert set(callers.acknowledged) <= set(history_of(migrated_url))
        # A worker that ends has handed on what it took: nothing waits for a lease of 30 s to run out. However slow the machine
        # is, more and more are started meanwhile.
        acknowledged = set(callers.acknowledged)
        while left := acknowledged - engine.started():
            wait_until(
                lambda left=left: left & engine.started(),
                25,
                what=lambda: f"{deliveries_by_state(migrated_url)} to be started",
            )

        def both_have_counted() -> bool:
            ask(
                program, "POST", path, {}
            )  # on a connection of its own: the callers' few may all have been dealt to one worker
            return set(metrics(program, "postern_calls_total")) == {"0", "1"}

        wait_until(both_have_counted, what="the numbers of both workers")


def test_a_worker_that_dies_is_started_again_and_until_it_serves_the_others_get_all_callers(
    migrated_url: str, tmp_path: Path, engine: CountingEngine
) -> None:
    with of_workers(tmp_path, migrated_url, engine) as program:
        # One worker that answers is not yet both of them: one that dies before it has served ends the start.
        wait_until(lambda: "Postern is serving" in program.output(), what="both workers to serve")
        first = set(program.processes_left()) - {program.process.pid}
        assert len(first) == 2
        with psycopg.connect(migrated_url) as connection:
            # What every start asks for: a new worker waits for it.
            connection.execute("LOCK TABLE alembic_version IN ACCESS EXCLUSIVE MODE")
            os.kill(min(first), signal.SIGKILL)
            wait_until(lambda: "is started again" in program.output(), what="its end to be noticed")
            for _ in range(40):
                assert ask(program, "GET", "/healthz")[0] == 200
            assert set(program.processes_left()) & first == {max(first)}
        wait_until(
            lambda: set(metrics(program, "postern_writer_waiting")) == {"0", "1"},
            what="both workers to serve",
        )
        for _ in range(20):  # whichever of the sockets a connection is dealt to, somebody answers
            assert ask(program, "GET", "/healthz")[0] == 200


def test_workers_whose_parent_was_killed_end_and_the_next_start_leaves_nothing_behind(
    migrated_url: str, tmp_path: Path, engine: CountingEngine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    temporary = tmp_path_factory.mktemp("t")  # a socket's path may have a hundred characters
    with of_workers(tmp_path, migrated_url, engine, TMPDIR=str(temporary)) as program:
        wait_until(lambda: "Postern is serving" in program.output(), what="both workers to serve")
        assert len(list(temporary.glob("postern-*/worker-*.sock"))) == 2
        program.process.kill()
        wait_until(lambda: not program.processes_left(), what="the workers to end")
    with of_workers(tmp_path, migrated_url, engine, TMPDIR=str(temporary)) as program:
        wait_until(lambda: "Postern is serving" in program.output(), what="both workers to serve")
        assert len(list(temporary.iterdir())) == 1
        assert program.stop() == 0
        assert list(temporary.iterdir()) == []


def test_workers_need_what_several_processes_can_share(tmp_path: Path) -> None:
    refused = run_postern(tmp_path, "serve", "--workers", "2")
    assert refused.returncode == 2
    assert "several workers need POSTERN_DATABASE_URL" in refused.stderr


def metrics(program: Program, name: str) -> dict[str, float]:
    """One counter, added up by worker."""
    connection = HTTPConnection("127.0.0.1", program.port, timeout=PATIENCE)
    connection.request("GET", "/metrics")
    counted: Counter[str] = Counter()
    for line in connection.getresponse().read().decode().splitlines():
        if line.startswith(name):
            counted[line.partition('worker="')[2].partition('"')[0]] += float(line.rpartition(" ")[2])  # type: ignore[assignment]
    connection.close()
    return dict(counted)
