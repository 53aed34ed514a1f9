"""What a filter says of one header or one value."""

import msgspec
import pytest

from postern.core.history.invocation import HistoryFilter, Invocation
from postern.core.history.part import (
    Part,
    in_fields,
    in_headers,
    is_in_payload,
    looks_into_calls,
    part_of,
    path_of,
)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (" name ", Part("name", None)),
        ("name=", Part("name", "")),
        (" name = value ", Part("name", "value")),
        ("name=a=b", Part("name", "a=b")),
        ("name=begin*", Part("name", "begin", begins=True)),
        ("name=*", Part("name", "", begins=True)),
    ],
)
def test_a_part_is_a_name_and_perhaps_a_value_or_its_beginning(text: str, part: Part) -> None:
    assert part_of(text) == part


def test_a_value_meets_the_name_alone_the_whole_value_or_its_beginning() -> None:
    assert part_of("id").is_met_by("") and part_of("id").is_met_by("7")
    assert [part_of("id=70").is_met_by(found) for found in ("70", "700", "7")] == [True, False, False]
    assert [part_of("id=70*").is_met_by(found) for found in ("70", "700", "7")] == [True, True, False]


def test_only_what_no_index_knows_looks_into_the_calls() -> None:
    assert path_of(HistoryFilter(field="customer.id=7")) == Part("customer.id", "7")
    assert path_of(HistoryFilter(field="fieldOne=7")) is None and path_of(HistoryFilter()) is None
    looking = [HistoryFilter(search="a"), HistoryFilter(header="a"), HistoryFilter(field="a")]
    assert all(map(looks_into_calls, looking))
    known = [
        HistoryFilter(),
        HistoryFilter(value="a"),
        HistoryFilter(field="fieldTwo"),
        HistoryFilter(status="held"),
    ]
    assert not any(map(looks_into_calls, known))


def test_a_header_or_a_mapped_value_is_found_in_what_is_recorded_and_no_other() -> None:
    headers = msgspec.json.encode([("x-kind", 'order"s'), ("x-other", "x-kind")])
    for text in ("X-Kind", 'x-kind=order"s', 'x-kind=order"*'):
        assert in_headers(part_of(text)) in headers
    for text in ("kind", 'x-kind=order"', "x-kind=rder*", "order"):
        assert in_headers(part_of(text)) not in headers
    fields = msgspec.json.encode({"fieldOne": "1001", "fieldTwo": "fieldThree"})
    for text in ("fieldOne", "fieldOne=1001", "fieldOne=10*"):
        assert in_fields(part_of(text)) in fields
    for text in ("fieldThree", "fieldOne=100", "fieldOne=0*", "fieldTwo=1001"):
        assert in_fields(part_of(text)) not in fields


def recorded(body: bytes | None) -> Invocation:
    return Invocation(
        *("inv_1", "wh_1", 0.0, "accepted", "accepted", 200, 1, "POST", b"/webhook/x", b"", b"[]", body),
        *(len(body or b""), "192.0.2.1", 10, "", "", b"[]"),
    )


def test_a_value_of_the_payload_is_found_by_its_path() -> None:
    order = recorded(b'{"customer":{"id":7,"tags":["new"]}}')
    for text in ("customer", "customer.id", "customer.id=7", "customer.tags[0]=n*"):
        assert is_in_payload(part_of(text), order) is True
    for text in ("id", "customer.id=8", "customer.tags[1]"):
        assert is_in_payload(part_of(text), order) is False
    assert is_in_payload(part_of("items[0].id=1"), recorded(b'[{"id":1}]'))
    for body in (None, b"", b"no JSON"):
        assert is_in_payload(part_of("customer"), recorded(body)) is False
