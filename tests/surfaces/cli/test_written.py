"""The file of --output is written whole, or stays as it is."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from postern.settings import Settings
from postern.surfaces.cli.files import written
from postern.surfaces.cli.run import CONFLICT, USAGE
from postern.surfaces.cli.workflows import WRITTEN, _write_types
from postern.wiring.machine import OnThisMachine
from postern.workflows.scaffold import keep
from support.commands import typed
from support.fresh import fresh_data


def test_an_older_file_stays_until_the_new_one_is_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "webhooks.yaml"
    file.write_text("older")
    with pytest.raises(SystemExit) as ended, written(file) as stream:
        stream.write(b"half")
        stream.flush()
        raise OSError(errno.ENOSPC, "No space left on device")
    assert ended.value.code == USAGE
    assert "cannot be written: No space left on device" in " ".join(capsys.readouterr().err.split())
    assert (file.read_text(), os.listdir(tmp_path)) == ("older", ["webhooks.yaml"])


def test_a_file_of_the_user_beside_it_is_not_touched(tmp_path: Path) -> None:
    file, beside = tmp_path / "webhooks.yaml", tmp_path / "webhooks.yaml.part"
    beside.write_text("the user's own")
    with written(file) as stream:
        stream.write(b"new")
    assert (file.read_text(), beside.read_text()) == ("new", "the user's own")
    assert len(os.listdir(tmp_path)) == 2


def test_a_file_that_was_closed_to_others_stays_closed(tmp_path: Path) -> None:
    file = tmp_path / "webhooks.yaml"
    file.touch(0o600)
    with written(file) as stream:
        stream.write(b"new")
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("older", [None, f"{WRITTEN} from an older call"])
@pytest.mark.parametrize("what", ["a fixture", "types"])
def test_a_full_disk_leaves_no_half_of_what_a_command_keeps(
    tmp_path: Path, what: str, older: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / ("paid.json" if what == "a fixture" else "paid.py")
    if older is not None:
        file.write_text(older)
    with pytest.raises((SystemExit, OSError)) as ended, room_for(10_000):
        if what == "a fixture":
            with written(file) as stream:
                stream.write(b"{" * 20_000)
        else:
            _write_types(tmp_path, "paid", WRITTEN * 1_000)
    said = str(ended.value) + capsys.readouterr().err
    assert "File too large" in said and file.name in said
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == (
        [] if older is None else [(file.name, older)]
    )


def test_a_full_disk_leaves_no_half_of_a_new_workflow(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="File too large"), room_for(10_000):
        keep(tmp_path, "greet", "#" * 20_000)
    assert os.listdir(tmp_path) == []


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """As on a full disk, only the beginning of a file can be written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_webhooks_are_exported_to_where_a_link_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh_data(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    Path("there.yaml").write_text("older")
    Path("link").symlink_to("there.yaml")
    typed(tmp_path, "export", "--output", "link")
    assert Path("link").is_symlink() and "webhooks:" in Path("there.yaml").read_text()
    assert {one.name for one in tmp_path.iterdir()} == {"data", "link", "there.yaml"}


@pytest.mark.parametrize("what", [["export"], ["export", "--all"]])
def test_an_export_never_takes_the_place_of_what_the_gateway_needs(tmp_path: Path, what: list[str]) -> None:
    data, keys = tmp_path / "data", tmp_path / "keys"
    fresh_data(data)
    keys.write_text("a key in a file of its own\n")
    (tmp_path / "link").symlink_to(data / "postern.db")
    own = [tmp_path / "link", keys, *(data / name for name in ("postern.db", "engine.db", "secret.key"))]
    before = {file: file.read_bytes() for file in own if file.exists()}
    for file in own:
        ran = typed(tmp_path, *what, "--output", str(file), POSTERN_SECRET_KEYS_FILE=str(keys))
        assert ran.exit_code == USAGE, file
        assert "is a file of the gateway's own; give the export another name" in " ".join(ran.stderr.split())
    assert {file: file.read_bytes() for file in own if file.exists()} == before


def test_a_workflow_is_written_into_a_folder_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = OnThisMachine(
        Settings({"POSTERN_DATA_DIR": str(tmp_path / "data"), "POSTERN_WORKFLOWS": str(tmp_path / "one.py")})
    )
    with pytest.raises(SystemExit) as ended:
        machine.keep_workflow("greet", "")
    assert (ended.value.code, [*tmp_path.iterdir()]) == (CONFLICT, [])
    assert "names a file and not a folder" in capsys.readouterr().err
