"""Mistakes that `make mutants` draws are mistakes, and are judged by tests that pass without them."""

import ast
from pathlib import Path

import mutants
import pytest
from mutants import KINDS, SOURCE, Lane, Mistake, draw, nearest


def test_what_is_drawn_can_be_run_and_differs_and_is_the_same_for_the_same_seed() -> None:
    drawn = draw(60, 7)
    assert len(set(drawn)) == 60 and {one.kind for one in drawn} == {*KINDS}
    for one in drawn:
        assert ast.dump(ast.parse(one.text)) != ast.dump(ast.parse((SOURCE / one.file).read_text("utf-8")))
        assert not one.file.startswith(mutants.LEFT_OUT)
    assert drawn == draw(60, 7) != draw(60, 8)


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


def test_a_mistake_is_noticed_by_a_test_that_passes_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mutants.nearest", lambda _: ["tests/core/test_names.py"])
    monkeypatch.setattr("mutants.LAST", [])
    lane, file = Lane(tmp_path / "lane"), "core/names.py"
    right = (SOURCE / file).read_text("utf-8")
    wrong = Mistake(file, "constant", right.replace('"sec-", ', ""))
    verdict, by = lane.judge(wrong)
    assert verdict == "noticed" and by.startswith("by tests/core/test_names.py::")
    assert (tmp_path / "lane/src/postern" / file).read_text("utf-8") == right
    broken = tmp_path / "lane/tests/core/test_names.py"
    broken.write_text("def test_fails_always(): assert False\n", "utf-8")
    assert lane.judge(wrong)[0] == "SURVIVED"
