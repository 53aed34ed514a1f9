"""Several gateways on one Postgres: what one of them loses is not lost, and what one of them hears reaches
the other."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import psycopg
import pytest

from journeys.cluster import Callers, CountingEngine, ask, counting_engine, make_webhook
from support.postgres import PostgresProcess
from support.program import Program, StartProgram, run_postern
from support.waiting import PATIENCE, free_port, wait_until


@pytest.fixture
def engine() -> Iterator[CountingEngine]:
    with counting_engine() as engine:
        yield engine


def start_pair(
    start_program: StartProgram, tmp_path: Path, url: str, engine: CountingEngine
) -> tuple[Program, Program]:
    def one(name: str) -> Program:
        return start_program(
            POSTERN_DATABASE_URL=url,
            POSTERN_DATA_DIR=str(tmp_path / name),
            POSTERN_SECRET_KEYS="one key for both of them",
            POSTERN_ENGINE="http",
            POSTERN_HTTP_URL=engine.url,
            POSTERN_LOG="off",
        )

    return one("first"), one("second")


def history_of(url: str) -> Counter[str]:
    with psycopg.connect(url) as connection:
        return Counter(row[0] for row in connection.execute("SELECT id FROM invocations"))


def deliveries_by_state(url: str) -> dict[str, int]:
    with psycopg.connect(url) as connection:
        return dict(connection.execute("SELECT state, count(*) FROM deliveries GROUP BY state").fetchall())


def test_a_process_killed_and_the_database_restarted_lose_no_acknowledged_call(
    start_program: StartProgram, own_postgres: PostgresProcess, tmp_path: Path, engine: CountingEngine
) -> None:
    url = own_postgres.url
    assert run_postern(tmp_path, "migrate", POSTERN_DATABASE_URL=url).returncode == 0
    first, second = start_pair(start_program, tmp_path, url, engine)
    _, path = make_webhook(first)
    wait_until(lambda: ask(second, "POST", path, {})[0] == 200, what="the second process to know the webhook")

    callers = Callers([first.port, second.port], path)
    wait_until(lambda: len(callers.acknowledged) > 150, what="calls to be accepted")
    second.kill()
    wait_until(lambda: callers.lost > 0, what="the killed one's callers to notice")

    own_postgres.stop()
    wait_until(lambda: callers.refused[503] > 5, what="calls to be refused while there is no database")
    before = len(callers.acknowledged)
    own_postgres.start()
    wait_until(lambda: len(callers.acknowledged) > before + 100, what="calls to be accepted again")
    callers.stop()
    assert set(callers.refused) <= {503}

    kept = history_of(url)
    assert len(callers.acknowledged) == len(set(callers.acknowledged))
    assert set(callers.acknowledged) <= set(kept)
    assert set(kept.values()) == {1}
    # What the killed one had claimed comes back when its lease is over.
    wait_until(
        lambda: set(deliveries_by_state(url)) == {"started"},
        what=lambda: f"{deliveries_by_state(url)} to be started",
        every=0.2,
    )
    assert engine.started() == set(kept)


def test_an_answer_reaches_the_caller_who_waits_at_the_other_process(
    start_program: StartProgram, migrated_url: str, tmp_path: Path, engine: CountingEngine
) -> None:
    first, second = start_pair(start_program, tmp_path, migrated_url, engine)
    _, path = make_webhook(first, synchronousResponse={"enabled": True, "timeoutSeconds": 25})

    def answer_elsewhere(trigger: dict[str, object]) -> None:
        slot = trigger["response"]
        assert isinstance(slot, dict)
        status, _ = ask(
            second,
            "POST",
            f"/api/v1/invocations/{trigger['invocationId']}/response",
            {"status": 201, "body": {"from": "the other one"}},
            Authorization=f"Bearer {slot['token']}",
        )
        assert status == 200

    engine.on_start = answer_elsewhere
    for _ in range(5):
        assert ask(first, "POST", path, {}) == (201, {"from": "the other one"})


def test_a_change_is_seen_by_the_other_process(
    start_program: StartProgram, migrated_url: str, tmp_path: Path, engine: CountingEngine
) -> None:
    first, second = start_pair(start_program, tmp_path, migrated_url, engine)
    webhook_id, path = make_webhook(first)
    wait_until(lambda: ask(second, "POST", path, {})[0] == 200)
    assert ask(first, "POST", f"/api/v1/webhooks/{webhook_id}/disable")[0] == 200
    wait_until(lambda: ask(second, "POST", path, {})[0] == 403)
    assert ask(second, "DELETE", f"/api/v1/webhooks/{webhook_id}")[0] in (200, 204)
    wait_until(lambda: ask(first, "POST", path, {})[0] == 404)


def test_workers_are_replaced_one_after_the_other_and_nothing_is_lost(
    migrated_url: str, tmp_path: Path, engine: CountingEngine
) -> None:
    port = free_port()
    program = Program(
        tmp_path,
        {
            "POSTERN_PORT": str(port),
            "POSTERN_DATABASE_URL": migrated_url,
            "POSTERN_ENGINE": "http",
            "POSTERN_HTTP_URL": engine.url,
        },
        ("--workers", "2"),
    )
    try:
        program.wait_until_ready()
        _, path = make_webhook(program)
        # Whichever worker a connection is dealt to: each hears of a new webhook by itself.
        wait_until(
            lambda: all(ask(program, "POST", path, {})[0] == 200 for _ in range(20)),
            what="both workers to know the webhook",
        )
        callers = Callers([port], path, 6)
        wait_until(lambda: len(callers.acknowledged) > 100, what="calls to be accepted")
        program.process.send_signal(signal.SIGHUP)
        wait_until(
            lambda: "every worker has been replaced" in program.output(), what="the workers to be replaced"
        )
        after = len(callers.acknowledged)
        wait_until(lambda: len(callers.acknowledged) > after + 100, what="the new workers to accept calls")
        callers.stop()
        assert callers.refused == {}
        # A connection that was kept open ends with its worker, at worst under a request: that one got no
        # answer.
        assert set(callers.acknowledged) <= set(history_of(migrated_url))
        # A worker that ends has handed on what it took: nothing waits for a lease to run out.
        wait_until(
            lambda: set(callers.acknowledged) <= engine.started(),
            25,
            what=lambda: f"{deliveries_by_state(migrated_url)} to be started",
        )

        def both_have_counted() -> bool:
            ask(
                program, "POST", path, {}
            )  # on a connection of its own: the callers' few may all have been dealt to one worker
            return set(metrics(program, "postern_calls_total")) == {"0", "1"}

        wait_until(both_have_counted, what="the numbers of both workers")
    finally:
        try:
            assert program.stop() == 0
        finally:
            program.kill()


def test_a_worker_that_dies_is_started_again(
    migrated_url: str, tmp_path: Path, engine: CountingEngine
) -> None:
    program = Program(
        tmp_path,
        {"POSTERN_DATABASE_URL": migrated_url, "POSTERN_ENGINE": "http", "POSTERN_HTTP_URL": engine.url},
        ("--workers", "2"),
    )
    try:
        # One worker that answers is not yet both of them: one that dies before it has served ends the start.
        wait_until(lambda: "Postern is serving" in program.output(), what="both workers to serve")
        workers = [pid for pid in program.processes_left() if pid != program.process.pid]
        assert len(workers) == 2
        os.kill(workers[0], signal.SIGKILL)
        wait_until(
            lambda: len(set(program.processes_left()) - {program.process.pid, workers[0]}) == 2,
            what="a new worker",
        )
        for _ in range(20):  # whichever of the sockets a connection is dealt to, somebody answers
            assert ask(program, "GET", "/healthz")[0] == 200
        assert program.stop() == 0
    finally:
        program.kill()


def test_while_a_worker_cannot_start_the_others_get_all_callers(
    migrated_url: str, tmp_path: Path, engine: CountingEngine
) -> None:
    program = Program(
        tmp_path,
        {"POSTERN_DATABASE_URL": migrated_url, "POSTERN_ENGINE": "http", "POSTERN_HTTP_URL": engine.url},
        ("--workers", "2"),
    )
    try:
        wait_until(lambda: "Postern is serving" in program.output(), what="both workers to serve")
        first = set(program.processes_left()) - {program.process.pid}
        with psycopg.connect(migrated_url) as connection:
            # What every start asks for: a new worker waits for it.
            connection.execute("LOCK TABLE alembic_version IN ACCESS EXCLUSIVE MODE")
            os.kill(min(first), signal.SIGKILL)
            wait_until(lambda: "is started again" in program.output(), what="its end to be noticed")
            for _ in range(40):
                assert ask(program, "GET", "/healthz", timeout=20)[0] == 200
            assert set(program.processes_left()) & first == {max(first)}
        wait_until(
            lambda: set(metrics(program, "postern_writer_waiting")) == {"0", "1"},
            what="both workers to serve",
        )
        assert program.stop() == 0
    finally:
        program.kill()


def test_workers_whose_parent_was_killed_end_and_leave_nothing_behind(
    migrated_url: str, tmp_path: Path, engine: CountingEngine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    temporary = tmp_path_factory.mktemp("t")  # a socket's path may have a hundred characters
    program = Program(
        tmp_path,
        {
            "POSTERN_DATABASE_URL": migrated_url,
            "POSTERN_ENGINE": "http",
            "POSTERN_HTTP_URL": engine.url,
            "TMPDIR": str(temporary),
        },
        ("--workers", "2"),
    )
    try:
        wait_until(lambda: "Postern is serving" in program.output(), what="both workers to serve")
        assert len(list(temporary.glob("postern-*/worker-*.sock"))) == 2
        program.process.kill()
        wait_until(lambda: not program.processes_left(), what="the workers to end")
        assert list(temporary.iterdir()) == []
    finally:
        program.kill()


def test_workers_need_what_several_processes_can_share(tmp_path: Path) -> None:
    refused = run_postern(tmp_path, "serve", "--workers", "2")
    assert refused.returncode == 2
    assert "several workers need POSTERN_DATABASE_URL" in refused.stderr


def test_a_second_process_with_the_embedded_engine_is_refused(
    start_program: StartProgram, migrated_url: str, tmp_path: Path
) -> None:
    both = {"POSTERN_DATABASE_URL": migrated_url, "POSTERN_SECRET_KEYS": "one key for both"}
    start_program(**both, POSTERN_DATA_DIR=str(tmp_path / "first"))
    refused = run_postern(
        tmp_path,
        "serve",
        **both,
        POSTERN_DATA_DIR=str(tmp_path / "second"),
        POSTERN_PORT=str(free_port()),
    )
    assert refused.returncode == 1
    assert "Another Postern with the embedded engine serves this database" in refused.stderr


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
