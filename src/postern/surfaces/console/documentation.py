"""The documentation as the console shows it: the Markdown files of the repository's docs/, which the wheel takes along."""

import posixpath
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from starlette.responses import Response

from postern.core.problems import Refused
from postern.surfaces.console.visit import Visit

if TYPE_CHECKING:
    from markdown_it.token import Token

PACKAGED = Path(__file__).parent / "documentation"
LEFT_OUT = ("decisions", "architecture.md", "console.md")
"""Pages for developers of Postern, and pictures of the console itself."""
GROUPS = (
    ("", "Begin, serve, look after"),
    ("how-to", "How to"),
    ("engines", "Engines"),
    ("reference", "Reference"),
)
"""Folders, in the order in which they are listed."""
ADDRESS = "/documentation/"

_ELSEWHERE = re.compile(r"[a-z]+:", re.IGNORECASE)
_HEADING = re.compile(r"(#{1,6}) (.+)")
_NO_LETTER = re.compile(r"[^\w\- ]")


class Heading(Struct, frozen=True):
    anchor: str
    title: str


class Outline(Struct, frozen=True):
    name: str
    """Its path without the ending, like how-to/duplicates."""
    title: str
    headings: tuple[Heading, ...]


class DocumentationPage(Outline, frozen=True):
    html: str


def folder() -> Path:
    """The folder of the files: in a checkout, docs/ itself."""
    return PACKAGED if PACKAGED.is_dir() else Path(__file__).parents[4] / "docs"


@cache
def names() -> tuple[str, ...]:
    there = folder()
    paths = (path.relative_to(there) for path in there.rglob("*.md"))
    return tuple(sorted(str(path.with_suffix("")) for path in paths if path.parts[0] not in LEFT_OUT))


def groups() -> list[tuple[str, list[Outline]]]:
    """Every page, in the groups in which they are listed."""
    pages = sorted((outline(name) for name in names()), key=lambda entry: entry.title.lower())
    return [
        (title, [entry for entry in pages if entry.name.rpartition("/")[0] == directory])
        for directory, title in GROUPS
    ]


@cache
def outline(name: str) -> Outline:
    """Read line by line: a search asks it of every page, and whoever calls a webhook meanwhile waits for the answer."""
    title, headings, in_code = name, [], False
    for line in _written(name).splitlines():
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and (match := _HEADING.fullmatch(line)):
            text = match[2].replace("`", "").strip()
            if match[1] == "#":
                title = text
            else:
                headings.append(Heading(anchor_of(text), text))
    return Outline(name, title, tuple(headings))


@cache
def page(name: str) -> DocumentationPage | None:
    if name not in names():
        return None
    from markdown_it import MarkdownIt  # here: most commands and calls do without

    # No HTML: what is written in angle brackets is text.
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(_written(name))
    headings = [opening for opening in tokens if opening.type == "heading_open" and opening.tag != "h1"]
    for token, heading in zip(headings, outline(name).headings, strict=True):
        token.attrSet("id", heading.anchor)
    html = markdown.renderer.render(_shown(name, tokens), markdown.options, {})
    return DocumentationPage(name, outline(name).title, outline(name).headings, _reachable(html))


async def contents(visit: Visit) -> Response:
    return visit.page("documentation/contents.html", groups=groups())


async def show(visit: Visit) -> Response:
    document = page(visit.at("page"))
    if document is None:
        raise Refused("not_found", "the documentation has no page of this name")
    return visit.page("documentation/page.html", page=document)


def find(words: str, limit: int) -> list[tuple[str, str, str]]:
    """Pages and their parts whose title holds these words: title, address, and the page's title beside that of a part."""
    lowered = words.lower()
    pages = [outline(name) for name in names()]
    hits = [(entry.title, ADDRESS + entry.name, "") for entry in pages if lowered in entry.title.lower()]
    hits += [
        (heading.title, f"{ADDRESS}{entry.name}#{heading.anchor}", entry.title)
        for entry in pages
        for heading in entry.headings
        if lowered in heading.title.lower()
    ]
    return hits[:limit]


def anchor_of(title: str) -> str:
    """The anchor that other readers of the same files make of a title."""
    return _NO_LETTER.sub("", title.lower()).replace(" ", "-")


def _written(name: str) -> str:
    return (folder() / f"{name}.md").read_text("utf-8")


def _shown(name: str, tokens: "list[Token]") -> "list[Token]":
    """Removes the title, which stands above, and leads links to pages of the console."""
    shown, in_title = [], False
    for token in tokens:
        if token.tag == "h1":
            in_title = token.type == "heading_open"
            continue
        if in_title:
            continue
        if token.type == "fence":
            token.info = token.info.partition(" ")[0]  # what follows is for the tests
        if token.children is not None:
            token.children = list(_linked(name, token.children))
        shown.append(token)
    return shown


def _linked(name: str, children: "list[Token]") -> "Iterator[Token]":
    """A link to what is no page becomes its words, and so does a picture."""
    dropped = False
    for child in children:
        if child.type == "image":
            continue
        if child.type == "link_open":
            target = _target(name, str(child.attrGet("href") or ""))
            dropped = target is None
            if target is not None:
                child.attrSet("href", target)
        if child.type in ("link_open", "link_close") and dropped:
            continue
        yield child


def _target(name: str, href: str) -> str | None:
    if href.startswith("#") or _ELSEWHERE.match(href):
        return href
    path, hash, anchor = href.partition("#")
    linked = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
    if linked == "reference/openapi.json":
        return "/docs"
    return f"{ADDRESS}{linked[:-3]}{hash}{anchor}" if linked.removesuffix(".md") in names() else None


def _reachable(html: str) -> str:
    """Makes wide code and tables scroll, also with the keyboard, and gives a column without a title no empty heading."""
    return (
        html.replace("<pre>", '<pre tabindex="0">')
        .replace("<table>", '<div class="table-wrap" tabindex="0"><table>')
        .replace("</table>", "</table></div>")
        .replace("<th></th>", "<td></td>")
    )
