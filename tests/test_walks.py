"""A reader who follows one value through the code opens few files (docs/decisions/0013-folders-by-topic.md)."""

import sys
from pathlib import Path

from support.program import run_command

ROOT = Path(__file__).resolve().parent.parent


def test_a_value_is_in_few_hands() -> None:
    done = run_command(sys.executable, "scripts/walks.py", folder=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("are wanted") == 3
