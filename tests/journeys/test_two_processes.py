"""Several gateways on one Postgres: what one of them loses is not lost, and what one of them hears reaches
the other."""

from pathlib import Path

from journeys.cluster import Callers, CountingEngine, ask, deliveries_by_state, history_of, make_webhook
from journeys.cluster import an_engine as an_engine
from support.forks import impatient
from support.postgres import PostgresProcess
from support.program import Program, StartProgram, run_postern
from support.waiting import free_port, wait_until


def start_pair(
    start_program: StartProgram, tmp_path: Path, url: str, engine: CountingEngine, lease: float | None = None
) -> tuple[Program, Program]:
    """``lease``: for how long what one has claimed is not taken from it."""

    def one(name: str) -> Program:
        more = {} if lease is None else impatient(**{"postern.usecases.deliveries.dispatch.LEASE": lease})
        return start_program(
            POSTERN_DATABASE_URL=url,
            POSTERN_DATA_DIR=str(tmp_path / name),
            POSTERN_SECRET_KEYS="one key for both of them",
            POSTERN_ENGINE="http",
            POSTERN_HTTP_URL=engine.url,
            POSTERN_LOG="off",
            **more,
        )

    return one("first"), one("second")


def test_a_process_killed_and_the_database_restarted_lose_no_acknowledged_call(
    start_program: StartProgram, own_postgres: PostgresProcess, tmp_path: Path, engine: CountingEngine
) -> None:
    url = own_postgres.url
    assert run_postern(tmp_path, "migrate", POSTERN_DATABASE_URL=url).returncode == 0
    first, second = start_pair(start_program, tmp_path, url, engine, lease=6.0)
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
    callers.close()
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


def test_a_second_process_with_the_embedded_engine_is_refused(
    start_program: StartProgram, migrated_url: str, tmp_path: Path
) -> None:
    both = {"POSTERN_DATABASE_URL": migrated_url, "POSTERN_SECRET_KEYS": "one key for both"}
    start_program(**both, POSTERN_DATA_DIR=str(tmp_path / "first"))
    refused = run_postern(
        tmp_path, "serve", **both, POSTERN_DATA_DIR=str(tmp_path / "second"), POSTERN_PORT=str(free_port())
    )
    assert refused.returncode == 1
    assert "Another Postern with the embedded engine serves this database" in refused.stderr
