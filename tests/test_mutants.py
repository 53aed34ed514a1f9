"""Mistakes that `make mutants` draws are mistakes, and are judged by tests that pass without them."""

import ast
from pathlib import Path

import mutants
import pytest
from mutants import KINDS, SOURCE, Lane, Mistake, draw, nearest


def test_what_is_drawn_can_be_run_and_differs_and_is_the_same_for_the_same_seed() -> None:
    drawn = draw(20, 7)
    assert len(set(drawn)) == 20 and {one.kind for one in drawn} == {*KINDS}
    for one in drawn:
        assert ast.dump(ast.parse(one.text)) != ast.dump(ast.parse((SOURCE / one.file).read_text("utf-8")))
        assert not one.file.startswith(mutants.LEFT_OUT)
    assert drawn == draw(20, 7) != draw(20, 8)


def test_only_in_the_files_that_are_asked_for() -> None:
    drawn = draw(10, 7, "src/postern/core/watch/rhythm.py", "usecases/alarms/")
    folders = {str(Path(one.file).parent) for one in drawn}
    assert len(drawn) == 10 and folders == {"core/watch", "usecases/alarms"}


@pytest.mark.parametrize(
    ("file", "test"),
    [
        ("core/watch/rhythm.py", "core/watch/test_rhythm.py"),
        ("usecases/alarms/judging.py", "usecases/alarms/test_judging.py"),
        ("surfaces/console/words.py", "surfaces/console/test_words.py"),
    ],
)
def test_the_nearest_tests_are_run_first(file: str, test: str) -> None:
    assert f"tests/{test}" in nearest(file)[:6]


NAMES = """def greeting(name: str) -> str:
    return "hello " + name.strip()
"""
TESTED = """from postern.names import greeting


def test_greets() -> None:
    assert greeting("Ada ").endswith("Ada")
"""
CONFIGURED = """[tool.mypy]
strict = true

[tool.pytest.ini_options]
addopts = "-p no:postern"
"""


@pytest.fixture
def lane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lane:
    """Of a repository with one module and its test: the real one is copied and checked in the same way, for a minute."""
    files = {"src/postern/names.py": NAMES, "tests/test_names.py": TESTED, "pyproject.toml": CONFIGURED}
    for name, text in (files | {"src/postern/__init__.py": ""}).items():
        file = tmp_path / "repository" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    monkeypatch.setattr("mutants.ROOT", tmp_path / "repository")
    monkeypatch.setattr("mutants.nearest", lambda _: ["tests/test_names.py"])
    monkeypatch.setattr("mutants.LAST", [])
    return Lane(tmp_path / "lane")


@pytest.mark.parametrize(
    ("right", "wrong", "verdict", "by"),
    [
        (".strip()", "", "noticed", "by tests/test_names.py::test_greets"),
        ("hello", "good morning", "SURVIVED", "tests/test_names.py"),
        (".strip()", ".strip() or 7", "noticed", "by mypy"),
    ],
)
def test_a_mistake_is_noticed(
    lane: Lane, tmp_path: Path, right: str, wrong: str, verdict: str, by: str
) -> None:
    assert lane.judge(Mistake("names.py", "constant", NAMES.replace(right, wrong))) == (verdict, by)
    assert (tmp_path / "lane/src/postern/names.py").read_text("utf-8") == NAMES


def test_what_fails_without_the_mistake_has_noticed_nothing(lane: Lane, tmp_path: Path) -> None:
    (tmp_path / "lane/tests/test_names.py").write_text("def test_fails_always(): assert False\n", "utf-8")
    verdict, _ = lane.judge(Mistake("names.py", "constant", NAMES.replace(".strip()", "")))
    assert verdict == "SURVIVED"
