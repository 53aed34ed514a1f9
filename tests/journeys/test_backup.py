"""A backup that is made while calls come in, and put back: it holds everything that was acknowledged before, and
what goes on from there loses nothing and does nothing twice."""

import json
import sys
import tarfile
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from journeys.cluster import Callers
from support.forks import impatient
from support.packed import unpack
from support.program import Program, StartProgram, clean_environment, run_command, run_postern
from support.stored import rows
from support.waiting import wait_until
from support.webhooks import TOKEN, UNLIMITED, make_webhook

BACKUPS = 2
FOUND_AT_ONCE = impatient(
    **{
        "postern.usecases.history.findable.SETTLED": 0.2,
        "postern.usecases.history.findable.CHECK_CALLS_EVERY": 0.1,
    }
)
"""Seconds after which calls can be found by their values."""

TWO_STEPS = """
import os

from postern.workflows import Event, sleep, step, workflow


def note(line):
    with open(os.environ["NOTES"], "a") as notes:
        notes.write(line + "\\n")


@step
def first(call: str) -> None:
    note(f"{call} first")


@step
def second(call: str) -> None:
    note(f"{call} second")


@workflow
def two_steps(event: Event) -> None:
    first(event["invocationId"])
    sleep(2)  # so that runs are cut in two on a busy machine, too
    second(event["invocationId"])
"""

# What is written once and never changed, in the order of its rows.
UNCHANGED = ("webhooks", "secrets", "invocations", "audit", "users", "meta", "epochs")


def recorded_steps(data_dir: Path) -> Counter[str]:
    """`<invocation> <step>` for each step whose result the journal has."""
    found = rows(
        data_dir / "engine.db",
        "SELECT runs.delivery, steps.name FROM steps JOIN runs ON run = seq WHERE name IN ('first', 'second')",
    )
    return Counter(f"{delivery.partition('.')[0]} {name}" for delivery, name in found)


def restored(folder: Path, backup: Path) -> Path:
    data_dir = folder / f"restored-{backup.name}"
    done = run_postern(folder, "restore", str(backup), POSTERN_DATA_DIR=str(data_dir))
    assert done.returncode == 0, done.stderr
    return data_dir


def test_what_is_backed_up_under_load_goes_on_after_a_restore(
    tmp_path: Path, start_program: StartProgram
) -> None:
    workflows = tmp_path / "workflows"
    workflows.mkdir()
    (workflows / "two_steps.py").write_text(TWO_STEPS)
    webhook = make_webhook(tmp_path / "data", rateLimit=UNLIMITED)
    settings = {"POSTERN_WORKFLOWS": str(workflows), "POSTERN_LOG": "off"}
    program = start_program(**settings, **FOUND_AT_ONCE, NOTES=str(tmp_path / "notes"))
    program.wait_for_engine()
    known: dict[Path, set[str]] = {}
    with closing(Callers([program.port], webhook.path, **{"X-Api-Key": TOKEN})) as callers:
        for number in range(BACKUPS):
            enough = 100 * (number + 1)
            wait_until(lambda enough=enough: len(callers.acknowledged) > enough, what="calls")  # type: ignore[misc]
            file = tmp_path / f"backup-{number}"
            known[file] = set(callers.acknowledged)
            made = run_postern(tmp_path, "backup", str(file), "--keys")
            assert made.returncode == 0, made.stderr
    assert (callers.lost, callers.refused) == (0, {})
    live = program.data_dir / "postern.db"
    for backup, acknowledged in known.items():
        database = restored(tmp_path, backup) / "postern.db"
        for table in UNCHANGED:
            assert set(rows(database, f"SELECT * FROM {table}")) <= set(
                rows(live, f"SELECT * FROM {table}")
            ), table
        assert acknowledged <= {id for (id,) in rows(database, "SELECT id FROM invocations")}
        journal = database.with_name("engine.db")
        deliveries = dict(rows(database, "SELECT key, state FROM deliveries"))
        runs = {delivery for (delivery,) in rows(journal, "SELECT delivery FROM runs")}
        assert {key for key, state in deliveries.items() if state == "started"} <= runs <= deliveries.keys()
        assert (
            rows(database, "PRAGMA integrity_check") == rows(journal, "PRAGMA integrity_check") == [("ok",)]
        )
    it_is_the_same_when_nothing_is_written(tmp_path, program)
    program.stop()

    data_dir = database.parent
    before = recorded_steps(data_dir)
    calls = {id for (id,) in rows(database, "SELECT id FROM invocations WHERE outcome = 'accepted'")}
    assert len(calls) > 100 * BACKUPS and len(before) < 2 * len(calls), "no run was cut in two"
    after = start_program(**settings, NOTES=str(tmp_path / "notes-after"), POSTERN_DATA_DIR=str(data_dir))
    wait_until(
        lambda: recorded_steps(data_dir).total() == 2 * len(calls),
        what=lambda: f"{2 * len(calls)} steps; there are {recorded_steps(data_dir).total()}",
        every=0.5,
    )
    after.stop()
    done_again = Counter((tmp_path / "notes-after").read_text().splitlines())
    assert before + done_again == Counter(f"{call} {step}" for call in calls for step in ("first", "second"))


def it_is_the_same_when_nothing_is_written(folder: Path, program: Program) -> None:
    """Every row of every table, of the database and of the journal."""
    data_dir = program.data_dir

    def at_rest() -> bool:
        waiting = rows(
            data_dir / "postern.db",
            "SELECT count(*) FROM deliveries WHERE state = 'queued' OR ended_at IS NULL",
        )
        running = rows(data_dir / "engine.db", "SELECT count(*) FROM runs WHERE state IS NULL")
        reached = "SELECT reached FROM chores WHERE name = 'findable'"
        not_found = rows(
            data_dir / "postern.db", f"SELECT count(*) FROM invocations WHERE id > coalesce(({reached}), '')"
        )
        return waiting == running == not_found == [(0,)]

    wait_until(at_rest, what="every run to end, and every call to be found by its values", every=0.3)
    backup = folder / "at-rest"
    assert run_postern(folder, "backup", str(backup), "--keys").returncode == 0
    copy = restored(folder, backup)
    for name in ("postern.db", "engine.db"):
        tables = rows(data_dir / name, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
        assert tables == rows(copy / name, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
        for (table,) in tables:
            if table in ("chores", "tallies", "volumes", "volume_rollups"):
                continue  # a running gateway goes on writing these
            here, there = (set(rows(place / name, f"SELECT * FROM {table}")) for place in (data_dir, copy))
            assert here == there, table
    assert (copy / "secret.key").read_text() == (data_dir / "secret.key").read_text()
    assert {oct(file.stat().st_mode & 0o777) for file in copy.iterdir()} <= {"0o600", "0o644"}
    assert oct((copy / "postern.db").stat().st_mode & 0o777) == "0o600"


# --- what is refused, and what is said --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `data`, a webhook and its secret in it, and backups of it."""
    folder = tmp_path_factory.mktemp("source")
    make_webhook(folder / "data")
    (folder / "passphrase").write_text("correct horse\n")
    assert run_postern(folder, "backup", "plain", "--keys").returncode == 0
    assert run_postern(folder, "backup", "bare").returncode == 0
    assert run_postern(folder, "backup", "sealed", "--passphrase", "file:passphrase").returncode == 0
    return folder


def key_of(source: Path) -> str:
    return (source / "data" / "secret.key").read_text().strip()


def test_the_key_is_in_it_only_when_asked_for_and_never_readable_when_sealed(source: Path) -> None:
    for name, holds in {"plain": True, "bare": False, "sealed": False}.items():
        with tarfile.open(source / name) as archive:
            content = b"".join(archive.extractfile(one).read() for one in archive)  # type: ignore[union-attr]
        assert (key_of(source).encode() in content) is holds, name
        assert (source / name).stat().st_mode & 0o777 == 0o600


def test_sealed_keys_come_back_with_their_passphrase_alone(source: Path, tmp_path: Path) -> None:
    asked = run_postern(tmp_path, "restore", str(source / "sealed"))
    assert (asked.returncode, "--passphrase" in asked.stderr) == (1, True), asked.stderr
    wrong = run_postern(tmp_path, "restore", str(source / "sealed"), "--passphrase", "env:WORD", WORD="wrong")
    assert (wrong.returncode, "not the passphrase" in wrong.stderr) == (1, True), wrong.stderr
    assert not (tmp_path / "data" / "postern.db").exists()
    passphrase = f"file:{source / 'passphrase'}"
    right = run_postern(tmp_path, "restore", str(source / "sealed"), "--passphrase", passphrase)
    assert right.returncode == 0, right.stderr
    assert (tmp_path / "data" / "secret.key").read_text().strip() == key_of(source)
    assert "A webhook" in run_postern(tmp_path, "webhooks", "list").stdout


def test_a_backup_without_its_keys_says_which_are_needed(source: Path, tmp_path: Path) -> None:
    done = run_postern(tmp_path, "restore", str(source / "bare"))
    assert done.returncode == 0
    assert "Its secrets need the key" in done.stderr
    given = run_postern(tmp_path, "webhooks", "list", POSTERN_SECRET_KEYS=key_of(source))
    assert "A webhook" in given.stdout, given.stderr


def test_other_keys_than_the_backup_s_are_refused_before_anything_is_changed(
    source: Path, tmp_path: Path
) -> None:
    for name in ("bare", "plain"):
        other = run_postern(
            tmp_path, "restore", str(source / name), POSTERN_SECRET_KEYS="another key that is long enough"
        )
        assert (other.returncode, "POSTERN_SECRET_KEYS as it was" in other.stderr) == (1, True), other.stderr
    assert not (tmp_path / "data" / "postern.db").exists()


def test_several_keys_are_put_into_a_file_of_their_own(tmp_path: Path) -> None:
    keys = "the first key that is long enough,the second key that is long enough"
    made = tmp_path / "made"
    make_webhook(made / "data", environment={"POSTERN_SECRET_KEYS": keys})
    assert run_postern(made, "backup", "all", "--keys", POSTERN_SECRET_KEYS=keys).returncode == 0
    done = run_postern(tmp_path, "restore", str(made / "all"))
    assert done.returncode == 0, done.stderr
    file = tmp_path / "data" / "secret-keys"
    assert f"POSTERN_SECRET_KEYS_FILE={file}" in done.stdout
    assert "A webhook" in run_postern(tmp_path, "webhooks", "list", POSTERN_SECRET_KEYS_FILE=str(file)).stdout


def test_a_database_that_is_there_is_moved_aside_and_not_overwritten(source: Path, tmp_path: Path) -> None:
    make_webhook(tmp_path / "data", name="Mine")
    here = (tmp_path / "data" / "postern.db").read_bytes()
    refused = run_postern(tmp_path, "restore", str(source / "plain"))
    assert (refused.returncode, "--replace moves it aside" in refused.stderr) == (1, True)
    assert (tmp_path / "data" / "postern.db").read_bytes() == here
    assert run_postern(tmp_path, "restore", str(source / "plain"), "--replace").returncode == 0
    (aside,) = (tmp_path / "data").glob("postern.db.before-*")
    assert aside.read_bytes() == here
    assert len(list((tmp_path / "data").glob("secret.key.before-*"))) == 1
    assert "Mine" not in run_postern(tmp_path, "webhooks", "list").stdout


def test_a_serving_gateway_is_not_restored_over(
    tmp_path: Path, source: Path, start_program: StartProgram
) -> None:
    start_program(POSTERN_ENGINE="none")
    refused = run_postern(tmp_path, "restore", str(source / "plain"), "--replace")
    assert (refused.returncode, "already serves" in refused.stderr) == (1, True)


def test_a_file_is_overwritten_only_when_asked(source: Path) -> None:
    before = (source / "plain").read_bytes()
    assert run_postern(source, "backup", "plain", "--keys").returncode == 1
    assert (source / "plain").read_bytes() == before


def test_a_backup_of_a_newer_version_is_refused(source: Path, tmp_path: Path) -> None:
    unpack(source / "bare", tmp_path / "parts")
    manifest = tmp_path / "parts" / "manifest.json"
    written = json.loads(manifest.read_text())
    for change in ({"schema": "9999", "version": "9.0.0"}, {"format": 2, "version": "9.0.0"}):
        manifest.write_text(json.dumps({**written, **change}))
        newer = tmp_path / "newer"
        with tarfile.open(newer, "w:gz") as archive:
            for name in ("manifest.json", "postern.db"):
                archive.add(tmp_path / "parts" / name, name)
        done = run_postern(tmp_path, "restore", str(newer))
        assert (done.returncode, "made by version 9.0.0" in done.stderr) == (1, True), done.stderr


def test_a_disk_without_room_is_not_called_a_damaged_file(source: Path, tmp_path: Path) -> None:
    def run(folder: Path, *words: str) -> str:
        """No file can be larger than this, as on a disk that is full by then."""
        # Nor can what Python keeps of a module: half of it would be taken for the whole by every later start.
        given = {"POSTERN_DATA_DIR": str(folder / "data"), "PYTHONDONTWRITEBYTECODE": "1"}
        command = ("prlimit", "--fsize=40000", sys.executable, "-m", "postern", *words)
        done = run_command(*command, folder=folder, environment=clean_environment(given))
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
        return done.stderr

    (tmp_path / "there").mkdir()
    refused = run(source, "backup", str(tmp_path / "there" / "new"))
    assert f"cannot be copied to {tmp_path / 'there'}: " in refused
    assert list((tmp_path / "there").iterdir()) == []
    refused = run(tmp_path, "restore", str(source / "plain"))
    assert f"plain cannot be unpacked into {tmp_path / 'data'}: File too large" in refused
    assert not list((tmp_path / "data").glob("*.db*rest*"))


def test_on_postgres_it_says_what_to_use_instead(tmp_path: Path) -> None:
    done = run_postern(tmp_path, "backup", "file", POSTERN_DATABASE_URL="postgresql://nobody@127.0.0.1/x")
    assert (done.returncode, "Postgres' own tools" in done.stderr) == (1, True)
