"""Files that are no backup, or were made to look like one, and places where a backup is not written to."""

import gzip
import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from postern.settings import Settings
from postern.wiring.backup import keys, making, restoring
from postern.wiring.backup.contents import BackupFailed
from postern.wiring.backup.making import back_up
from support.forks import Fork
from support.fresh import fresh_data
from support.program import clean_environment, run_postern
from support.stored import rows
from support.waiting import PATIENCE, wait_until

RANDOM = bytes(range(256)) * 40
PASSPHRASE = "correct horse"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"hello", "it is not compressed as one"),
        (gzip.compress(RANDOM)[:200], "it ends too early"),
        (gzip.compress(RANDOM), "its contents are not what was written"),
    ],
)
def test_a_file_that_is_no_backup_is_said_to_be_none_in_plain_words(
    tmp_path: Path, content: bytes, why: str
) -> None:
    (tmp_path / "file").write_bytes(content)
    done = run_postern(tmp_path, "restore", "file")
    assert done.returncode == 1
    assert done.stderr.strip() == f"file is no backup of Postern, or it is damaged: {why}"


def settings_of(folder: Path, **more: str) -> Settings:
    return Settings({"POSTERN_DATA_DIR": str(folder), **more})


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with backups beside it."""
    folder = tmp_path_factory.mktemp("source") / "data"
    fresh_data(folder)
    for name, passphrase in {"plain": None, "sealed": PASSPHRASE}.items():
        made(folder, folder.parent / name, passphrase=passphrase)
    return folder


def made(folder: Path, file: Path, passphrase: str | None = None, replace: bool = False, **more: str) -> Path:
    back_up(settings_of(folder, **more), file, with_keys=True, passphrase=passphrase, replace=replace)
    return file


def contents(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as archive:
        return {one.name: archive.extractfile(one).read() for one in archive}  # type: ignore[union-attr]


Forge = Callable[..., Path]


@pytest.fixture
def forge(source: Path, tmp_path: Path) -> Forge:
    """A backup with other contents, whose sums are right. Of ``None`` nothing is in it."""

    def write(
        parts: dict[str, bytes | None],
        says: dict[str, object] | None = None,
        of: str = "plain",
        again: tuple[str, ...] = (),
    ) -> Path:
        files = {
            name: part for name, part in {**contents(source.parent / of), **parts}.items() if part is not None
        }
        manifest = json.loads(files.pop("manifest.json"))
        sums = {name: hashlib.sha256(part).hexdigest() for name, part in files.items()}
        document = json.dumps({**manifest, "sha256": sums, **(says or {})}).encode()
        forged = tmp_path / "forged"
        with tarfile.open(forged, "w:gz") as archive:
            for name, part in [("manifest.json", document), *files.items(), *((one, b"") for one in again)]:
                member = tarfile.TarInfo(name)
                member.size = len(part)
                archive.addfile(member, io.BytesIO(part))
        return forged

    return write


def restored(
    file: Path, where: Path, passphrase: str | None = None, replace: bool = False, **more: str
) -> restoring.Restored:
    return restoring.restore(settings_of(where, **more), file, passphrase=passphrase, replace=replace)


def refusal_of(file: Path, where: Path, passphrase: str | None = None) -> str:
    with pytest.raises(BackupFailed) as refused:
        restored(file, where, passphrase, replace=True)
    assert set(os.listdir(where)) <= {"serving.lock", "postern.db.lock"}
    return str(refused.value).replace(str(file), "FILE")


def a_database(folder: Path, *statements: str) -> bytes:
    file = folder / "made.db"
    for statement in statements:
        rows(file, statement)
    return file.read_bytes()


def test_a_backup_with_another_database_in_it_is_refused_however_right_its_sums_are(
    forge: Forge, source: Path, tmp_path: Path
) -> None:
    broken = bytearray(contents(source.parent / "plain")["postern.db"])
    broken[4096 * 3 : 4096 * 6] = b"\xff" * 4096 * 3
    foreign = a_database(
        tmp_path, "CREATE TABLE alembic_version (version_num)", "INSERT INTO alembic_version VALUES ('')"
    )
    cannot = "FILE is damaged: postern.db in it cannot be used: "
    where = tmp_path / "data"
    assert refusal_of(forge({"postern.db": b"hello"}), where) == f"{cannot}file is not a database"
    assert refusal_of(forge({"postern.db": b""}), where) == f"{cannot}no such table: alembic_version"
    # A newer SQLite names the tree before the page.
    damaged = refusal_of(forge({"postern.db": bytes(broken)}), where)
    assert re.match(re.escape(cannot) + r"(Tree \d+ p|P)age \d", damaged), damaged
    another = f"{cannot}its schema is another one than the backup says"
    assert refusal_of(forge({"postern.db": foreign}), where) == another
    assert "a version before the first release: with that version" in refusal_of(
        forge({}, {"schema": "0001"}), where
    )
    assert refusal_of(forge({"postern.db": None}), where) == "FILE is damaged: there is no database in it"
    assert "engine.db in it cannot be used: file is not a database" in refusal_of(
        forge({"engine.db": b"hello"}), where
    )


def test_nothing_but_a_backup_s_own_files_may_be_in_one(forge: Forge, tmp_path: Path) -> None:
    for name in ("other", "../evil"):
        said = refusal_of(forge({name: b"hello"}), tmp_path / "data")
        assert said == f"FILE holds {name}, which does not belong into a backup"
    for name in ("postern.db", "keys"):
        said = refusal_of(forge({}, again=(name,)), tmp_path / "data")
        assert said == f"FILE is damaged: it holds {name} twice"


def test_keys_that_are_not_those_of_the_backup_s_secrets_are_not_put_into_place(
    forge: Forge, source: Path, tmp_path: Path
) -> None:
    where = tmp_path / "data"
    said = refusal_of(forge({"keys": b"some other key that is long enough\n"}), where)
    assert "and the keys in it are " in said and said.endswith(
        "POSTERN_SECRET_KEYS as it was when the backup was made"
    )
    assert "the keys in it are none" in refusal_of(forge({"keys": b",,,"}), where)
    not_text = "FILE is damaged: the keys in it are not text"
    assert refusal_of(forge({"keys": b"\xff\xfe"}), where) == not_text
    sealed = keys.sealed_with(b"\xff\xfe", PASSPHRASE)
    forged = forge({"keys.sealed": sealed, "keys": None}, of="sealed")
    assert refusal_of(forged, where, PASSPHRASE) == not_text
    wrong = refusal_of(forge({"keys.sealed": b"short"}, of="sealed"), where, PASSPHRASE)
    assert wrong == "this is not the passphrase with which the keys in the backup were sealed"
    assert restored(forge({"keys": b" \n"}), where).missing_keys
    given = (source / "secret.key").read_text().strip()
    done = restored(forge({"keys": b"x" * 40}), tmp_path / "given", POSTERN_SECRET_KEYS=given)
    assert (done.keys_file, done.missing_keys) == (None, False)


def test_a_sealed_backup_has_every_key(source: Path, tmp_path: Path) -> None:
    both = f"a newer key that is long enough,{(source / 'secret.key').read_text().strip()}"
    file = made(source, tmp_path / "file", passphrase=PASSPHRASE, POSTERN_SECRET_KEYS=both)
    restored(file, tmp_path / "data", PASSPHRASE)
    assert (tmp_path / "data" / "secret-keys").read_text().strip() == both


def test_a_restore_that_cannot_be_ended_puts_back_what_it_has_moved(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = tmp_path / "data"
    fresh_data(where)
    (where / "secret.key").write_text("a key of its own that is long enough\n")
    for name in ("engine.db", "engine.working", "postern.db-wal"):
        (where / name).write_text(name)
    before = {file.name: file.read_bytes() for file in where.iterdir()}

    def no_room(_: Path) -> None:
        raise OSError(28, "No space left on device", "data")

    with monkeypatch.context() as changed:
        changed.setattr(restoring, "sync_folder", no_room)
        with pytest.raises(OSError, match="No space"):
            restored(source.parent / "plain", where, replace=True)
    locks = {"serving.lock", "postern.db.lock"}
    assert {file.name: file.read_bytes() for file in where.iterdir() if file.name not in locks} == before
    for again in range(2):  # within a second, most likely
        done = restored(source.parent / "plain", where, replace=True)
        assert len(done.moved_aside) == (1 if again else 3)
        assert not (where / "postern.db-wal").exists(), "the old one's log would be taken for the new one's"
    aside = [file.name for file in where.glob("*.before-*") if not file.name.endswith("-wal")]
    moved = sorted(name.partition(".before-")[0] for name in aside)
    assert moved == ["engine.db", "postern.db", "postern.db", "secret.key"]
    assert not (where / "engine.working").exists()


def test_a_backup_is_restored_from_a_pipe_and_over_what_a_killed_restore_left(
    source: Path, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "postern.db.restoring").write_bytes(RANDOM)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writing = threading.Thread(target=lambda: pipe.write_bytes((source.parent / "plain").read_bytes()))
    writing.start()
    restored(pipe, tmp_path / "data")
    writing.join()
    assert (tmp_path / "data" / "postern.db").exists()


# --- where a backup goes ----------------------------------------------------------------------------------------


def test_a_backup_never_takes_the_place_of_what_the_gateway_needs(tmp_path: Path) -> None:
    where = tmp_path / "data"
    fresh_data(where)
    before = {file.name: file.read_bytes() for file in where.iterdir()}
    (tmp_path / "link").symlink_to(where / "postern.db")
    own = "postern.db postern.db-wal postern.db.lock engine.db engine.db-journal secret.key serving.lock"
    why = "is a file of the gateway's own; give the backup another name"
    for file in [*(where / name for name in own.split()), tmp_path / "link"]:
        with pytest.raises(BackupFailed, match=why):
            made(where, file, replace=True)
    assert {file.name: file.read_bytes() for file in where.iterdir()} == before


def test_a_backup_never_takes_the_place_of_keys_that_lie_elsewhere(source: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_bytes((source / "secret.key").read_bytes())
    with pytest.raises(BackupFailed, match="is a file of the gateway's own"):
        made(source, keys, replace=True, POSTERN_SECRET_KEYS_FILE=str(keys))
    assert keys.read_bytes() == (source / "secret.key").read_bytes()


def test_a_backup_takes_the_place_of_an_ordinary_file_alone(source: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, why in {"pipe": "is no ordinary file", "": "is a folder"}.items():
        with pytest.raises(BackupFailed, match=why):
            made(source, tmp_path / name, replace=True)
    with pytest.raises(BackupFailed, match="nowhere cannot be written to: No such file or directory"):
        made(source, tmp_path / "nowhere" / "file")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to("elsewhere/file")
    made(source, tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and "keys" in contents(tmp_path / "elsewhere" / "file")
    assert os.listdir(tmp_path / "elsewhere") == ["file"]


def test_what_a_killed_backup_left_is_removed_and_what_another_one_is_at_stays(
    source: Path, tmp_path: Path
) -> None:
    script = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from postern.wiring.backup.files import folder_of_its_own\n"
        "with folder_of_its_own(Path(sys.argv[1])) as folder:\n"
        "    (folder / 'keys').write_text('a copy')\n"
        "    print(folder, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    at_it = [subprocess.Popen(command, **pipes) for _ in range(2)]
    killed, working = at_it
    try:
        left, used = (Path(one.stdout.readline().strip()) for one in at_it if one.stdout is not None)
        killed.kill()
        killed.wait()
        for name in ("notes", "justmade"):
            (tmp_path / f".postern-backup-{name}").mkdir()
        made(source, tmp_path / "file")
        assert not left.exists()
        assert (used / "keys").exists()
        assert (tmp_path / ".postern-backup-notes").exists(), "a folder of somebody else"
        assert (tmp_path / ".postern-backup-justmade").exists(), "another backup begins"
    finally:
        working.communicate("")
        for one in at_it:
            one.__exit__(None, None, None)
    assert not used.exists()


def test_keys_that_the_database_does_not_know_are_in_no_backup(source: Path, tmp_path: Path) -> None:
    with pytest.raises(
        BackupFailed,
        match=r"the keys given here are .*: set POSTERN_SECRET_KEYS as it is set for the gateway",
    ):
        made(source, tmp_path / "file", POSTERN_SECRET_KEYS="another key that is long enough")
    assert os.listdir(tmp_path) == []


def test_a_secret_key_that_is_no_text_is_named_and_a_backup_without_keys_needs_none(tmp_path: Path) -> None:
    fresh_data(tmp_path / "data")
    (tmp_path / "data" / "secret.key").write_bytes(b"\xff\xfe")
    for command in (("backup", "file", "--keys"), ("webhooks", "list")):
        done = run_postern(tmp_path, *command)
        why = f"{tmp_path}/data/secret.key is not text, so it is no key: restore it from a backup"
        assert (done.returncode, done.stderr.splitlines()[-1]) == (5, why)
    assert run_postern(tmp_path, "backup", "file").returncode == 0


def test_who_is_asked_to_end_leaves_nothing_unfinished(tmp_path: Path, forge: Forge) -> None:
    half = forge({"postern.db": os.urandom(1 << 20)}).read_bytes()[: 1 << 19]
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        pipe, where, told = (tmp_path / f"{name}-{number}" for name in ("pipe", "data", "told"))
        os.mkfifo(pipe)
        given = clean_environment({"POSTERN_DATA_DIR": str(where)})
        program = Fork(["restore", str(pipe)], tmp_path, given, told, told)
        with os.fdopen(os.open(pipe, os.O_RDWR), "wb") as writing:  # waits for no reader
            writing.write(half)
            writing.flush()
            wait_until(
                lambda where=where: (where / "postern.db.restoring").exists(),  # type: ignore[misc]
                what="it to be unpacked",
            )
            program.send_signal(number)
            assert program.wait(PATIENCE) == (130 if number == signal.SIGINT else -number)
        assert told.read_text() == "Interrupted.\n"
        assert set(os.listdir(where)) == {"serving.lock", "postern.db.lock"}


def test_runs_that_began_after_the_calls_were_copied_leave_no_steps(tmp_path: Path) -> None:
    database, journal = tmp_path / "postern.db", tmp_path / "engine.db"
    database.write_bytes(a_database(tmp_path, "CREATE TABLE deliveries AS SELECT 'inv.3' AS key"))
    runs = "CREATE TABLE runs AS SELECT value AS seq, 'inv.' || value AS delivery FROM json_each('[1,2,3]')"
    (tmp_path / "made.db").unlink()
    journal.write_bytes(a_database(tmp_path, runs, "CREATE TABLE steps AS SELECT seq AS run FROM runs"))
    making._take_out_later_runs(journal, database, 1)
    for asked in ("SELECT seq FROM runs", "SELECT run FROM steps"):
        assert rows(journal, asked) == [(1,), (3,)]


def test_a_passphrase_that_is_empty_leaves_no_keys_out_in_silence(source: Path, tmp_path: Path) -> None:
    for command, (word, why) in product(
        ("backup", "restore"),
        (("", "the passphrase from env:WORD is empty\n"), (b"a\xffb", "WORD is not text in UTF-8\n")),
    ):
        given = {"WORD": os.fsdecode(word), "POSTERN_DATA_DIR": str(source)}
        done = run_postern(tmp_path, command, "file", "--passphrase", "env:WORD", **given)
        assert (done.returncode, done.stderr) == (2, why)
    assert not (tmp_path / "file").exists()
