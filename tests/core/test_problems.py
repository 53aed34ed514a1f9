"""The codes of problems: programs decide by them, so none may vanish or change unnoticed."""

import re
from pathlib import Path

import pytest

from postern.core.problems import PROBLEMS, Refused

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "problems.md"


def test_the_codes_are_those_that_are_described() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", REFERENCE.read_text("utf-8"), re.MULTILINE)
    assert {code: int(status) for code, status in rows} == {
        code: entry.status for code, entry in PROBLEMS.items()
    }, "run `make reference`"


def test_what_is_refused_has_a_code_that_there_is() -> None:
    assert str(Refused("conflict", "it is there already")) == "conflict: it is there already"
    assert str(Refused("conflict")) == f"conflict: {PROBLEMS['conflict'].help}"
    with pytest.raises(LookupError, match="conflit"):
        Refused("conflit")
