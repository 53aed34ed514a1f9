"""A reader who follows one value through the code opens few files (docs/decisions/0013-folders-by-topic.md)."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_a_value_is_in_few_hands() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/walks.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("are wanted") == 3
