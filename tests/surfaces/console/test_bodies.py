"""A body to look at: every byte of it can be seen, a search finds what is there, and no page grows with it."""

import json
import random
import re
from html import unescape

import pytest

from postern.core.calls.paths import parse_path, walk
from postern.surfaces.console import bodies, tree
from postern.surfaces.console.words import highlighted


def seen(html: str) -> bytes:
    """What somebody who selects all of it gets, with the marks of what is no text put back."""
    names = {name: char for char, name in bodies._NAMES.items()}

    def back(found: re.Match[str]) -> str:
        mark = found[1]
        if found[2]:
            return chr(0xDC00 + int(mark, 16))
        return names.get(mark) or chr(int(mark.removeprefix("U+"), 16))

    text = re.sub(r'<b class="m" data-m="([^"]+)">(\ufffd?)</b>', back, html)
    return unescape(re.sub(r"<[^>]+>", "", text)).encode("utf-8", "surrogateescape")


def test_every_byte_is_there_to_see_whatever_it_is() -> None:
    chance = random.Random(7)
    pieces = [bytes([byte]) for byte in range(256)]
    pieces += [
        text.encode()
        for text in ("\u00a0", "\ufeff", "\u202e", "漢", "é", "\u200b", "<b>", "&amp;", "   ", "\u2028")
    ]
    for _ in range(400):
        body = b"".join(chance.choices(pieces, k=chance.randint(0, 60)))
        shown = bodies.marked(body)
        assert not shown.cut and shown.shown == len(body)
        assert seen(shown.html) == body
        assert "<script" not in shown.html and "\u202e" not in shown.html and "\x1b" not in shown.html


@pytest.mark.parametrize("piece", [b"a", b" ", b"\xff", b"<", b"\n", "漢".encode(), "\u202e".encode(), b" a"])
def test_a_large_body_is_cut_where_it_says(piece: bytes) -> None:
    body = piece * (1024 * 1024 // len(piece))
    shown = bodies.marked(body)
    assert shown.cut and shown.of == len(body)
    assert len(shown.html.encode()) <= bodies.MOST_SHOWN + 4
    assert 0 < shown.shown < len(body) and seen(shown.html) == body[: shown.shown]


@pytest.mark.parametrize(
    ("media_type", "body", "kind"),
    [
        ("application/json", b"", "none"),
        ("text/plain", b' {"a": 1}', "json"),
        ("", b"\xef\xbb\xbf[1]", "json"),
        ("application/x-www-form-urlencoded", b"a=1", "form"),
        ("application/x-www-form-urlencoded", b"name=Jos\xe9&b=a long enough text", "form"),
        ("application/xml; charset=utf-8", b"<a/>", "xml"),
        ("", b"<?xml version='1.0'?><a/>", "xml"),
        ("text/html", b"<script>alert(1)</script>", "xml"),
        ("text/plain", b"hello", "text"),
        ("application/json", b"hello", "json"),
        ("application/json", b"\x00\x01\x02", "binary"),
        ("image/png", b"\x89PNG\r\n\x1a\n\x00", "binary"),
    ],
)
def test_a_body_is_shown_as_what_it_is(media_type: str, body: bytes, kind: str) -> None:
    assert bodies.kind_of([("content-type", media_type)], body) == kind


DOCUMENT = {
    "order": {"number": 1001, "Total": "10.00", "a.b": [True, None, {"deep": "Tea & <b>"}]},
    "items": [{"sku": f"S-{number}"} for number in range(5000)],
    "": {"x": 1},
}
TEXT = json.dumps(DOCUMENT).encode()


def nodes(node: tree.Node | None) -> list[tree.Node]:
    return [] if node is None else [node, *(one for child in node.children for one in nodes(child))]


def test_every_path_of_a_tree_finds_its_value_again() -> None:
    shown = nodes(tree.tree(TEXT))
    paths = [one for one in shown if one.path and one.kind not in ("object", "array")]
    assert len(paths) > 30
    for one in paths:
        found = walk(TEXT, parse_path(str(one.path)))
        assert found is not None and found.decode().strip('"') == one.text
    (unnamed,) = (one for one in shown if one.key == "x")
    assert unnamed.path is None, "no mapping can name what lies under an empty key"


def test_what_is_not_shown_is_asked_for_by_its_path() -> None:
    root = tree.tree(TEXT)
    (items,) = (one for one in nodes(root) if one.path == "items")
    assert items.more == len(items.children) == tree.MOST_INNER
    assert items.cut == "4,960 more"
    on = tree.tree(TEXT, "items", 4990)
    assert on is not None and [one.key for one in on.children] == [str(place) for place in range(4990, 5000)]
    assert tree.tree(TEXT, "nowhere") is None and tree.tree(TEXT, "a[") is None


def test_a_tree_takes_no_more_than_its_room() -> None:
    for document in (
        {"k" * 90: ["v" * 2000] * 500},
        [[[[[0] * 50] * 50] * 50] * 5],
        {str(n): {} for n in range(99_999)},
        {"k" * 1_000_000: [1, 2], "l" * 1_000_000: {"a": "b"}},
    ):
        whole = nodes(tree.tree(json.dumps(document).encode()))
        taken = sum(tree.NODE + len(one.key) + len(one.text) + 2 * len(one.path or "") for one in whole)
        assert taken < tree.ROOM * 1.2


@pytest.mark.parametrize(
    ("wanted", "hits", "paths"),
    [
        ("TOTAL", 1, ["order.Total"]),
        ("1001", 2, ["order.number", "items[1001].sku"]),
        ("tea & <", 1, ["order.a\\.b[2].deep"]),
        ("true", 1, ["order.a\\.b[0]"]),
        ("s-49", 111, None),
        ("sku", 5000, None),
        ("nowhere", 0, []),
        ("order", 1, ["order"]),
    ],
)
def test_a_search_counts_keys_and_values_and_opens_the_way(
    wanted: str, hits: int, paths: list[str] | None
) -> None:
    found = tree.search(TEXT, wanted)
    assert found.hits == hits
    text = wanted.casefold()
    shown = [
        one
        for one in nodes(found.root)
        if text in one.text.casefold() or (text in one.key.casefold() and not (one.path or "").endswith("]"))
    ]
    assert len(shown) == found.shown == min(hits, tree.MOST_HITS)
    if paths is not None:
        assert [one.path for one in shown] == paths
    assert all(one.open for one in nodes(found.root) if one.children)


def test_what_cannot_be_searched_says_so() -> None:
    assert tree.search(b'"' + b"a" * (tree.LARGEST_SEARCHED + 1), "a").too_large
    broken = tree.search(b"{", "a")
    assert (broken.hits, broken.root) == (0, None)
    deep = b'{"a":' * 900 + b"1" + b"}" * 900
    assert tree.search(deep, "a").hits == tree.DEEPEST_SEARCHED


def test_a_hit_is_marked_in_its_text() -> None:
    assert highlighted("Tea for TEA", "tea") == [("Tea", True), (" for ", False), ("TEA", True)]
    assert highlighted("a.b", ".") == [("a", False), (".", True), ("b", False)]
    assert highlighted("text", "") == [("text", False)]


def test_a_dump_has_sixteen_bytes_a_line() -> None:
    lines = bodies.hexadecimal(bytes(range(40))).split("\n")
    assert len(lines) == 3 and lines[2].startswith("000020  20 21 22") and lines[2].endswith("  !\"#$%&'")


def test_pairs_are_decoded_and_bounded() -> None:
    found, count = bodies.pairs(b"a=1&b=%C3%A9+x&bad=%FF&" + b"n=1&" * 500)
    assert found[:3] == [("a", "1"), ("b", "é x"), ("bad", "\ufffd")]
    assert (len(found), count) == (bodies.MOST_PAIRS, 503)
