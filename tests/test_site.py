"""The documentation as a site: the same pages, all of them, complete without the internet."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md"))
MKDOCS = Path(sys.executable).with_name("mkdocs")

pytestmark = pytest.mark.skipif(not MKDOCS.exists(), reason="mkdocs-material is not installed")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [str(MKDOCS), "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    return folder


def html_of(page: Path) -> Path:
    return page.with_name("index.html") if page.name == "README.md" else page.with_suffix(".html")


def test_every_page_is_in_it_and_in_the_menu_or_the_list_of_decisions(site: Path) -> None:
    assert [page for page in PAGES if not (site / html_of(page)).exists()] == []
    menu = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    assert [page for page in PAGES if page.parts[0] != "decisions" and page.as_posix() not in menu] == []


def test_nothing_is_fetched_from_elsewhere_and_the_tests_marks_are_not_shown(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text()
        assert re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="https?://[^"]+"', text) == [], page
        assert "sh runs" not in text and "not run:" not in text, page


def test_assistants_find_a_map_of_it(site: Path) -> None:
    text = (site / "llms.txt").read_text()
    named = {Path(target) for target in re.findall(r"\]\(([^)]+)\)", text)}
    assert [page for page in PAGES if page.parts[0] != "decisions" and page not in named] == []
    assert [
        target for target in named if not (site / target).exists() and not (ROOT / "docs" / target).exists()
    ] == []
    assert (site / "search" / "search_index.json").stat().st_size > 10_000
