"""What is named with --output is written whole, or stays as it is."""

import errno
import os
from pathlib import Path

import pytest

from postern.surfaces.cli.run import USAGE
from postern.surfaces.cli.written import written
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
        ran = typed(
            tmp_path,
            *what,
            "--output",
            str(file),
            POSTERN_SECRET_KEYS_FILE=str(keys),
        )
        assert ran.exit_code == USAGE, file
        assert "is a file of the gateway's own; give the export another name" in " ".join(ran.stderr.split())
    assert {file: file.read_bytes() for file in own if file.exists()} == before
