"""What a file that is no backup is called."""

import gzip
from pathlib import Path

import pytest

from support.program import run_postern

RANDOM = bytes(range(256)) * 40


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
