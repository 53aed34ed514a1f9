"""A sender's vectors can be made alone, with what the project has installed anyway, and come out the same."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.vector_replay import VECTORS

MAKE = VECTORS / "make" / "make.py"


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(MAKE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl signs the vectors")
def test_one_sender_s_vectors_are_made_alone_and_come_out_the_same(tmp_path: Path) -> None:
    made = make("woocommerce", "bigcommerce", "--into", str(tmp_path))
    assert made.returncode == 0, made.stderr
    for name in ("woocommerce", "bigcommerce"):  # the second has an SDK that the project has installed, too
        assert made_now(tmp_path, name) == made_now(VECTORS, name)


def made_now(folder: Path, name: str) -> list[object]:
    vectors = json.loads((folder / f"{name}.json").read_text())["vectors"]
    return [{**vector, "made_with": ""} for vector in vectors]  # with which version of its SDK


def test_what_cannot_be_made_is_reported(tmp_path: Path) -> None:
    assert "not in senders.py: acme" in make("acme", "--into", str(tmp_path)).stderr
    assert "pip install stripe==" in make("stripe", "--into", str(tmp_path)).stderr
    assert list(tmp_path.iterdir()) == []
