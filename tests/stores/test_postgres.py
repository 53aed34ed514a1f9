"""Things that only a database server does: going away, coming back, and being shared."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, insert, text, update

from postern.core.access.audit import AuditEntry
from postern.core.deliveries.delivery import End, StartAgain, Started, delivery_key
from postern.core.history.invocation import HistoryFilter, StoreUnavailable
from postern.core.history.replay import Replay
from postern.observe.changes import may_have_changed, store_away
from postern.stores.history.retention import Retention
from postern.stores.sql import schema
from postern.stores.sql.tables import deliveries, schedules
from postern.stores.sql.writer import CommitUnknown
from stores.conftest import NOW, entry, opened, recorded, waiting_for_locks
from support.postgres import PostgresProcess
from support.program import StartProgram, run_postern
from support.recording import kept
from support.waiting import PATIENCE, until


async def test_without_the_server_a_call_is_rejected_and_later_ones_are_stored_again(
    own_postgres: PostgresProcess,
) -> None:
    schema.prepare(own_postgres.url, migrates=True)
    async with opened(own_postgres.url) as store:
        (first,) = await recorded(store, entry())
        own_postgres.stop()
        with pytest.raises(StoreUnavailable):
            await kept(store, entry())
        with pytest.raises(StoreUnavailable):
            await store.history.get(first)
        own_postgres.start()
        for one in (first, *await recorded(store, entry())):
            assert await store.history.get(one) is not None


async def test_of_a_commit_whose_answer_is_lost_nobody_says_that_nothing_was_changed(
    migrated_url: str,
) -> None:
    with psycopg.connect(migrated_url, autocommit=True) as other:
        other.execute(
            """CREATE FUNCTION ends() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'"""
        )
        other.execute(
            """CREATE CONSTRAINT TRIGGER ends AFTER INSERT ON idempotency INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION ends()"""
        )
    async with opened(migrated_url) as store:
        may_have_changed.set(False)
        with pytest.raises(CommitUnknown):
            await store.idempotency.begin("ann", "a key", b"", NOW, NOW + 60)
        assert "Look whether it was done" in store_away().detail
        may_have_changed.set(False)
        with pytest.raises(AttributeError):
            await store.writer.write(lambda connection: connection.nothing)  # type: ignore[attr-defined]
        assert store_away().detail.endswith("Nothing was changed.")


async def test_nobody_adds_to_a_call_that_another_process_is_deleting(
    migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    free: list[int] = []
    let_go = Retention._let_go

    def look(connection: Connection, ids: list[str]) -> tuple[set[str], list[str]]:
        """Runs in the middle of it, as a process would that replays the call or writes a note to it."""
        found = let_go(connection, ids)
        with psycopg.connect(migrated_url) as other:
            asked = "SELECT id FROM invocations WHERE id = %s FOR UPDATE SKIP LOCKED"
            free.append(len(other.execute(asked, [one]).fetchall()))
        return found

    monkeypatch.setattr(Retention, "_let_go", staticmethod(look))
    async with opened(migrated_url) as store:
        (one,) = await recorded(store, entry())
        (delivery,) = await store.deliveries.claim(NOW + 60, 30, 10)
        await store.deliveries.started(delivery, Started(1), NOW)
        assert (await store.retention.strip([one]))[0] == 1
        assert await store.retention.delete([one]) == 1
    assert free == [0, 0]


async def test_two_transactions_that_meet_in_opposite_order_both_succeed(migrated_url: str) -> None:
    def touching(*keys: str) -> object:
        def job(connection: Connection) -> None:
            for key in keys:
                touched = update(deliveries).where(deliveries.c.key == key)
                connection.execute(touched.values(attempts=deliveries.c.attempts + 1))
                connection.execute(text("SELECT pg_sleep(0.2)"))

        return job

    async with opened(migrated_url) as one, opened(migrated_url) as other:
        keys = [delivery_key(id, 1) for id in await recorded(one, entry(), entry())]
        await asyncio.gather(one.writer.write(touching(*keys)), other.writer.write(touching(*keys[::-1])))
        assert [(await one.deliveries.get(key)).attempts for key in keys] == [2, 2]  # type: ignore[union-attr]


async def test_other_processes_hear_that_replays_of_many_are_due(migrated_url: str) -> None:
    planned, begun = (AuditEntry(id, NOW, "owner", "admin", "", "rpl_1", {}) for id in ("aud_1", "aud_2"))
    words: asyncio.Queue[str] = asyncio.Queue()
    async with opened(migrated_url) as one, opened(migrated_url) as other:
        (called,) = await recorded(one, entry())
        listening = asyncio.create_task(other.listen(words.put_nowait))
        assert await asyncio.wait_for(words.get(), PATIENCE) == "listening"
        await one.replays.add(Replay("rpl_1", "planned", HistoryFilter(), 1, 0, False, NOW, "owner"), planned)
        await one.replays.begin("rpl_1", "current", "owner", NOW, begun)
        running = await one.replays.claim(NOW, 30)
        assert running is not None
        assert await one.replays.step(running, [StartAgain(called, {})], 0, called, NOW, 30)
        assert await asyncio.wait_for(words.get(), PATIENCE) == "due"
        listening.cancel()


async def test_what_another_process_is_at_keeps_nobody_from_the_next(migrated_url: str) -> None:
    made = {"fingerprint": "", "anchor": 0, "next_run_at": 1, "consecutive_failures": 0}
    with psycopg.connect(migrated_url) as other:
        async with opened(migrated_url) as store:
            for id in ("1", "2"):
                note = AuditEntry(id, NOW, "owner", "admin", "", "rpl_1", {})
                replay = Replay(id, "running", HistoryFilter(), 1, 0, False, NOW, "owner")
                await store.replays.add(replay, note)
                adding = insert(schedules).values(made | {"webhook_id": id})
                await store.writer.write(partial(Connection.execute, statement=adding))
            for table in ("replays", "schedules"):
                other.execute(f"SELECT FROM {table} ORDER BY {table} LIMIT 1 FOR UPDATE")
            async with asyncio.timeout(PATIENCE):
                claimed = await store.replays.claim(NOW, 30)
                (schedule,) = await store.schedules.claim(NOW, 30, 2)
            assert claimed is not None and (claimed.id, schedule.webhook_id) == ("2", "2")


async def test_an_end_that_another_process_is_writing_is_not_counted_twice(migrated_url: str) -> None:
    async with opened(migrated_url) as store:
        await recorded(store, entry())
        (delivery,) = await store.deliveries.claim(NOW + 60, 30, 10)
        await store.deliveries.started(delivery, Started(1), NOW, NOW)
        with psycopg.connect(migrated_url) as writing:
            writing.execute("UPDATE deliveries SET state = 'completed'")
            note = asyncio.create_task(store.endings.note([], {delivery.key: End("completed", NOW)}, {}, NOW))
            await until(lambda: waiting_for_locks(migrated_url) or note.done())
        assert (await note).now == set()


def test_the_first_start_sets_up_an_empty_database_and_no_other(
    start_program: StartProgram, tmp_path: Path, postgres_url: str
) -> None:
    """A command does not, and two starts at once do it once."""
    where = {
        "POSTERN_DATABASE_URL": postgres_url,
        "POSTERN_ENGINE": "none",
        "POSTERN_SECRET_KEYS": "a key of these tests, long enough for both",
    }
    asked = run_postern(tmp_path, "keys", "list", **where)
    assert (asked.returncode, "the database is not set up for Postern" in asked.stderr) == (5, True)
    both = [start_program(ready=False, POSTERN_DATA_DIR=str(tmp_path / name), **where) for name in "ab"]
    for program in both:
        program.wait_until_ready()
    assert run_postern(tmp_path, "keys", "list", **where).returncode == 0


def test_a_start_does_not_set_up_a_database_with_tables_of_others(tmp_path: Path, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE theirs (id int)")
    refused = run_postern(tmp_path, "serve", POSTERN_DATABASE_URL=postgres_url)
    assert (refused.returncode, "`postern migrate` beside other tables" in refused.stderr) == (5, True)
    assert run_postern(tmp_path, "migrate", POSTERN_DATABASE_URL=postgres_url).returncode == 0
    assert run_postern(tmp_path, "keys", "list", POSTERN_DATABASE_URL=postgres_url).returncode == 0


def test_two_migrations_at_once_are_one_after_the_other(tmp_path: Path, postgres_url: str) -> None:
    migrate = partial(run_postern, tmp_path, POSTERN_DATABASE_URL=postgres_url)
    with ThreadPoolExecutor(2) as threads:
        ended = list(threads.map(migrate, ["migrate"] * 2))
    assert [(one.returncode, one.stderr) for one in ended] == [(0, ""), (0, "")]


def test_ids_are_compared_byte_by_byte_whatever_the_server_was_set_up_with(migrated_url: str) -> None:
    """The order of most languages skips the dot in a delivery's key, and ranges of keys would miss what they
    are to find."""
    with psycopg.connect(migrated_url) as connection:
        asked = "SELECT DISTINCT collation_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'"
        found = connection.execute(f"{asked} AND data_type = 'character varying'".encode()).fetchall()
        assert found == [("C",)]
