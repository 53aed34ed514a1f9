"""Paths into a payload."""

from functools import reduce

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postern.core.calls.content import LONGEST_VALUE, Mapping, Payload
from postern.core.calls.paths import (
    InvalidPath,
    as_text,
    extended,
    members,
    parse_path,
    path_problem,
    walk,
    walk_members,
    walker,
)

DOCUMENT = (
    b'{"customer":{"email":"a@b.example","tags":["x","y"]},"items":[{"sku":"s0"},{"sku":"s1"}],"a.b":{"c\\"d":1},"0":"zero",'
    b'"total":10.00,"id":12345678901234567890123,"ok":true,"none":null,"nested":{"k": [1,  2]},"u":"\\u00e9"}'
)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("customer.email", "a@b.example"),
        ("items[0].sku", "s0"),
        ("items.1.sku", "s1"),
        (r"a\.b.c\"d", "1"),
        ("0", "zero"),
        ("total", "10.00"),
        ("id", "12345678901234567890123"),
        ("ok", "true"),
        ("none", ""),
        ("nested", '{"k":[1,2]}'),
        ("customer.tags", '["x","y"]'),
        ("u", "é"),
    ],
)
def test_a_path_leads_to_its_value(path: str, text: str) -> None:
    value = walk(DOCUMENT, parse_path(path))
    assert value is not None and as_text(value) == text


@pytest.mark.parametrize(
    "path",
    ["missing", "customer.missing", "items[2].sku", "items.x", "customer.email.x", "total[0]", "items[999999999]",
     "customer[0]", "items.١.sku"],  # a digit, and no index
)  # fmt: skip
def test_a_path_that_leads_nowhere_finds_nothing(path: str) -> None:
    assert walk(DOCUMENT, parse_path(path)) is None


@pytest.mark.parametrize("path", ["", ".", ".a", "a.", "a..b", "a[b]", "a[", "a]", "[0]x", "a[-1]", "a\\"])
def test_what_is_no_path_is_reported(path: str) -> None:
    with pytest.raises(InvalidPath):
        parse_path(path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("$.customer.email", "without $"),
        ("$[0]", "without $"),
        ("https://example.com/a", "an address"),
        ("a..b", "not a path"),
    ],
)
def test_a_path_written_as_elsewhere_is_not_saved(path: str, message: str) -> None:
    assert message in (path_problem(path) or "")


@pytest.mark.parametrize("key", ["$", "$oid", "https://example.com/name", "a.b", "order"])
def test_every_member_of_a_document_can_be_mapped(key: str) -> None:
    path = extended(extended("", key), "x")
    assert path_problem(path) is None
    assert walk(msgspec.json.encode({key: {"x": 1}}), parse_path(path)) == b"1"


def test_a_mapping_names_what_it_did_not_find_and_fills_the_rest() -> None:
    payload = Payload(DOCUMENT, members(DOCUMENT))
    mapping = Mapping({"fieldOne": "customer.email", "fieldTwo": "no.such"})
    assert mapping.apply(payload) == ({"fieldOne": "a@b.example"}, "fieldTwo: nothing at no.such")
    assert Mapping({"fieldOne": "total", "fieldTwo": "id"}).apply(payload)[1] == "2 of 2 fields found"
    assert Mapping({"fieldOne": ""}).apply(payload) == ({}, "no field is mapped")


def test_a_mapped_value_is_cut_where_it_is_longer_than_a_field_holds() -> None:
    values = {"short": "x" * LONGEST_VALUE, "long": "x" * LONGEST_VALUE + "y", "items": ["x" * LONGEST_VALUE]}
    document = msgspec.json.encode(values)
    paths = {"fieldOne": "short", "fieldTwo": "long", "fieldThree": "items"}
    fields, _ = Mapping(paths).apply(Payload(document, members(document)))
    assert fields["fieldOne"] == fields["fieldTwo"] == "x" * 65_536
    assert fields["fieldThree"] == '["' + "x" * 65_534


def test_a_path_has_at_most_32_steps_and_500_characters() -> None:
    assert len(parse_path(".".join("a" * 32))) == 32
    assert parse_path("x" * 500) == ("x" * 500,)
    for path in (".".join("a" * 33), "a" + "[0]" * 32, "x" * 501):
        with pytest.raises(InvalidPath, match="a path has"):
            parse_path(path)


@given(st.text(max_size=60))
def test_any_text_is_a_path_or_is_reported_not_to_be(text: str) -> None:
    try:
        steps = parse_path(text)
    except InvalidPath:
        return
    assert walk(DOCUMENT, steps) is None or isinstance(walk(DOCUMENT, steps), bytes)


@given(st.lists(st.text(min_size=1, max_size=12) | st.integers(0, 999_999_999), min_size=1, max_size=12))
def test_a_written_path_is_read_as_the_steps_it_was_written_from(steps: list[str | int]) -> None:
    assert parse_path(reduce(extended, steps, "")) == tuple(steps)


@given(st.binary(max_size=200))
def test_walking_any_bytes_is_total(document: bytes) -> None:
    for path in ("a.b", "a[0].b", "0"):
        value = walk(document, parse_path(path))
        assert value is None or isinstance(as_text(value), str)


def test_a_value_is_handed_on_as_a_text() -> None:
    assert as_text(b'"a\\n"') == "a\n"
    assert as_text(b'{"a": [1,\n 2]}') == '{"a":[1,2]}'
    assert as_text(b'[ "\xc3\xa4" ]') == '["\u00e4"]'
    # Half a character: JSON by its grammar, and no text.
    assert as_text(rb'"\ud83d"') == r'"\ud83d"'


STEPS = st.sampled_from(["a", "b", "0", 'c"d', "\x00", "\ud800", "é", "", 0, 1])
DOCUMENTS = st.recursive(
    st.none() | st.integers() | st.text(max_size=2),
    lambda one: (
        st.lists(one, max_size=2) | st.dictionaries(STEPS.filter(lambda step: step != "\ud800").map(str), one)
    ),
)


@given(st.dictionaries(st.sampled_from("ab0"), DOCUMENTS), st.lists(STEPS, min_size=1, max_size=3).map(tuple))
def test_a_way_that_is_made_ready_leads_where_each_step_leads(
    document: dict[str, object], path: tuple[str | int, ...]
) -> None:
    opened = members(msgspec.json.encode(document))
    assert walker(path)(opened) == walk_members(opened, path)
