"""What a filter says of one header or one value."""

import msgspec
import pytest

from postern.core.history import part
from postern.core.history.invocation import Content, HistoryFilter
from postern.core.history.part import (
    ContentPart,
    in_fields,
    in_headers,
    is_in_payload,
    looks_into_calls,
    part_of,
    path_of,
)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (" name ", ContentPart("name", None)),
        ("name=", ContentPart("name", "")),
        (" name = value ", ContentPart("name", "value")),
        ("name=a=b", ContentPart("name", "a=b")),
        ("name=begin*", ContentPart("name", "begin", begins=True)),
        ("name=*", ContentPart("name", "", begins=True)),
    ],
)
def test_a_part_is_a_name_and_perhaps_a_value_or_its_beginning(text: str, meant: ContentPart) -> None:
    assert part_of(text) == meant


def test_a_value_meets_the_name_alone_the_whole_value_or_its_beginning() -> None:
    assert part_of("id").is_met_by("") and part_of("id").is_met_by("7")
    assert [part_of("id=70").is_met_by(found) for found in ("70", "700", "7")] == [True, False, False]
    assert [part_of("id=70*").is_met_by(found) for found in ("70", "700", "7")] == [True, True, False]


def test_only_what_no_index_knows_looks_into_the_calls() -> None:
    assert path_of(HistoryFilter(field="customer.id=7")) == ContentPart("customer.id", "7")
    assert path_of(HistoryFilter(field="fieldOne=7")) is None and path_of(HistoryFilter()) is None
    looking = [HistoryFilter(search="a"), HistoryFilter(header="a"), HistoryFilter(field="a")]
    assert all(map(looks_into_calls, looking))
    known = [HistoryFilter(value="a"), HistoryFilter(field="fieldTwo"), HistoryFilter(status="held")]
    assert not any(map(looks_into_calls, (HistoryFilter(), *known)))


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


AS_JSON, AS_FORM = b"[]", b'[["content-type","application/x-www-form-urlencoded"]]'


def test_a_value_of_the_payload_is_found_by_its_path() -> None:
    order = b'{"customer":{"id":7,"tags":["new"]}}'
    for text in ("customer", "customer.id", "customer.id=7", "customer.tags[0]=n*", "customer.tags[0]=NEW"):
        assert is_in_payload(part_of(text), AS_JSON, order) is True
    for text in ("id", "customer.id=8", "customer.tags[1]"):
        assert is_in_payload(part_of(text), AS_JSON, order) is False
    assert is_in_payload(part_of("items[0].id=1"), AS_JSON, b'[{"id":1}]')
    for body in (b"", b"no JSON", b'"customer"'):
        assert is_in_payload(part_of("customer"), AS_JSON, body) is False


@pytest.mark.parametrize(
    ("text", "headers", "body"),
    [
        ("na\u00efve=\u00e9t\u00e9", AS_JSON, b'{"na\\u00efve":"\\u00e9t\\u00e9"}'),
        ("na\u00efve=\u00e9t\u00e9", AS_JSON, '{"na\u00efve":"\u00e9t\u00e9"}'.encode()),
        ("a.b=x/y", AS_JSON, b'{"a":{"b":"x\\/y"}}'),
        ("order id=two words", AS_FORM, b"order+id=two%20words"),
        ("%6f%72%64%65%72=7", AS_JSON, b'{"%6f%72%64%65%72":"7"}'),
        ("order=7", AS_FORM, b"%6f%72%64%65%72=7"),
        ("order.id=7", AS_FORM, b"payload=%7B%22order%22:%7B%22id%22:7%7D%7D"),
        ("order.id=7", AS_FORM, b'payload={"order":{"id":7}}'),
        ("name=caf\N{REPLACEMENT CHARACTER}", AS_FORM, b"name=caf\xe9"),
        ("caf\N{REPLACEMENT CHARACTER}=1", AS_FORM, b"caf\xe9=1"),
        ('a={"b":1}', AS_JSON, b'{"a": {"b": 1}}'),
        ("a=[1,2]", AS_JSON, b'{"a": [ 1, 2 ]}'),
        ("a=", AS_JSON, b'{"a":null}'),
        ("a=1e3", AS_JSON, b'{"a":1e3}'),
        ("a=TEA-2*", AS_JSON, b'{"a":"tea-250"}'),
        ("a=ÉTÉ", AS_JSON, '{"a":"été"}'.encode()),
        ("a=true", AS_JSON, b'{"a":true}'),
        ("items[0]=1", AS_JSON, b"[1]"),
        ("items.0.items=1", AS_JSON, b'[{"items":1}]'),
        ("a=1", AS_JSON, b'\xef\xbb\xbf{"a":1}'),
    ],
)
def test_a_value_is_found_however_it_is_written(text: str, headers: bytes, body: bytes) -> None:
    """Most bodies are passed over without being read as JSON: none of these may be."""
    assert is_in_payload(part_of(text), headers, body)


def test_only_bodies_that_may_hold_it_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes | None] = []

    def counted(kept: Content) -> None:
        read.append(kept.body)

    monkeypatch.setattr(part, "payload_of", counted)
    asked = part_of("order.number=17")
    for body in (b'{"order":{"number":"18"}}', b'{"number":"17"}', b'{"order":"17"}'):
        assert not is_in_payload(asked, AS_JSON, body)
    assert read == []
    likely = b'{"order":{"number":"17"}}'
    assert not is_in_payload(asked, AS_JSON, likely) and read == [likely]
