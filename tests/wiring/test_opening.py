"""A gateway before its first call, and what a failed start leaves behind."""

import sys
import threading
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from postern.core.access.accounts import Actor
from postern.settings import Settings
from postern.wiring import gateway as gateway_module
from postern.wiring.gateway import opened
from support.program import clean_environment, run_command

ADA = Actor("ada", "write", "usr_ada", "ses_1")
ADDRESS = "http://127.0.0.1:9"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        {"POSTERN_DATA_DIR": str(tmp_path / "data"), "POSTERN_ENGINE": "none", "POSTERN_LOG": "off"}
    )


def test_what_is_derived_from_the_key_stays_what_it_was() -> None:
    """Another way would end every response token and forget every browser with an upgrade."""
    (derived,) = gateway_module._derived(["key"], b"postern known browsers")
    assert derived.hex() == "8b138286a23c2085d1db7504f0c26d97d0674d7f3fe4b12bab6afadab571ee81"


async def test_one_that_cannot_start_leaves_no_database_open(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "data" / "address").mkdir(parents=True)
    before = set(threading.enumerate())
    with pytest.raises(IsADirectoryError):
        async with opened(settings, ADDRESS):
            pass
    left = {thread.name for thread in set(threading.enumerate()) - before}
    assert {name for name in left if not name.startswith("asyncio_")} == set()


@pytest.mark.parametrize(
    ("kind", "engine", "database", "warned"),
    [
        ("nfs4", "none", "", True),
        ("nfs4", "embedded", "postgresql://x@127.0.0.1:9/x", True),
        ("nfs4", "none", "postgresql://x@127.0.0.1:9/x", False),
        ("ext4", "embedded", "", False),
        ("", "embedded", "", False),
    ],
)
def test_sqlite_on_a_network_file_system_is_pointed_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, engine: str, database: str, warned: bool
) -> None:
    """Mounts are read as the system tells them: a later mount at the same place is the one that counts, and in a chroot
    there may be none above the folder."""
    folder, mounts = tmp_path / "far away" / "data", tmp_path / "mounts"
    place = str(folder.parent).replace(" ", "\\040")
    told = f"/ / tmpfs rw 0 0\nproc {place} ext3 rw 0 0\nserver:/x {place} {kind} rw,vers=4.2 0 0\n"
    mounts.write_text(told if kind else "proc /proc proc rw 0 0\n")
    monkeypatch.setattr(gateway_module, "MOUNTS", mounts)
    given = {"POSTERN_DATA_DIR": str(folder), "POSTERN_ENGINE": engine, "POSTERN_DATABASE_URL": database}
    with capture_logs() as lines, gateway_module.alone(Settings(given)):
        pass
    said = [(line["folder"], line["kind"]) for line in lines if "network file system" in line["event"]]
    assert said == [(str(folder), kind)] * warned


@pytest.mark.parametrize("table", [b"", b"proc /proc proc rw 0 0\n", b"/\n", b"\xff \xff \xff rw 0 0\n"])
def test_no_table_of_mounts_stops_a_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, table: bytes
) -> None:
    """In a plain chroot none names the root."""
    mounts = tmp_path / "mounts"
    mounts.write_bytes(table)
    monkeypatch.setattr(gateway_module, "MOUNTS", mounts)
    with gateway_module.alone(Settings({"POSTERN_DATA_DIR": str(tmp_path / "data")})):
        pass


def test_a_command_typed_in_a_folder_that_was_deleted_says_so(tmp_path: Path) -> None:
    typed_in = tmp_path / "gone"
    typed_in.mkdir()
    ran = run_command(
        *("/bin/sh", "-c", 'rmdir "$PWD" && exec "$0" -m postern status', sys.executable),
        folder=typed_in,
        environment=clean_environment({"POSTERN_DATA_DIR": "data", "XDG_CONFIG_HOME": str(tmp_path)}),
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "The folder in which this was typed has been deleted; go to another one\n"
