"""Moving from one database to the other."""

import asyncio
from pathlib import Path

import psycopg
import pytest

from postern.stores import copying
from postern.stores.copying import CannotCopy, copy_all
from postern.stores.sql.database import Database
from postern.stores.store import Store
from postern.usecases.shapes import validated
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.requests import WebhookRequest
from stores.conftest import entry
from support.program import StartProgram, run_postern
from support.recording import kept
from support.rooms import ADMIN, gateway_on

KEYS = ["a key of the tests, long enough"]


async def filled(folder: Path, calls: int = 300) -> str:
    """A SQLite database with some of everything that is awkward: secrets, bytes, keys of several columns."""
    async with gateway_on(folder) as (gateway, _):
        token = {"method": "token", "token": "whk_a_token_that_is_long_enough"}
        await webhooks.create(
            gateway, ADMIN, validated(WebhookRequest, {"name": "Orders", "authentication": token})
        )
        await asyncio.gather(
            *(
                kept(gateway.store, entry(key=n.to_bytes(32, "big"), body=bytes([n % 256, 0, 255])))
                for n in range(calls)
            )
        )
    return f"sqlite:///{folder / 'postern.db'}"


def quiet(*_: object) -> None:
    pass


async def test_everything_arrives_and_is_compared(tmp_path: Path, postgres_url: str) -> None:
    source, target = Database(await filled(tmp_path)), Database(postgres_url)
    progress: list[tuple[str, int, int]] = []
    sums = copy_all(source, target, lambda *step: progress.append(step))
    assert (sums["invocations"].rows, sums["deliveries"].rows, sums["duplicate_keys"].rows) == (300, 300, 300)
    assert progress[-1][1] == progress[-1][2]
    source.close()
    target.close()
    store = Store(postgres_url, KEYS)
    await store.open()
    assert [webhook.secrets["main"].value for webhook in await store.webhooks.page(10)] == [
        b"whk_a_token_that_is_long_enough"
    ]
    assert len(await store.deliveries.claim(1_900_000_000, 30, 1000)) == 300
    assert (await kept(store, entry(key=bytes(32), at=1_800_000_001))).first is not None
    await store.close()


async def test_an_interrupted_copy_goes_on_where_it_was(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "STEP_ROWS", 50)
    source, target = Database(await filled(tmp_path)), Database(postgres_url)

    class Interrupted(Exception):
        pass

    def interrupt(table: str, done: int, _: int) -> None:
        if table == "duplicate_keys" and done >= 100:
            raise Interrupted

    with pytest.raises(Interrupted):
        copy_all(source, target, interrupt)
    resumed: dict[str, int] = {}
    sums = copy_all(source, target, lambda table, done, _: resumed.setdefault(table, done))
    assert resumed["duplicate_keys"] == 100
    assert sums["duplicate_keys"].rows == 300
    source.close()
    target.close()


async def test_a_row_that_differs_is_noticed(tmp_path: Path, postgres_url: str) -> None:
    source, target = Database(await filled(tmp_path, 20)), Database(postgres_url)

    def spoil(table: str, done: int, total: int) -> None:
        if table == "webhooks" and done == total:
            with psycopg.connect(postgres_url, autocommit=True) as connection:
                connection.execute("UPDATE webhooks SET name = name || ' '")

    with pytest.raises(CannotCopy, match="webhooks differs"):
        copy_all(source, target, spoil)
    source.close()
    target.close()


async def test_a_target_with_something_in_it_is_left_alone(tmp_path: Path, migrated_url: str) -> None:
    store = Store(migrated_url, KEYS)
    await store.open()
    await kept(store, entry())
    source, target = Database(await filled(tmp_path, 5)), Database(migrated_url)
    with pytest.raises(CannotCopy, match="the target is not empty"):
        copy_all(source, target, quiet)
    with psycopg.connect(migrated_url) as connection:
        assert connection.execute("SELECT count(*) FROM invocations").fetchone() == (1,)
    source.close()
    target.close()
    await store.close()


async def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE theirs (id int)")
    source, target = Database(await filled(tmp_path, 5)), Database(postgres_url)
    with pytest.raises(CannotCopy, match=r"tables that are not Postern's"):
        copy_all(source, target, quiet)
    source.close()
    target.close()


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
    assert (again.returncode, again.stdout) == (
        0,
        "This copy was finished before: nothing was done now, and what either of them got since is not in the other.\n",
    )
    with psycopg.connect(postgres_url) as connection:
        connection.execute("DELETE FROM meta WHERE name = 'copied from'")
    other = run_postern(tmp_path, "copy", "--from", source, "--to", postgres_url)
    assert other.returncode == 1
    assert "the target is not empty" in other.stderr
