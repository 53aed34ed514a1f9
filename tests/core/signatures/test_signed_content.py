"""The template of what is signed, and the places in a call that it names."""

from hashlib import sha256
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postern.core.calls.call import Call
from postern.core.signatures.select import InvalidReference, finder, parse_ref
from postern.core.signatures.signed_content import (
    LONGEST,
    MOST_TOKENS,
    TOKEN_WORDS,
    InvalidTemplate,
    Missing,
    SignedContent,
    TokenKind,
    neighbours,
    parse_template,
)

JSON = (b"content-type", b"application/json")


def call(body: bytes = b"{}", query: bytes = b"", *headers: tuple[bytes, bytes]) -> Call:
    return Call("POST", b"/webhook/x", query, (JSON, *headers), body, "203.0.113.9", 0.0, "https://h.example")


def signed(template: str, of: Call, public_url: str | None = None, **more: str) -> bytes | Missing:
    return SignedContent(template, public_url=public_url, **more).of(of, b"17", b"id_1")


@pytest.mark.parametrize(
    ("template", "content"),
    [
        ("{body}", b'{"a":1}'),
        ("{timestamp}.{id}.{body}", b'17.id_1.{"a":1}'),
        ("{body_sha256}", sha256(b'{"a":1}').hexdigest().encode()),
        ("{{{method}}} {path}é", "{POST} /webhook/xé".encode()),
        ("{bodyfield:a}:{bodyfield:none}", b"1:"),
        ("{url}", b"https://h.example/webhook/x?q=1&q2=%20"),
        ("{header:X-One}|{query:q}|{bodyfield:a}", b"1|1|1"),
        ("{headers:X-*}", b"1\n2"),
    ],
)
def test_what_is_signed_is_what_arrived(template: str, content: bytes) -> None:
    came = call(b'{"a":1}', b"q=1&q2=%20", (b"x-two", b" 2 "), (b"x-one", b"1"))
    assert signed(template, came) == content


@pytest.mark.parametrize(
    ("public", "content"),
    [
        ("https://shop.example/in", b"https://shop.example/in?q=1"),
        ("https://shop.example/in?own=1", b"https://shop.example/in?own=1"),
    ],
)
def test_the_url_is_the_one_that_the_sender_was_given(public: str, content: bytes) -> None:
    assert signed("{url}", call(b"", b"q=1"), public) == content
    assert signed("{path}{body}", call(b"!"), public) == b"/in!"


def test_only_the_named_escapes_are_decoded() -> None:
    escaped = call(b"", b"u=https%3a%2F%2Fa%20b%26")
    found = signed("{url}", escaped, url_unescape=":/")
    assert found == b"https://h.example/webhook/x?u=https://a%20b%26"


def test_the_fields_of_an_array_are_found_where_a_mapping_finds_them() -> None:
    assert signed("{bodyfield:items[1].id}", call(b'[{"id":"a"},{"id":"b"}]')) == b"b"


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{header:X-None}{body}", "was not sent"),
        ("{header:X-Twice}{body}", "was sent 2 times"),
        ("{headers:X-None-*}", "nothing of this call is signed"),
        ("{headers:X-Twice*}", "sent twice"),
        ("{bodyfield:none}:{bodyfield:nothing}", "none of the signed body fields"),
    ],
)
def test_what_is_not_there_is_no_empty_text(template: str, why: str) -> None:
    came = call(b'{"none":null}', b"", (b"x-twice", b"1"), (b"x-twice", b"2"))
    missing = signed(template, came)
    assert isinstance(missing, Missing) and why in missing.detail


def test_fields_of_a_body_that_cannot_be_read_sign_nothing() -> None:
    missing = signed("{bodyfield:a}", call(b"{"))
    assert isinstance(missing, Missing) and "cannot be read" in missing.detail


NO_TEMPLATES = [
    "",
    "only text",
    "{body}" * (MOST_TOKENS + 1),
    "{body}" + "x" * (LONGEST - 5),
    "{body} {",
    "}{body}",
]


@pytest.mark.parametrize("template", [*NO_TEMPLATES, "{nothing}", "{header:X-*}", "{query:}"])
def test_what_is_no_template_is_reported_and_one_of_the_longest_kind_is_taken(template: str) -> None:
    with pytest.raises(InvalidTemplate):
        parse_template(template)
    assert parse_template("{body}" * MOST_TOKENS) and parse_template("{body}" + "x" * (LONGEST - 6))


def test_every_token_has_its_words() -> None:
    named = {token.kind for text in TOKEN_WORDS for token in parse_template(text)}
    assert named == {*get_args(get_args(TokenKind)[0]), *get_args(get_args(TokenKind)[1])} - {"literal"}
    assert all(TOKEN_WORDS.values())


def test_a_place_in_a_call_is_read() -> None:
    for place in ("query:" + "q" * 100, "item:t", "header:X-*", "body:a.b[0]", " query:q "):
        assert str(parse_ref(place)).casefold() == place.strip().casefold()


NO_PLACES = ["", "header", "query", "query:", "item:", "query:" + "q" * 101, "item:a\nb", "header:X *"]


@pytest.mark.parametrize("place", [*NO_PLACES, "body:[", "cookie:a"])
def test_what_is_no_place_is_reported(place: str) -> None:
    with pytest.raises(InvalidReference):
        parse_ref(place)


def test_every_value_at_a_place_is_found_in_its_order() -> None:
    headers = (b"x-a", b" 1\t"), (b"x-a", b"2"), (b"x-ab", b"3")
    came = call(b'{"a":{"b":"text"},"n":null}', b"q=2&p=0&q=1", *headers)
    for place, found in (
        ("query:q", [b"2", b"1"]),
        ("header:X-A", [b"1", b"2"]),
        ("header:X-A*", [b"1", b"2", b"3"]),
        ("item:t", []),
        ("body:a.b", [b"text"]),
        ("body:n", []),
    ):
        assert finder(parse_ref(place))(came) == found, place


def test_no_value_of_signed_headers_runs_into_the_next() -> None:
    for headers, why in (
        (((b"x-one", b"1\n2"),), "line break"),
        (((b"x-one", b"1"), (b"x-one", b"2")), "sent twice"),
        ((), "was sent"),
    ):
        found = signed("{headers:X-*}", call(b"{}", b"", *headers))
        assert isinstance(found, Missing) and why in found.detail


VALUES = st.text(".:\nab", max_size=4)


@given(
    st.lists(st.sampled_from([".", ":", "::", ".:", "\n", "a"]), min_size=2, max_size=2),
    st.tuples(VALUES, VALUES, VALUES),
    st.tuples(VALUES, VALUES, VALUES),
    st.integers(0, 3),
)
@settings(max_examples=300)
def test_the_same_bytes_are_of_the_same_values(
    between: list[str], one: tuple[str, ...], other: tuple[str, ...], free: int
) -> None:
    """Only one value may hold what divides them: otherwise two calls would have the same signature."""
    template = f"{{bodyfield:x0}}{between[0]}{{bodyfield:x1}}{between[1]}{{bodyfield:x2}}"
    content = SignedContent(template, free_value=f"body:x{free}")

    def of(values: tuple[str, ...]) -> bytes | Missing:
        body = msgspec.json.encode({f"x{number}": value for number, value in enumerate(values)})
        return content.of(call(body), b"", b"")

    made = of(one)
    for values in (other, *shifted(one, between)):
        assert values == one or isinstance(made, Missing) or of(values) != made


def shifted(values: tuple[str, ...], between: list[str]) -> list[tuple[str, ...]]:
    """Every other way to read the same bytes as three values."""
    whole = values[0] + between[0] + values[1] + between[1] + values[2]
    places = range(len(whole))
    return [
        (whole[:first], whole[first + len(between[0]) : second], whole[second + len(between[1]) :])
        for first in places
        for second in places
        if whole.startswith(between[0], first)
        and second >= first + len(between[0])
        and whole.startswith(between[1], second)
    ]


@pytest.mark.parametrize(
    ("template", "of", "refused"),
    [
        ("{fieldline:a}{fieldline:b}", {"a": "1\n2", "b": "3"}, True),
        ("{fieldline:a}{fieldline:b}", {"a": "1\r2", "b": "3"}, False),
        ("{fieldline:a}{fieldline:b}", {"b": "3\n"}, True),
        ("{bodyfield:a}:{timestamp}:{bodyfield:b}", {"a": ":", "b": ""}, True),
        ("v0:{bodyfield:a}:", {"a": "v0:"}, False),  # nothing beside it
        ("{id}_{bodyfield:a}", {"a": "1"}, True),  # the id is id_1
        ("{{{bodyfield:a}}}{{{bodyfield:b}", {"a": "}", "b": "2"}, False),
        ("{{{bodyfield:a}}}{{{bodyfield:b}", {"a": "}{", "b": "2"}, True),
    ],
)
def test_no_value_holds_what_divides_it(template: str, of: dict[str, str], refused: bool) -> None:
    assert isinstance(signed(template, call(msgspec.json.encode(of))), Missing) is refused


def test_values_with_nothing_between_them_are_named() -> None:
    assert neighbours(
        "{id}{timestamp}{header:X-A}{query:b}:{bodyfield:c}{fieldline:d}{fieldline:e}{body}"
    ) == ["x-a and the URL parameter b", "the body's field c and the body's field d"]
