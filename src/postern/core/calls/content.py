"""From body bytes to one JSON object, or the reason why not; and from that object to the trigger's four fields."""

import re
import zlib
from functools import lru_cache
from typing import Literal

import msgspec

from postern.core.calls.call import Call, Headers, query_pairs
from postern.core.calls.paths import Path, as_text, members, parse_path, walk_members
from postern.core.deliveries.delivery import FIELD_NAMES
from postern.core.documents import Document

PAYLOAD_LIMIT = 1024 * 1024
LARGEST_PAYLOAD_LIMIT = 25 * 1024 * 1024
DEEPEST = 100
USUAL_DEPTH = 8
MOST_FORM_FIELDS = 1000
LONGEST_PART_HEAD = 16 * 1024
MOST_PARAMETERS = 16
MOST_ELEMENTS = 2000
LONGEST_REMEMBERED = 100
LONGEST_VALUE = 65_536
PIECE = 4096

Arrays = Literal["refused", "whole", "each"]
"""A body that is an array is refused, is one event with its ``items``, or is a call for each element."""

_FORM = b"application/x-www-form-urlencoded"
_MULTIPART = b"multipart/form-data"
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))
_ALIKE = re.compile(rb"\[+|\]+")
_HEADER_OF_PART = re.compile(rb"\r\n(content-disposition|content-type)[ \t]*:([^\r\n]*)", re.IGNORECASE)
_TOO_MANY_FIELDS = f"a form of more than {MOST_FORM_FIELDS} fields"


class UnreadableContent(msgspec.Struct, frozen=True):
    code: str
    detail: str


class Payload(msgspec.Struct):
    """A call's JSON object: its text exactly as sent, and its members, opened once for all look-ups."""

    text: bytes
    members: dict[str, msgspec.Raw]
    sent_as: str = ""
    """The kind of body that was sent instead of JSON, for the trace."""
    remark: str = ""
    is_array: bool = False
    """The array that was sent is in ``items``."""


class TakenBodies(msgspec.Struct, frozen=True, cache_hash=True):
    """The bodies that are accepted besides JSON objects and forms."""

    arrays: Arrays = "refused"
    empty: bool = False
    xml: bool = False
    largest: int = 0
    """The most bytes of a compressed body when it is unpacked. 0 refuses compressed bodies."""


PLAIN = TakenBodies()
ANYTHING = TakenBodies("whole", empty=True, xml=True, largest=16 * 1024)
"""Whatever may hold a proof. Anybody may send it, so few bytes must not stand for many."""
RECORDED = TakenBodies("whole", empty=True, xml=True, largest=LARGEST_PAYLOAD_LIMIT)


_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])


def elements_of(array: bytes | msgspec.Raw) -> list[bytes]:
    """Returns each element as the text that was sent. Raises msgspec's errors if this is not a JSON array."""
    return [bytes(element) for element in _ARRAY.decode(array)]


# They tell how the whole travelled, and are not true of a part of it.
_OF_THE_JOURNEY = frozenset(
    {b"content-encoding", b"content-length", b"transfer-encoding", b"connection", b"keep-alive"}
)


def headers_of_part(headers: Headers) -> Headers:
    return tuple((name, value) for name, value in headers if name not in _OF_THE_JOURNEY)


def read_object(call: Call, taken: TakenBodies = PLAIN) -> Payload | UnreadableContent:
    """The call's JSON object, read once. A form becomes an object of strings, and an array its ``items`` if it is taken."""
    objects = call._objects
    if objects is None:
        objects = call._objects = {}
    read: Payload | UnreadableContent | None = objects.get(taken)
    if read is None:
        try:
            read = _object(call, taken)
        except Exception as error:
            # A defect in a parser, found by a stranger's bytes. Once they are recorded, every list reads them again.
            read = UnreadableContent("malformed_json", f"the body cannot be read ({type(error).__name__})")
        objects[taken] = read
    return read


def _object(call: Call, taken: TakenBodies) -> Payload | UnreadableContent:
    types = call.header(b"content-type")
    if len(types) > 1:
        return UnreadableContent("unsupported_media_type", "two Content-Type headers")
    body = call.body
    for coding in call.header(b"content-encoding"):
        if (coding := coding.strip().lower()) not in (b"", b"identity"):
            unpacked = _unpacked(body, coding, taken.largest)
            if isinstance(unpacked, UnreadableContent):
                return unpacked
            body = unpacked
    if taken.empty and not body.strip(b" \t\r\n"):
        return Payload(b"{}", {}, "nothing, read as ")
    full = types[0] if types else b""
    kind = _kind_of(full) if len(full) <= LONGEST_REMEMBERED else _kind_of.__wrapped__(full)
    if isinstance(kind, UnreadableContent):
        return kind
    match kind:
        case "json":
            read = _json_object(body)
            is_array = isinstance(read, UnreadableContent) and read.code == "payload_not_an_object"
            if is_array and taken.arrays != "refused" and body.lstrip()[:1] == b"[":
                read = _json_object(b'{"items":' + body + b"}")
                if isinstance(read, Payload):
                    read.is_array = True
            return read
        case "text":
            read = _json_object(body)
            if isinstance(read, Payload):
                return read
            detail = f"text/plain is accepted only when it is a JSON object: {read.detail}"
            return UnreadableContent("unsupported_media_type", detail)
        case "form":
            return _form_object(body)
        case "multipart":
            return _multipart_object(body, full)
        case "xml":
            if taken.xml:
                return _xml_object(body)
            return UnreadableContent("unsupported_media_type", "the body is XML, and acceptsXml is not set")


def _unpacked(body: bytes, coding: bytes, largest: int) -> bytes | UnreadableContent:
    if not largest or coding not in (b"gzip", b"x-gzip", b"deflate"):
        return UnreadableContent("unsupported_media_type", "the body is compressed; send it as it is")
    try:
        text = unpacked(body, coding, largest)
    except EOFError:
        return UnreadableContent("malformed_json", "the compressed body ends too early")
    except zlib.error:
        return UnreadableContent("malformed_json", f"the body is not what {coding.decode()} makes")
    if len(text) > largest:
        detail = f"the body is larger than {largest} bytes when it is unpacked"
        return UnreadableContent("payload_too_large", detail)
    return text


def unpacked(body: bytes, coding: bytes, most: int) -> bytes:
    """Unpacks gzip or deflate. If the result is larger than ``most``, it returns one byte more: a few bytes may stand for
    gigabytes. Raises EOFError and zlib's errors."""
    # Deflate means zlib's format, and some send it without its head.
    is_bare = coding == b"deflate" and body[:1] and (body[0] & 0x0F != 8 or int.from_bytes(body[:2]) % 31)
    text, at = bytearray(), 0
    while at < len(body) and len(text) <= most:
        opened = zlib.decompressobj(-15 if is_bare else 47)
        # By small pieces: what lies behind an end is copied, and there may be an end every twenty bytes.
        while not opened.eof and len(text) <= most:
            if not (piece := body[at : at + PIECE]):
                raise EOFError("it ends too early")
            text += opened.decompress(piece, most + 1 - len(text))
            at += len(piece) - len(opened.unused_data)
    return bytes(text)


def is_form(call: Call) -> bool:
    return _kind_of.__wrapped__(call.first_header(b"content-type") or b"") == "form"


@lru_cache(maxsize=1000)
def _kind_of(content_type: bytes) -> Literal["json", "text", "form", "multipart", "xml"] | UnreadableContent:
    kind, _, parameters = content_type.partition(b";")
    kind = kind.strip().lower()
    if kind == _MULTIPART:
        return "multipart"
    if parameters and not _is_utf8(parameters):
        return UnreadableContent("unsupported_media_type", "text in another character set than UTF-8")
    if kind == b"application/json" or kind == b"" or kind.endswith(b"+json"):
        return "json"
    if kind == b"text/plain":
        return "text"
    if kind == _FORM:
        return "form"
    if kind in (b"application/xml", b"text/xml") or kind.endswith(b"+xml"):
        return "xml"
    return UnreadableContent("unsupported_media_type", "neither JSON nor a form")


def _is_utf8(parameters: bytes) -> bool:
    for parameter in parameters.lower().split(b";"):
        name, _, value = parameter.strip().partition(b"=")
        if name == b"charset":
            return value.strip(b" \"'") in (b"utf-8", b"utf8", b"us-ascii", b"ascii")
    return True


_HALF = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


def _without_half_characters(text: bytes) -> bytes:
    """Senders that cut a text may cut an emoji in two. Half a surrogate pair is valid grammar and no character: it becomes the
    replacement character. The stored body stays as it came."""
    if b"\0" in text:
        return text  # no JSON, whatever becomes of it
    # An escaped backslash begins no other escape, so it is out of the way meanwhile. All of it without a step
    # of Python for each escape: a stranger may send a body that holds nothing else.
    return _HALF.sub(rb"\\ufffd", text.replace(rb"\\", b"\0")).replace(b"\0", rb"\\")


def _json_object(body: bytes) -> Payload | UnreadableContent:
    # Some .NET senders put a byte order mark in front; it is no part of the JSON.
    text = body.removeprefix(b"\xef\xbb\xbf")
    try:
        text.decode()  # the decoder below passes text over without looking inside it
        opened = members(text)
        if _brackets(text) > DEEPEST and _depth(text) > DEEPEST:
            return UnreadableContent("malformed_json", f"nested deeper than {DEEPEST} levels")
    except UnicodeDecodeError:
        return UnreadableContent("malformed_json", "the body is not UTF-8")
    except msgspec.ValidationError:
        return _no_object(text)
    except RecursionError:
        return UnreadableContent("malformed_json", f"nested deeper than {DEEPEST} levels")
    except (msgspec.DecodeError, ValueError) as error:
        mended = _without_half_characters(text) if b"\\u" in text else text
        if mended != text:
            return _json_object(mended)
        return _malformed(text, error)
    return Payload(text, opened)


def _no_object(text: bytes) -> UnreadableContent:
    """Says why a text is no JSON object that begins like another kind of JSON."""
    try:
        msgspec.json.decode(_without_half_characters(text), type=msgspec.Raw)
    except RecursionError:
        return UnreadableContent("malformed_json", f"nested deeper than {DEEPEST} levels")
    except msgspec.DecodeError as error:
        return _malformed(text, error)
    # How deep the decoder goes differs between Pythons.
    if _brackets(text) > DEEPEST and _depth(text) > DEEPEST:
        return UnreadableContent("malformed_json", f"nested deeper than {DEEPEST} levels")
    if text.lstrip()[:1] == b"[":
        return UnreadableContent("payload_not_an_object", "the body is an array, and arrays are refused")
    return UnreadableContent("payload_not_an_object", "the body is JSON, but not an object")


def _malformed(text: bytes, error: Exception) -> UnreadableContent:
    if not text.strip(b" \t\r\n"):
        return UnreadableContent("malformed_json", "the body is blank" if text else "the body is empty")
    why = str(error)
    if why == "Input data was truncated":
        why = "the body ends in the middle of its JSON"
    return UnreadableContent("malformed_json", why)


def _brackets(text: bytes) -> int:
    """Counts opening brackets, as far as needed. To take single bytes out passes over what lies between
    them; to count them looks at each, which costs twenty times as much where brackets are few."""
    enough = DEEPEST + 1
    return 2 * len(text) - len(text.replace(b"[", b"", enough)) - len(text.replace(b"{", b"", enough))


def _depth(text: bytes) -> int:
    """How deep valid JSON nests. Orders hold thousands of brackets, so nothing here looks at single bytes in Python."""
    outside_strings = b"".join(text.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')[::2])
    brackets = outside_strings.translate(_ONE_KIND, _NO_BRACKET)
    levels = 0
    while brackets and levels < USUAL_DEPTH:
        brackets = brackets.replace(b"[]", b"")  # the innermost pairs
        levels += 1
    # Nearly always nothing is left. Otherwise the rest is deep, and to take it away level by level would take as
    # often as it is deep.
    here = deepest = 0
    for run in _ALIKE.finditer(brackets):
        length = run.end() - run.start()
        if brackets[run.start()] == 0x5B:
            here += length
            deepest = max(deepest, here)
        else:
            here -= length
    return levels + deepest


def _form_object(body: bytes) -> Payload | UnreadableContent:
    if body.count(b"&") >= MOST_FORM_FIELDS:
        return UnreadableContent("malformed_json", _TOO_MANY_FIELDS)
    pairs = query_pairs(body.strip())
    if len(pairs) == 1 and pairs[0][0] == b"payload" and pairs[0][1].lstrip()[:1] == b"{":
        return _json_object(pairs[0][1])
    fields: Document = {}
    for name, value in pairs:
        _add(fields, name, value.decode("utf-8", "replace"))
    read = _written(fields, "a form")
    # Many a client calls whatever it is given a form, as curl does.
    if body.lstrip()[:1] == b"{" and isinstance(_json_object(body), Payload):
        read.remark = "; it is JSON, but the call does not say Content-Type: application/json"
    return read


def _add(fields: Document, name: bytes, value: str | Document) -> None:
    """A field that comes more than once, like a box for each of several choices, becomes a list."""
    text = name.decode("utf-8", "replace")
    if text not in fields:
        fields[text] = value
    elif isinstance(fields[text], list):
        fields[text].append(value)
    else:
        fields[text] = [fields[text], value]


def _written(document: Document, sent_as: str) -> Payload:
    text = msgspec.json.encode(document)
    return Payload(text, members(text), f"{sent_as}, read as ")


def _xml_object(body: bytes) -> Payload | UnreadableContent:
    """The XML becomes one text. A workflow may parse it, with a parser that it trusts."""
    try:
        return _written({"xml": body.decode("utf-8-sig")}, "XML")
    except UnicodeDecodeError:
        return UnreadableContent("unsupported_media_type", "XML in another character set than UTF-8")


def _multipart_object(body: bytes, content_type: bytes) -> Payload | UnreadableContent:
    """Fields become texts. A file becomes its name, type and size; its content stays in the recorded body."""
    boundary = _parameters(content_type).get(b"boundary", b"")
    if not boundary:
        return UnreadableContent("malformed_json", "the form in parts has no boundary in its Content-Type")
    fields: Document = {}
    _, *parts = (b"\r\n" + body.lstrip(b"\r\n")).split(b"\r\n--" + boundary, MOST_FORM_FIELDS + 1)
    for part in parts:
        if part.startswith(b"--"):
            return _written(fields, "a form in parts")
        head, blank, content = part.lstrip(b" \t").partition(b"\r\n\r\n")
        if not blank or head[:2] not in (b"", b"\r\n"):
            break
        if len(head) > LONGEST_PART_HEAD or head.count(b";") > MOST_PARAMETERS:
            break
        headers = {name.lower(): value.strip() for name, value in _HEADER_OF_PART.findall(head)}
        given = _parameters(headers.get(b"content-disposition", b""))
        value: str | Document = content.decode("utf-8", "replace")
        if b"filename" in given:
            kind = headers.get(b"content-type", b"application/octet-stream").decode("utf-8", "replace")
            name = given[b"filename"].decode("utf-8", "replace")
            value = {"name": name, "type": kind, "size": len(content)}
        _add(fields, given.get(b"name", b""), value)
    if len(parts) > MOST_FORM_FIELDS:
        return UnreadableContent("malformed_json", _TOO_MANY_FIELDS)
    return UnreadableContent(
        "malformed_json", "the form in parts is damaged, or its last boundary is missing"
    )


def _parameters(header: bytes) -> dict[bytes, bytes]:
    """Those of a header. None of them where there are more than anybody writes: each costs a step of Python."""
    # Few calls are multipart, and every command loads this file.
    from python_multipart.multipart import parse_options_header

    return {} if header.count(b";") > MOST_PARAMETERS else parse_options_header(header)[1]


class Mapping:
    """Takes the fields' values out of a payload. A field whose path leads nowhere is empty, and the call accepted."""

    def __init__(self, paths: dict[str, str]) -> None:
        self._paths: list[tuple[str, str, Path]] = [
            (name, paths[name], parse_path(paths[name])) for name in FIELD_NAMES if paths.get(name)
        ]
        self._all_found = (
            f"{len(self._paths)} of {len(self._paths)} fields found" if self._paths else "no field is mapped"
        )

    def apply(self, payload: Payload) -> tuple[dict[str, str], str]:
        """The fields, and what to say in the trace."""
        fields: dict[str, str] = {}
        missing = []
        for name, text, path in self._paths:
            value = walk_members(payload.members, path)
            if value is None:
                missing.append(f"{name}: nothing at {text}")
            else:
                fields[name] = as_text(value)[:LONGEST_VALUE]
        return fields, "; ".join(missing) if missing else self._all_found
