"""`make written`: what this version leaves on the disk, kept in `tests/written/` so that later versions are tried with it: a
database and an engine's journal, as they lie there, and a sealed backup of them (`tests/journeys/test_written_before.py`); and
a database with one of everything, beside all that this version reads of it (`tests/test_written.py`).

Until the first release it is written anew whenever the tables change; `make schema` does that. What a released version wrote
stays. The keys in it are nobody's.
"""

import asyncio
import gzip
import json
import logging
import sqlite3
import sys
import tarfile
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.client import admin_of  # noqa: E402
from support.everything import fill, read  # noqa: E402
from support.program import Program, run_postern  # noqa: E402
from support.waiting import wait_until  # noqa: E402
from support.wire import exchange  # noqa: E402

FOLDER = ROOT / "tests" / "written"
PASSPHRASE = "correct horse battery"
TOKEN = "whk_of_what_was_written_before_0123456789"
WORKFLOW = """
from postern.workflows import Event, sleep, step, workflow


@step
def weigh(grams: int) -> int:
    return grams * 2


@workflow
def weigh_twice(event: Event) -> dict:
    once = weigh(event["payload"]["grams"])
    sleep(event["payload"]["wait"])
    return {"grams": weigh(once)}
"""
WEBHOOK = {
    "name": "Orders",
    "folder": "Shops/Europe",
    "tags": ["written"],
    "authentication": {"method": "token", "token": TOKEN},
    "fieldMapping": {"fieldOne": "order.id"},
    "duplicateProtection": {"enabled": True, "key": "order.id"},
    "rateLimit": {"callsPerSecond": 7.5, "burst": 30},
    "arrays": "whole",
}
ENDED, CUT = (
    b'{"order":{"id":"1001"},"grams":10,"wait":0}',
    b'{"order":{"id":"1002"},"grams":20,"wait":20}',
)
"""The bodies of two calls: the run of one has ended, and that of the other sleeps when its program stops."""


def write(folder: Path, work: Path) -> None:
    workflows = work / "workflows"
    workflows.mkdir()
    (workflows / "weigh.py").write_text(WORKFLOW)
    (work / "passphrase").write_text(PASSPHRASE)
    program = Program(work, {"POSTERN_WORKFLOWS": str(workflows), "POSTERN_LOG": "off"})
    try:
        program.wait_until_ready()
        api = admin_of(program)
        path = "/webhook/" + api.post("webhooks", WEBHOOK).json["url"].rpartition("/")[2]
        for body in (ENDED, CUT):
            assert exchange(program.port, "POST", path, [("X-Api-Key", TOKEN)], body).status == 200
        database, journal = (program.data_dir / name for name in ("postern.db", "engine.db"))
        for file, query in (
            (journal, "SELECT count(*) FROM runs WHERE state IS NULL AND wake_at IS NOT NULL"),
            (database, "SELECT count(*) FROM deliveries WHERE ended_at IS NOT NULL"),
        ):
            wait_until(lambda file=file, query=query: counted(file, query) == 1, what=query)  # type: ignore[misc]
    finally:
        program.stop()
    sealed = run_postern(
        work, "backup", str(folder / "sealed.backup"), "--replace", "--passphrase", "file:passphrase"
    )
    assert sealed.returncode == 0, sealed.stderr
    pack(program.data_dir, folder / "data.tar.gz", "postern.db", "engine.db")


def write_everything(folder: Path, work: Path) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    unread = asyncio.run(fill(work))
    pack(work / "data", folder / "everything.tar.gz", "postern.db")
    lines = asyncio.run(read(work, unread))
    (folder / "everything.txt").write_text("\n".join([json.dumps(unread), *lines]) + "\n")


def pack(data: Path, archive: Path, *databases: str) -> None:
    for name in databases:
        with closing(sqlite3.connect(data / name)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with gzip.open(archive, "wb") as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for name in (*databases, "secret.key"):
            tar.add(data / name, name)


def counted(file: Path, query: str) -> int:
    with closing(sqlite3.connect(file)) as database:
        return int(database.execute(query).fetchone()[0])


if __name__ == "__main__":
    for part in (write, write_everything):
        with TemporaryDirectory() as work:
            part(FOLDER, Path(work))
