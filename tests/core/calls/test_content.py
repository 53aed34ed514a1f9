"""What counts as a JSON object, and what is answered about everything else."""

import json
import zlib
from functools import partial
from gzip import compress
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postern.core.calls import content
from postern.core.calls.content import ANYTHING, PLAIN, Payload, TakenBodies, UnreadableContent, read_object
from support.calls import call

FORM = "application/x-www-form-urlencoded"


def read(
    body: bytes, content_type: str | None = "application/json", *headers: tuple[str, str]
) -> bytes | str:
    types = [] if content_type is None else [("Content-Type", content_type)]
    result = read_object(call(body, *types, *headers))
    return result.code if isinstance(result, UnreadableContent) else result.text


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "APPLICATION/JSON; charset=UTF-8",
        "application/cloudevents+json",
        None,
        "text/plain",
        "text/plain;charset=UTF-8",
    ],
)
def test_a_json_object_is_read_as_it_was_sent(kind: str | None) -> None:
    body = b'{ "price": 10.00, "n": 12345678901234567890123, "u": "\xc3\xa9" }'
    assert read(body, kind) == body


@pytest.mark.parametrize(
    "body",
    [b"{", b'{"a":NaN}', b'{"a":Infinity}', b'{"a":01}', b"{'a':1}", b'{"a":"\xff"}', b'{"a":1}x', b'{"a":"\x00"}',
     b"\xff\xfe{\x00}\x00", b"nonsense", b"[", b"[1,2", b"1x", b'{"a":"\0n \\ud83d"}'],
)  # fmt: skip
def test_what_is_not_json_is_malformed(body: bytes) -> None:
    assert read(body) == "malformed_json"


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"", "the body is empty"),
        (b" \r\n", "the body is blank"),
        (b'{"a":', "the body ends in the middle of its JSON"),
        (b"[1,", "the body ends in the middle of its JSON"),
        (b"[1] x", "JSON is malformed: trailing characters (byte 5)"),
        (b"[" * 1_000_000, "nested deeper than 100 levels"),
    ],
)
@pytest.mark.parametrize("taken", [PLAIN, TakenBodies("whole")])
def test_what_is_wrong_with_it_is_reported_in_words_that_hold(
    body: bytes, detail: str, taken: TakenBodies
) -> None:
    found = read_object(call(body, ("Content-Type", "application/json")), taken)
    assert isinstance(found, UnreadableContent)
    assert (found.code, found.detail) == ("malformed_json", detail)


def test_json_that_is_called_a_form_says_so() -> None:
    def sent(body: bytes) -> tuple[str, str]:
        found = read_object(call(body, ("Content-Type", FORM)))
        assert isinstance(found, Payload)
        return found.sent_as, found.remark

    assert "application/json" in sent(b'{"a": 1}')[1]
    assert sent(b"a=1") == sent(b"{a}=1") == ("a form, read as ", "")


@pytest.mark.parametrize("body", [b"[]", b'"text"', b"1", b"null", b"true", b'["\\ud800"]'])
def test_json_that_is_no_object_is_recognised(body: bytes) -> None:
    assert read(body) == "payload_not_an_object"


@pytest.mark.parametrize(
    ("levels", "code"),
    [(100, "payload_not_an_object"), *((levels, "malformed_json") for levels in (101, 500, 5_000, 100_000))],
)
def test_an_array_is_judged_alike_however_deep_the_decoder_goes(levels: int, code: str) -> None:
    assert read(b"[" * levels + b"]" * levels) == code


def test_a_byte_order_mark_is_no_part_of_the_object() -> None:
    assert read(b'\xef\xbb\xbf{"a":1}') == b'{"a":1}'


@pytest.mark.parametrize(
    ("body", "read_as"),
    [
        (b"name=J%C3%BCrgen+K&empty=&n=1", '{"name":"Jürgen K","empty":"","n":"1"}'.encode()),
        # One field with this name alone is the JSON in it.
        (b"payload=%7B%22action%22%3A%22opened%22%7D", b'{"action":"opened"}'),
        (b"payload=%7B%7D&x=1", b'{"payload":"{}","x":"1"}'),
    ],
)
def test_a_form_is_an_object_of_texts(body: bytes, read_as: bytes) -> None:
    assert read(body, FORM) == read_as


def test_a_form_of_a_thousand_fields_is_read_and_one_more_is_not() -> None:
    form = [b"f%d=x" % number for number in range(1001)]
    assert len(json.loads(read(b"&".join(form[:1000]), FORM))) == 1000
    assert read(b"&".join(form), FORM) == "malformed_json"


@pytest.mark.parametrize(
    ("body", "kind", "more"),
    [
        *((b"{}", kind, []) for kind in ("application/xml", "text/html", "application/json; charset=latin-1", "x")),
        (b"hello", "text/plain", []),
        *((b"{}", "application/json", [("Content-Encoding", coding)]) for coding in ("gzip", "br", "deflate", "GZIP")),
        (b"{}", "application/json", [("Content-Type", "text/xml")]),
    ],
)  # fmt: skip
def test_other_types_and_compressed_bodies_are_rejected(
    body: bytes, kind: str, more: list[tuple[str, str]]
) -> None:
    assert read(body, kind, *more) == "unsupported_media_type"


@pytest.mark.parametrize(
    ("inside", "deep"),
    [
        (b'["' + b"[{" * 200 + b'"]', False),  # brackets in a text are no nesting
        (b'["\\"' + b"[{" * 200 + b'", "\\\\", ' + b"[]," * 200 + b"0]", False),
        (b"[" + b"[{}]," * 200 + b"0]", False),  # wide is not deep
        (b"[" * 99 + b"]" * 99, False),
        (b'["]", ' + b"[" * 99 + b'"}]"' + b"]" * 99 + b', "]"]', True),
        (b'{"a":' * 99 + b"0" + b"}" * 99, False),
        (b'{"a":' * 100 + b"0" + b"}" * 100, True),
    ],
)
def test_depth_is_what_nests_outside_of_texts(inside: bytes, deep: bool) -> None:
    body = b'{"a":' + inside + b"}"
    assert read(body) == ("malformed_json" if deep else body)


@pytest.mark.parametrize(
    ("sent", "read_as"),
    [
        (rb'{"a":"cut \ud83d"}', rb'{"a":"cut \ufffd"}'),
        (rb'{"a":"\ude00\uD83D!"}', rb'{"a":"\ufffd\ufffd!"}'),
        (rb'{"a":"\ud83d\ude00"}', rb'{"a":"\ud83d\ude00"}'),
        (rb'{"a":"\\ud83d"}', rb'{"a":"\\ud83d"}'),
        (rb'{"a":"\\\ud83d"}', rb'{"a":"\\\ufffd"}'),
        (rb'{"a":"\n\ud83d\ud83d\ude00\ude00\u0041"}', rb'{"a":"\n\ufffd\ud83d\ude00\ufffd\u0041"}'),
    ],
)
def test_half_an_emoji_is_replaced_and_a_whole_one_is_not(sent: bytes, read_as: bytes) -> None:
    assert read(sent) == read_as


NESTED = st.recursive(
    st.none() | st.sampled_from(["[[", "}", '"', "\\", '\\"[']),
    lambda inside: st.lists(inside) | st.dictionaries(st.text("[]ab"), inside),
)


@given(NESTED, st.integers(0, 60))
def test_depth_is_that_of_the_document(document: object, around: int) -> None:
    def depth(value: object) -> int:
        inside = value.values() if isinstance(value, dict) else value
        return 1 + max(map(depth, inside), default=0) if isinstance(value, (dict, list)) else 0

    beside = "[" * 3 + "1" + "]" * 3
    text = f"[{beside}," * around + json.dumps(document) + "]" * around
    assert content._depth(text.encode()) == max(around + depth(document), around + 3 if around else 0)


def test_a_body_is_read_once_for_whoever_asks() -> None:
    order = call(b"[1]", ("Content-Type", "application/json"))
    assert read_object(order) is read_object(order)
    assert read_object(order, ANYTHING) is read_object(order, ANYTHING)
    assert isinstance(read_object(order), UnreadableContent)
    assert not isinstance(read_object(order, ANYTHING), UnreadableContent)


packed = partial(compress, mtime=0)


def bare(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", packed(b'{"a":1}')),
        ("GZIP", packed(b'{"a":') + packed(b"1}")),
        ("deflate", zlib.compress(b'{"a":1}')),
        ("deflate", bare(b'{"a":1}')),
        ("identity", b'{"a":1}'),
    ],
)
def test_a_compressed_body_is_unpacked(coding: str, body: bytes) -> None:
    found = read_object(call(body, ("Content-Encoding", coding)), ANYTHING)
    assert isinstance(found, Payload) and found.text == b'{"a":1}'


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (packed(b" " * 1001), "payload_too_large"),
        (packed(packed(b" " * 10_000_000)), "payload_too_large"),
        (packed(b" " * 1000) + packed(b"{}"), "payload_too_large"),
        (packed(b"{}")[:-1], "malformed_json"),
        (b"{}", "malformed_json"),
        (b"", "malformed_json"),
    ],
)
def test_what_a_few_bytes_stand_for_is_bounded(body: bytes, code: str) -> None:
    found = read_object(call(body, ("Content-Encoding", "gzip")), TakenBodies(largest=1000))
    assert isinstance(found, UnreadableContent) and found.code == code


def test_a_body_of_nothing_but_ends_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each empty member is twenty bytes, and everything behind it is copied when it ends."""
    read = []

    class Opened:
        def __init__(self, window: int) -> None:
            self._real = zlib.decompressobj(window)

        def decompress(self, data: bytes, most: int) -> bytes:
            read.append(len(data))
            return self._real.decompress(data, most)

        def __getattr__(self, name: str) -> object:
            return getattr(self._real, name)

    monkeypatch.setattr(content, "zlib", SimpleNamespace(decompressobj=Opened, error=zlib.error))
    assert content.unpacked(packed(b"") * 5000 + packed(b"{}"), b"gzip", 1000) == b"{}"
    assert sum(read) <= 5001 * content.PIECE


def parts(*written: str, end: str = "--x--") -> bytes:
    fields = [f"--x\r\nContent-Disposition: form-data; {one}\r\n" for one in written]
    return ("".join(fields) + end).encode()


IN_PARTS = ("Content-Type", "multipart/form-data; boundary=x; charset=latin-1")


def test_a_form_in_parts_has_its_fields_and_of_files_what_is_known_of_them() -> None:
    body = parts(
        'name="a"\r\n\r\n1',
        'name="f"; filename="p.pdf"\r\nContent-Type: application/pdf\r\n\r\nabc\r\nd',
        'name="b"\r\n\r\nJ\u00fc',
        'name="g"; filename="q"\r\n\r\n',  # its type is not that of the file before it
    )
    found = read_object(call(body, IN_PARTS))
    assert isinstance(found, Payload) and found.sent_as == "a form in parts, read as "
    file = {"name": "p.pdf", "type": "application/pdf", "size": 6}
    other = {"name": "q", "type": "application/octet-stream", "size": 0}
    assert json.loads(found.text) == {"a": "1", "f": file, "b": "J\u00fc", "g": other}


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{}", b"--x", b"--x\r\n\r\n",
        parts('name="a"\r\n\r\n1', end=""),
        parts(*[f'name="{one}"\r\n\r\n1' for one in range(1001)]),
        parts("x: " + "y" * content.LONGEST_PART_HEAD + "\r\n\r\n"),
        parts("a; " * content.MOST_PARAMETERS + 'name="a"\r\n\r\n1'),
        b"--x and more\r\n\r\n\r\n--x--",
    ],
)  # fmt: skip
def test_a_damaged_form_in_parts_is_malformed(body: bytes) -> None:
    found = read_object(call(body, IN_PARTS))
    assert isinstance(found, UnreadableContent) and found.code == "malformed_json"


@pytest.mark.parametrize(
    ("kind", "is_read"),
    [
        ("; boundary=" + "b" * 257, True),
        ("; boundary=" + "b" * 60_000, True),
        ('; boundary="b c"', True),
        ("; boundary=\xff", True),
        ("", False),
        ('; boundary=""', False),
        (";a" * 20_000 + "; boundary=b", False),
    ],
)
def test_whatever_boundary_a_stranger_names_the_form_is_read_or_malformed(kind: str, is_read: bool) -> None:
    boundary = kind.partition("boundary=")[2].strip('"').encode("latin-1")
    body = parts('name="a"\r\n\r\n1').replace(b"--x", b"--" + boundary)
    sent = call(body).but(headers=((b"content-type", b"multipart/form-data" + kind.encode("latin-1")),))
    found = read_object(sent)
    if is_read:
        assert isinstance(found, Payload) and found.text == b'{"a":"1"}'
    else:
        assert isinstance(found, UnreadableContent) and found.code == "malformed_json"


@pytest.mark.parametrize(
    "flood",
    [
        b"--x\r\n\r\n" * 100_000,
        b"--x\r\n\r\n" + b"\r\n--x!" * 100_000,
        b"--x\r\nContent-Disposition: form-data" + b";a" * 100_000 + b"\r\n\r\n",
        (b"--x\r\nContent-Disposition: form-data" + b";a" * 400 + b"\r\n\r\n\r\n") * 1000,
    ],
)
def test_a_flood_of_parts_is_refused_before_each_is_read(
    monkeypatch: pytest.MonkeyPatch, flood: bytes
) -> None:
    """Empty parts of one name are one field, and a megabyte of them once took as long as a thousand calls."""
    read: list[bytes] = []
    real = content._parameters
    monkeypatch.setattr(content, "_parameters", lambda header: read.append(header) or real(header))
    found = read_object(call(flood + b"\r\n--x--", IN_PARTS))
    assert isinstance(found, UnreadableContent)
    assert len(read) <= content.MOST_FORM_FIELDS + 2
    assert sum(header.count(b";") for header in read) <= 2 + content.MOST_PARAMETERS * len(read)


def test_a_field_that_comes_more_than_once_is_a_list() -> None:
    """Boxes to tick, and the lines of an order."""
    assert read(b"size=1&item=a&item=b&item=", FORM) == b'{"size":"1","item":["a","b",""]}'
    assert read(b"payload={}&payload={}", FORM) == b'{"payload":["{}","{}"]}'
    body = parts('name="a"\r\n\r\n1', 'name="a"; filename="f"\r\n\r\nx', 'name="a"\r\n\r\n3')
    found = read_object(call(body, IN_PARTS))
    assert isinstance(found, Payload)
    assert json.loads(found.text)["a"] == [
        "1",
        {"name": "f", "type": "application/octet-stream", "size": 1},
        "3",
    ]


def test_before_the_proof_few_bytes_stand_for_few() -> None:
    """A scheme that signs fields has them read for anybody; the webhook's own limit counts once somebody is proven."""
    sent = call(packed(b'{"a":"' + b"x" * 100_000 + b'"}'), ("Content-Encoding", "gzip"))
    before = read_object(sent, ANYTHING)
    assert isinstance(before, UnreadableContent) and before.code == "payload_too_large"
    assert isinstance(read_object(sent, TakenBodies(largest=content.PAYLOAD_LIMIT)), Payload)


def test_a_defect_in_a_parser_is_no_more_than_a_body_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The record of the call is read again by every list."""
    monkeypatch.setattr(content, "members", lambda text: {}[text])
    found = read_object(call(b"{}", ("Content-Type", "application/json")))
    assert isinstance(found, UnreadableContent) and found.detail == "the body cannot be read (KeyError)"


@given(
    st.binary(max_size=80),
    st.sampled_from(["multipart/form-data; boundary=x", "text/xml", "application/json", FORM])
    | st.text(st.characters(max_codepoint=255)).map(lambda text: "multipart/form-data;boundary=" + text),
)
def test_any_bytes_are_read_or_told_to_be_wrong(body: bytes, kind: str) -> None:
    for text in (body, b"--x\r\n" + body + b"\r\n--x--"):
        read_object(call(text, ("Content-Type", kind), ("Content-Encoding", "gzip")), ANYTHING)
        read_object(call(text, ("Content-Type", kind)), ANYTHING)


def test_xml_and_nothing_are_taken_where_that_was_chosen() -> None:
    def sent(body: bytes, taken: TakenBodies) -> str:
        found = read_object(call(body, ("Content-Type", "application/soap+xml; charset=utf-8")), taken)
        return found.text.decode() if isinstance(found, Payload) else found.detail

    assert sent(b'\xef\xbb\xbf<a>"</a>', TakenBodies(xml=True)) == '{"xml":"<a>\\"</a>"}'
    assert sent(b"<a/>", PLAIN) == "the body is XML, and acceptsXml is not set"
    assert sent(b"\xff<a/>", TakenBodies(xml=True)) == "XML in another character set than UTF-8"
    assert sent(b" \r\n", TakenBodies(empty=True)) == "{}"
    assert sent(b"", TakenBodies(xml=True)) == '{"xml":""}'
