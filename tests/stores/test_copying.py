"""Moving from one database to the other."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import psycopg
import pytest

from postern.stores import copying
from postern.stores.copying import CannotCopy, copy_all
from postern.stores.sql.database import Database
from postern.usecases.shapes import validated
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.requests import WebhookRequest
from stores.conftest import entry, opened, recorded
from support.program import StartProgram, run_postern
from support.recording import kept
from support.rooms import ADMIN, gateway_on


async def filled(folder: Path, calls: int = 300) -> str:
    """A SQLite database with some of everything that is awkward: secrets, bytes, keys of several columns."""
    async with gateway_on(folder) as (gateway, _):
        token = {"method": "token", "token": "whk_a_token_that_is_long_enough"}
        settings = validated(WebhookRequest, {"name": "Orders", "authentication": token})
        await webhooks.create(gateway, ADMIN, settings)
        made = (entry(key=n.to_bytes(32, "big"), body=bytes([n % 256, 0, 255])) for n in range(calls))
        await recorded(gateway.store, *made)  # type: ignore[arg-type]
    return f"sqlite:///{folder / 'postern.db'}"


@asynccontextmanager
async def both(folder: Path, url: str, calls: int = 300) -> AsyncIterator[tuple[Database, Database]]:
    with closing(Database(await filled(folder, calls))) as source, closing(Database(url)) as target:
        yield source, target


def quiet(*_: object) -> None:
    pass


async def test_everything_arrives_and_is_compared(tmp_path: Path, postgres_url: str) -> None:
    progress: list[tuple[str, int, int]] = []
    async with both(tmp_path, postgres_url) as (source, target):
        sums = copy_all(source, target, lambda *step: progress.append(step))
    assert {sums[table].rows for table in ("invocations", "deliveries", "duplicate_keys")} == {300}
    assert progress[-1][1] == progress[-1][2]
    async with opened(postgres_url, "a key of the tests, long enough") as store:
        (webhook,) = await store.webhooks.page(10)
        assert webhook.secrets["main"].value == b"whk_a_token_that_is_long_enough"
        assert len(await store.deliveries.claim(1_900_000_000, 30, 1000)) == 300
        assert (await kept(store, entry(key=bytes(32), at=1_800_000_001))).first is not None


async def test_an_interrupted_copy_goes_on_where_it_was(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "STEP_ROWS", 50)

    class Interrupted(Exception):
        pass

    def interrupt(table: str, done: int, _: int) -> None:
        if table == "duplicate_keys" and done >= 100:
            raise Interrupted

    async with both(tmp_path, postgres_url) as (source, target):
        with pytest.raises(Interrupted):
            copy_all(source, target, interrupt)
        resumed: dict[str, int] = {}
        sums = copy_all(source, target, lambda table, done, _: resumed.setdefault(table, done))
    assert resumed["duplicate_keys"] == 100
    assert sums["duplicate_keys"].rows == 300


async def test_a_row_that_differs_is_noticed(tmp_path: Path, postgres_url: str) -> None:
    def spoil(table: str, done: int, total: int) -> None:
        if table == "webhooks" and done == total:
            with psycopg.connect(postgres_url, autocommit=True) as connection:
                connection.execute("UPDATE webhooks SET name = name || ' '")

    async with both(tmp_path, postgres_url, 20) as (source, target):
        with pytest.raises(CannotCopy, match="webhooks differs"):
            copy_all(source, target, spoil)


async def test_a_target_with_something_in_it_is_left_alone(tmp_path: Path, migrated_url: str) -> None:
    async with opened(migrated_url) as store, both(tmp_path, migrated_url, 5) as (source, target):
        await kept(store, entry())
        with pytest.raises(CannotCopy, match="the target is not empty"):
            copy_all(source, target, quiet)
    with psycopg.connect(migrated_url) as connection:
        assert connection.execute("SELECT count(*) FROM invocations").fetchone() == (1,)


async def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE theirs (id int)")
    async with both(tmp_path, postgres_url, 5) as (source, target):
        with pytest.raises(CannotCopy, match=r"tables that are not Postern's"):
            copy_all(source, target, quiet)


@pytest.mark.parametrize(
    ("whence", "where", "said"),
    [
        ("sqlite:///", "sqlite:///new.db", "must be sqlite:/// with the path of a file"),
        ("sqlite:///old.db", "sqlite:///new.db?mode=memory", "must be sqlite:/// with the path of a file"),
        ("", "sqlite:///new.db", "must be sqlite:/// with the path of a file"),
        ("sqlite:///old.db", "mysql://new", "must be sqlite:/// with the path of a file"),
        ("sqlite:///old.db", "sqlite:///old.db", "are the same database"),
    ],
)
def test_the_command_takes_no_database_in_memory_and_not_one_for_both(
    tmp_path: Path, whence: str, where: str, said: str
) -> None:
    ran = run_postern(tmp_path, "copy", "--from", whence, "--to", where)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"--from and --to {said}")


def test_the_command_copies_and_refuses_while_a_gateway_serves(
    tmp_path: Path, postgres_url: str, start_program: StartProgram
) -> None:
    program = start_program()
    source = f"sqlite:///{program.data_dir / 'postern.db'}"
    refused = run_postern(tmp_path, "copy", "--from", source, "--to", postgres_url)
    assert refused.returncode == 1
    assert "already serves" in refused.stderr
    program.stop()
    copied = run_postern(tmp_path, "copy", "--from", source, "--to", postgres_url)
    assert (copied.returncode, copied.stdout.startswith("Copied and compared: ")) == (0, True), copied.stderr
    as_rented = postgres_url.replace("postgresql://", "postgres://")
    again = run_postern(tmp_path, "copy", "--from", source, "--to", as_rented)
    said = "This copy was finished before: nothing was done now, and what either of them got since is not in the other.\n"
    assert (again.returncode, again.stdout) == (0, said)
    with psycopg.connect(postgres_url) as connection:
        connection.execute("DELETE FROM meta WHERE name = 'copied from'")
    other = run_postern(tmp_path, "copy", "--from", source, "--to", postgres_url)
    assert other.returncode == 1
    assert "the target is not empty" in other.stderr
