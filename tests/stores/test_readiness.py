"""Ready means that a call would be stored: whatever keeps calls from being stored is told, and so is its end."""

import asyncio
import os
import shutil
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event
from structlog.testing import capture_logs

from postern.core.history.invocation import HistoryFilter, StoreUnavailable
from postern.stores import condition
from postern.stores.sql import schema, writer
from postern.stores.sql.database import Database
from postern.stores.store import Store
from stores.conftest import entry, opened, recorded
from stores.test_trouble import CALL, no_more_room, tell_writer
from support.forks import impatient
from support.fresh import fresh_database
from support.postgres import PostgresProcess
from support.program import StartProgram, run_postern
from support.recording import kept
from support.waiting import PATIENCE, free_port, wait_until
from support.webhooks import how_many, make_webhook
from support.wire import exchange


@pytest.fixture
async def sqlite_store(tmp_path: Path) -> AsyncIterator[Store]:
    async with opened(f"sqlite:///{fresh_database(tmp_path / 'postern.db')}") as store:
        yield store


@contextmanager
def read_only(store: Store) -> Iterator[None]:
    """Makes every commit fail as on a file system that went read-only."""
    tell_writer(store, "query_only = on")
    yield
    tell_writer(store, "query_only = off")


@contextmanager
def locked(store: Store) -> Iterator[None]:
    with closing(sqlite3.connect(str(store.database.url.database), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


TROUBLES = {"full": no_more_room, "readonly": read_only, "locked": locked}


@pytest.mark.parametrize("kind", TROUBLES)
async def test_a_call_that_was_not_stored_is_trouble_until_one_is(sqlite_store: Store, kind: str) -> None:
    assert await sqlite_store.trouble() is None
    with TROUBLES[kind](sqlite_store):
        with pytest.raises(StoreUnavailable):
            await kept(sqlite_store, entry(body=b"x" * 200_000))
        assert kind in str(await sqlite_store.trouble())
    await recorded(sqlite_store, entry())
    assert await sqlite_store.trouble() is None


async def test_a_database_that_says_nothing_of_its_trouble_is_in_trouble(sqlite_store: Store) -> None:
    sqlite_store.writer.commits.refused("", calls=1, away=False)
    assert await sqlite_store.trouble() == "the database gives no reason"


async def test_a_store_that_has_closed_says_so_of_what_is_written_alone_and_with_others(
    tmp_path: Path,
) -> None:
    async with opened(f"sqlite:///{fresh_database(tmp_path / 'postern.db')}") as store:
        pass
    with pytest.raises(StoreUnavailable, match="closing"):
        await asyncio.wait_for(store.writer.write(lambda connection: None), PATIENCE)
    with pytest.raises(StoreUnavailable, match="closing"):
        await asyncio.wait_for(store.slots.close_slot("dlv_1", "engine_timeout"), PATIENCE)


@pytest.mark.parametrize("kind", ["readonly", "locked"])
async def test_where_no_call_came_lately_a_commit_is_tried(
    sqlite_store: Store, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(condition, "FRESH", 0.0)
    with TROUBLES[kind](sqlite_store):
        reported = await sqlite_store.trouble()
        assert reported is not None
        assert kind in reported or (kind == "locked" and "not come to its end" in reported)
    # The trial that waited for the lock ends first.
    while (reported := await sqlite_store.trouble()) is not None:
        assert "not come to its end" in reported or "locked" in reported


async def test_a_trial_leaves_nothing_in_the_history(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(condition, "FRESH", -1.0)
    commits: list[object] = []
    event.listen(store.database.writer, "commit", commits.append)
    assert [await store.trouble(), await store.trouble()] == [None, None]
    assert len(commits) == 2
    assert (await store.history.page(HistoryFilter(), 10)).rows == []
    assert await store.deliveries.claim(4_000_000_000.0, 30, 10) == []


async def test_damage_that_only_calls_meet_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "postern.db"
    fresh_database(path)
    async with opened(f"sqlite:///{path}") as store:
        await recorded(store, *(entry() for _ in range(50)))
    with closing(sqlite3.connect(path)) as database:
        page_size = database.execute("PRAGMA page_size").fetchone()[0]
        root = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'invocations'").fetchone()[0]
    with path.open("r+b") as file:
        file.seek((root - 1) * page_size)
        file.write(os.urandom(page_size))
    async with opened(f"sqlite:///{path}") as store:
        assert "malformed" in str(await store.trouble())
        with pytest.raises(StoreUnavailable):
            await kept(store, entry())
        assert "malformed" in str(await store.trouble())


async def test_a_commit_that_does_not_end_is_trouble(
    sqlite_store: Store, held_up_writer: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(condition, "PATIENCE", 0.0)
    held_up_writer()
    assert "has not come to its end" in str(await sqlite_store.trouble())


@pytest.fixture
def held_up_writer(sqlite_store: Store) -> Iterator[Callable[[], None]]:
    gate = threading.Event()

    def hold() -> None:
        asyncio.get_running_loop().create_task(sqlite_store.writer.write(lambda _: gate.wait(PATIENCE)))

    yield hold
    gate.set()


async def test_the_log_says_that_trouble_is_over_when_calls_are_stored_and_none_was_refused_for_a_while(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "QUIET_FOR", 0.0)

    async def told() -> list[str]:
        with capture_logs() as lines:
            await sqlite_store.writer.write(condition._trial)
            await recorded(sqlite_store, entry())
        return [str(line["event"]) for line in lines]

    with no_more_room(sqlite_store), capture_logs() as lines:
        with pytest.raises(StoreUnavailable):
            await kept(sqlite_store, entry(body=b"x" * 200_000))
        await sqlite_store.writer.write(condition._trial)  # it fits, and calls are still refused
        with pytest.raises(StoreUnavailable):
            await kept(sqlite_store, entry(body=b"x" * 200_000))
    assert [line["event"] for line in lines] == ["the store refused a commit"]
    monkeypatch.setattr(writer, "QUIET_FOR", 60.0)
    assert await told() == []  # a call that fits says nothing of a larger one
    monkeypatch.setattr(writer, "QUIET_FOR", 0.0)
    assert await told() == ["the store takes commits again"]
    assert await told() == []


def test_the_program_says_so(tmp_path: Path, start_program: StartProgram) -> None:
    served = make_webhook(tmp_path / "data")
    impatience = impatient(**{"postern.stores.condition.CALLS_FAIL_FOR": 2.0})
    program = start_program(POSTERN_ENGINE="none", **impatience)

    def metrics() -> str:
        return exchange(program.port, "GET", "/metrics").body.decode()

    with closing(sqlite3.connect(program.data_dir / "postern.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert exchange(program.port, "POST", served.path, CALL, b"{}").status == 503
        reported = exchange(program.port, "GET", "/readyz")
        assert (reported.status, reported.json["status"]) == (503, "not ready")
        assert reported.json["store"]["ok"] is False and "locked" in reported.json["store"]["detail"]
        wait_until(lambda: 'postern_ready{part="store"} 0.0' in metrics(), what="the metric to say so")
        wait_until(lambda: "the gateway needs help" in program.output(), what="the log to say so")
    wait_until(program.is_ready, what="/readyz to say that it is over")
    wait_until(lambda: "everything is well again" in program.output(), what="the log to say so")


async def test_a_database_server_that_is_gone_is_reported_without_its_address(
    own_postgres: PostgresProcess,
) -> None:
    schema.prepare(own_postgres.url, migrates=True)
    async with opened(own_postgres.url) as store:
        await recorded(store, entry())
        assert await store.trouble() is None
        own_postgres.stop()
        with pytest.raises(StoreUnavailable):
            await kept(store, entry())
        reported = str(await store.trouble())
        assert reported
        assert "127.0.0.1" not in reported
        own_postgres.start()
        async with asyncio.timeout(PATIENCE):
            while await store.trouble() is not None:
                await asyncio.sleep(0.05)
        await recorded(store, entry())


@pytest.mark.parametrize("fate", ["deleted", "moved", "replaced"])
async def test_a_database_that_is_not_at_its_place_any_more_takes_no_calls(
    sqlite_store: Store, tmp_path: Path, fate: str
) -> None:
    path, elsewhere = tmp_path / "postern.db", tmp_path / "elsewhere"
    await recorded(sqlite_store, entry())
    if fate == "deleted":
        path.unlink()
    elif fate == "moved":
        path.rename(elsewhere)
    else:
        shutil.copy(path, elsewhere)
        elsewhere.replace(path)
    with pytest.raises(StoreUnavailable, match="while it was open"):
        await kept(sqlite_store, entry())
    assert "while it was open" in str(await sqlite_store.trouble())
    assert path.exists() == (fate == "replaced")  # nobody has begun an empty one meanwhile
    if fate == "moved":
        elsewhere.rename(path)
        assert await sqlite_store.trouble() is None
        await recorded(sqlite_store, entry())


def test_a_start_without_the_database_of_before_does_not_begin_a_new_one(
    tmp_path: Path, start_program: StartProgram
) -> None:
    program = start_program(POSTERN_ENGINE="none")
    program.stop()
    database = program.data_dir / "postern.db"
    database.unlink()
    for arguments in (["serve"], ["webhooks", "list"]):
        refused = run_postern(tmp_path, *arguments, POSTERN_ENGINE="none", POSTERN_PORT=str(free_port()))
        assert refused.returncode == 1
        assert "There is no database" in refused.stderr
        assert "postern migrate" in refused.stderr
    assert not database.exists()
    assert run_postern(tmp_path, "migrate").returncode == 0
    start_program(POSTERN_ENGINE="none")


@pytest.mark.parametrize(("end", "in_place"), [("kill", False), ("stop", False), ("kill", True)])
def test_a_database_that_is_replaced_does_not_get_the_log_of_the_one_before(
    tmp_path: Path, start_program: StartProgram, end: str, in_place: bool
) -> None:
    """In place: the file keeps its number, as also a copy may get it that is put where a file was removed."""
    webhook = make_webhook(tmp_path / "data")
    program = start_program(POSTERN_ENGINE="none")
    database, backup = program.data_dir / "postern.db", tmp_path / "backup"

    def calls() -> int:
        for _ in range(30):
            filler = b'{"filler": "%s"}' % (b"x" * 20_000)
            assert exchange(program.port, "POST", webhook.path, CALL, filler).status == 200
        with closing(sqlite3.connect(database)) as reading:
            return int(reading.execute("SELECT count(*) FROM invocations").fetchone()[0])

    at_the_backup = calls()
    with closing(sqlite3.connect(database)) as reading, closing(sqlite3.connect(backup)) as writing:
        reading.backup(writing)
    whole = backup.read_bytes()
    if in_place:  # the mark is new at each start
        program.kill()
        program = start_program(POSTERN_ENGINE="none")
    assert calls() > at_the_backup
    if not in_place:
        backup.write_bytes(whole[: len(whole) // 2])
        backup.replace(database)
    getattr(program, end)()
    if in_place:
        database.write_bytes(whole[: len(whole) // 2])
    for _ in range(2):
        refused = run_postern(tmp_path, "serve", POSTERN_ENGINE="none", POSTERN_PORT=str(free_port()))
        assert refused.returncode == 5
        assert "was put in the place of another one and is damaged" in refused.stderr
    database.write_bytes(whole)
    program = start_program(POSTERN_ENGINE="none")
    assert "the log of the earlier one is kept" in program.output()
    with closing(sqlite3.connect(database)) as reading:
        assert reading.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert reading.execute("SELECT count(*) FROM invocations").fetchone() == (at_the_backup,)
    assert calls() == at_the_backup + 30


def test_a_folder_that_is_copied_after_a_power_cut_keeps_its_log(
    tmp_path: Path, start_program: StartProgram
) -> None:
    webhook = make_webhook(tmp_path / "data")
    program = start_program(POSTERN_ENGINE="none")
    assert exchange(program.port, "POST", webhook.path, CALL, b"{}").status == 200
    program.kill()
    shutil.copytree(tmp_path / "data", tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock"))
    program = start_program(POSTERN_ENGINE="none", POSTERN_DATA_DIR=str(tmp_path / "copy"))
    program.stop()
    assert how_many(tmp_path / "copy") == 1


def test_the_pages_that_all_connections_keep_are_bounded(tmp_path: Path) -> None:
    """A listener reads new calls through all of them, one after the other, so that each is filled."""
    database = Database(f"sqlite:///{tmp_path / 'postern.db'}")
    kept = 0
    for engine in (database.readers, database.writer):
        with engine.connect() as connection:
            kept -= connection.exec_driver_sql("PRAGMA cache_size").scalar_one() * (
                8 if engine is database.readers else 1
            )
    database.close()
    assert kept == 48_000  # KiB, as docs/how-to/capacity.md says
