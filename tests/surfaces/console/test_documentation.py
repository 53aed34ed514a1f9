"""The documentation in the console: every page is there, every link leads somewhere, and settings lead to it."""

import re
from html import unescape
from pathlib import Path

import pytest

from postern.surfaces.console import documentation
from postern.surfaces.console.documentation import ADDRESS, LEFT_OUT, anchor_of, page

ROOT = Path(__file__).parents[3]
TEMPLATES = ROOT / "src" / "postern" / "surfaces" / "console" / "templates"
MORE = re.compile(r"more\('([^']+)'")


def addresses_of(html: str) -> list[str]:
    return re.findall(r'href="([^"]*)"', html)


def is_there(target: str, here: str) -> bool:
    """Whether this address within the documentation leads to a page, and to a part of it where one is named."""
    name, _, anchor = target.removeprefix(ADDRESS).partition("#")
    found = page(name or here)
    return found is not None and (not anchor or anchor in {one.anchor for one in found.headings})


def test_every_page_but_those_about_the_code_is_listed_once() -> None:
    written = {
        str(path.relative_to(ROOT / "docs").with_suffix(""))
        for path in (ROOT / "docs").rglob("*.md")
        if path.relative_to(ROOT / "docs").parts[0] not in LEFT_OUT
    }
    listed = [one.name for _, pages in documentation.groups() for one in pages]
    of_senders = {
        name for name in written if name.startswith("reference/senders/")
    }  # listed on a page of their own
    assert sorted(listed) == sorted(written - of_senders)


@pytest.mark.parametrize("name", documentation.names())
def test_a_page_has_a_title_and_no_link_that_leads_nowhere(name: str) -> None:
    found = page(name)
    assert found is not None and found.title != name
    assert "<h1" not in found.html and "<img" not in found.html and "<th></th>" not in found.html
    ids = re.findall(r'<h\d id="([^"]*)">(.*?)</h\d>', found.html)
    assert [(one.anchor, one.title) for one in found.headings] == [
        (anchor, unescape(re.sub("<[^>]*>", "", title))) for anchor, title in ids
    ]
    inside = [link for link in addresses_of(found.html) if link.startswith((ADDRESS, "#"))]
    assert [link for link in inside if not is_there(link, name)] == []
    others = [link for link in addresses_of(found.html) if link not in inside]
    assert all(link == "/docs" or link.startswith(("http://", "https://")) for link in others), others


def test_every_setting_that_says_more_leads_to_a_part_that_is_there() -> None:
    linked = [found for file in TEMPLATES.rglob("*.html") for found in MORE.findall(file.read_text())]
    assert len(linked) > 3
    assert [link for link in linked if not is_there(link, "")] == []


@pytest.mark.parametrize(
    "name", ["../README", "decisions/0001-one-writer", "architecture", "how-to", "", "how-to/duplicates.md"]
)
def test_what_is_no_page_of_it_is_not_shown(name: str) -> None:
    assert page(name) is None


def test_pages_and_their_parts_are_found_by_words_of_their_titles() -> None:
    assert ("Run a retried delivery once", "/documentation/how-to/duplicates", "") in documentation.find(
        "retried", 6
    )
    assert (
        "Addresses",
        "/documentation/how-to/cors-and-allowlist#addresses",
        "Who may call, and from where",
    ) in (documentation.find("addresses", 6))
    assert len(documentation.find("e", 6)) == 6
    assert documentation.find("no page says this", 6) == []


def test_what_is_written_in_angle_brackets_stays_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one.md").write_text(
        "# One\n\n<script>alert(1)</script> [away](../src/x.py) [two](two.md#b)\n"
    )
    monkeypatch.setattr(documentation, "folder", lambda: tmp_path)
    monkeypatch.setattr(documentation, "names", lambda: ("one", "two"))
    made = page.__wrapped__("one")
    assert made is not None
    assert "<script" not in made.html
    assert "away" in made.html and addresses_of(made.html) == ["/documentation/two#b"]


def test_anchors_are_as_where_the_files_are_read_too() -> None:
    assert anchor_of("Pages of other origins") == "pages-of-other-origins"
    assert anchor_of("Over HTTP, and `what`?") == "over-http-and-what"
