"""The exact bytes a sender signs, as a template: ``{timestamp}.{body}``, ``{method}{url}{body}``,
``{headers:X-Webhook-*}``.

Only bytes that arrived go in, verbatim: a body that was parsed and written anew is another body to an HMAC.
"""

import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import pairwise
from typing import Literal, get_args
from urllib.parse import urlsplit
from zlib import crc32

from msgspec import Struct

from postern.core.calls.call import Call, query_pairs
from postern.core.calls.content import ANYTHING, UnreadableContent, is_form, read_object
from postern.core.signatures.select import (
    InvalidReference,
    Ref,
    finder,
    header_ref,
    in_body,
    in_words,
    matching_headers,
    parse_ref,
)

MOST_TOKENS = 32
LONGEST = 1000

PlainToken = Literal[
    "body", "body_sha256", "body_crc32", "form", "timestamp", "id", "method", "url", "path", "secret"
]  # fmt: skip
TokenKind = PlainToken | Literal["literal", "header", "headers", "query", "bodyfield", "fieldline"]
PLAIN_TOKENS: tuple[PlainToken, ...] = get_args(PlainToken)
SIGNS_BODY: frozenset[TokenKind] = frozenset({"body", "body_sha256", "form"})
"""A CRC-32 is not among them: another body with the same one is found at once."""
_HAS_BORDERS: frozenset[TokenKind] = frozenset({"header", "query", "bodyfield", "fieldline", "id"})
"""Values of any length and characters, so that something has to say where each ends."""
TOKEN_WORDS: dict[str, str] = {
    "{body}": "the body, byte for byte",
    "{body_sha256}": "its SHA-256, in hex",
    "{body_crc32}": "its CRC-32, as a decimal number",
    "{form}": "the names and values of a form, decoded and in order, with nothing between them",
    "{timestamp}": "the time of signing, as it was sent",
    "{id}": "the delivery id",
    "{method}": "the method, like POST",
    "{url}": "the URL as the sender knows it: the webhook's publicUrl, or the one that was called",
    "{path}": "that URL's path",
    "{secret}": "the secret that is set, for signatures with a certificate",
    "{header:Name}": "the header's value, which is sent once",
    "{headers:Prefix-*}": "the values of all headers that begin so, in the order of their names, one a line",
    "{query:name}": "the URL parameter's value, which is sent once",
    "{bodyfield:path}": "the value at that path of the body, or nothing",
    "{fieldline:name}": "a line with the name and a line with its value in the body, or nothing",
}
"""Each token, and what it stands for."""
_PART = re.compile(r"(?P<brace>\{\{|\}\})|\{(?P<token>[^{}]*)\}|(?P<literal>[^{}]+)")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")


class InvalidTemplate(ValueError):
    """The text is not a template; the message says why."""


class Token(Struct, frozen=True):
    kind: TokenKind
    text: str = ""
    ref: Ref | None = None


class Missing(Struct):
    """Something that is signed is not there, or is there in a form nobody could sign unambiguously."""

    detail: str


Piece = Callable[[Call, bytes, bytes], "bytes | Missing"]
"""The call, its timestamp's text and its delivery id, to the bytes of one token."""


def parse_template(text: str) -> tuple[Token, ...]:
    if not text:
        raise InvalidTemplate("say what is signed, for example {body}")
    if len(text) > LONGEST:
        raise InvalidTemplate(f"at most {LONGEST} characters")
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _PART.match(text, position)
        if match is None:
            raise InvalidTemplate(
                f"the brace at character {position + 1} belongs to no token; write {{{{ or }}}} for a brace itself"
            )
        literal = match["brace"][0] if match["brace"] else match["literal"]
        if literal and tokens and tokens[-1].kind == "literal":
            literal = tokens.pop().text + literal
        tokens.append(Token("literal", literal) if literal else _token(match["token"] or ""))
        position = match.end()
    named = sum(token.kind != "literal" for token in tokens)
    if not named:
        # An HMAC over nothing but fixed text is the same for every call: a password, not a signature.
        raise InvalidTemplate("nothing of the call is signed; use at least one token, for example {body}")
    if named > MOST_TOKENS:
        raise InvalidTemplate(f"at most {MOST_TOKENS} tokens")
    return tuple(tokens)


def _token(text: str) -> Token:
    for plain in PLAIN_TOKENS:
        if text == plain:
            return Token(plain)
    kind, colon, name = text.partition(":")
    try:
        if colon and kind == "header" and not name.endswith("*"):
            return Token("header", ref=header_ref(name))
        if colon and kind == "headers":
            return Token("headers", ref=header_ref(name))
        if colon and kind == "query":
            return Token("query", ref=parse_ref(f"query:{name}"))
        if colon and kind in ("bodyfield", "fieldline"):
            return Token("bodyfield" if kind == "bodyfield" else "fieldline", ref=parse_ref(f"body:{name}"))
    except InvalidReference as error:
        raise InvalidTemplate(f"{{{text}}}: {error}") from None
    raise InvalidTemplate(f"{{{text[:40]}}} is not known; the tokens are {', '.join(TOKEN_WORDS)}")


def neighbours(template: str) -> list[str]:
    """Returns in words the values of the call with nothing between them: where one ends and the next begins nobody can tell."""
    tokens = parse_template(template)
    pairs = [
        (one, other)
        for one, other in pairwise(tokens)
        if one.kind in _HAS_BORDERS and other.kind in _HAS_BORDERS and one.kind != "fieldline"
    ]
    return [" and ".join(in_words(each.ref) if each.ref else "the id" for each in pair) for pair in pairs]


class SignedContent:
    """A template made ready for one webhook."""

    def __init__(
        self,
        template: str,
        *,
        public_url: str | None = None,
        url_unescape: str = "",
        free_value: str = "",
        secret: bytes = b"",
    ) -> None:
        self.tokens = parse_template(template)
        self._secret = secret
        self.kinds = frozenset(token.kind for token in self.tokens)
        self._public_url = public_url.encode() if public_url else None
        self._public_path = urlsplit(public_url).path.encode() if public_url else None
        self._unescape = {f"{ord(character):02x}".encode(): character.encode() for character in url_unescape}
        self._pieces = [self._piece(token) for token in self.tokens]
        self._borders = [
            (number, border, is_after, token)
            for number, token in enumerate(self.tokens)
            if token.kind in _HAS_BORDERS and str(token.ref) != free_value
            for border, is_after in self._around(number)
        ]
        times = [number for number, token in enumerate(self.tokens) if token.kind == "timestamp"]
        self.time_borders = frozenset(border for number in times for border, _ in self._around(number))
        """A time that is not written in its format may hold none of these."""
        self._is_body = self.kinds == {"body"} and len(self.tokens) == 1

    def of(self, call: Call, timestamp: bytes, delivery_id: bytes) -> bytes | Missing:
        if self._is_body:
            return call.body
        parts = []
        for piece in self._pieces:
            part = piece(call, timestamp, delivery_id)
            if isinstance(part, Missing):
                return part
            parts.append(part)
        for number, border, is_after, token in self._borders:
            value = parts[number]
            if token.kind == "fieldline":
                assert token.ref is not None
                value = value[len(token.ref.name.encode()) + 1 : -1]
            begun_early = len(border) > 1 and (
                border in ((value + border)[:-1] if is_after else (border + value)[1:])
            )
            if border in value or begun_early:
                what = in_words(token.ref) if token.ref else token.kind
                held = "a line break" if border == b"\n" else border.decode()
                return Missing(f"{what}, which is signed, holds {held}, which divides it from its neighbours")
        if self.kinds <= {"literal", "bodyfield", "fieldline", "secret"} and not any(
            part for part, token in zip(parts, self.tokens, strict=True) if token.ref
        ):
            return Missing("none of the signed body fields is in the body")
        return b"".join(parts)

    def _around(self, number: int) -> Iterator[tuple[bytes, bool]]:
        """The texts that divide this value from the one before and the one after it. Held by it, they would move the border."""
        if self.tokens[number].kind == "fieldline":
            yield b"\n", True
            return
        for neighbour, there in ((number - 1, number - 2 >= 0), (number + 1, number + 2 < len(self.tokens))):
            if there and self.tokens[neighbour].kind == "literal":
                yield self.tokens[neighbour].text.encode(), neighbour > number

    def url(self, call: Call) -> bytes:
        """The URL as the sender knows it.

        A public URL with a query string is taken exactly as typed. One without gets the query string of the
        call: HubSpot signs the URI it really asked for, query included, while Square calls exactly what was
        typed, so that there is then nothing to add.
        """
        query = b"?" + call.query if call.query else b""
        if self._public_url is None:
            url = call.base_url.encode() + call.path + query
        elif b"?" in self._public_url:
            url = self._public_url
        else:
            url = self._public_url + query
        if self._unescape:
            url = _ESCAPE.sub(lambda match: self._unescape.get(match[1].lower(), match[0]), url)
        return url

    def _piece(self, token: Token) -> Piece:
        if token.ref is not None:
            return _named_piece(token.kind, token.ref)
        text = token.text.encode()
        pieces: dict[str, Piece] = {
            "literal": lambda call, timestamp, delivery_id: text,
            "body": lambda call, timestamp, delivery_id: call.body,
            "body_sha256": lambda call, timestamp, delivery_id: sha256(call.body).hexdigest().encode(),
            "body_crc32": lambda call, timestamp, delivery_id: b"%d" % crc32(call.body),
            "secret": lambda call, timestamp, delivery_id: self._secret,
            "form": lambda call, timestamp, delivery_id: _sorted_form(call.body) if is_form(call) else b"",
            "timestamp": lambda call, timestamp, delivery_id: timestamp,
            "id": lambda call, timestamp, delivery_id: delivery_id,
            "method": lambda call, timestamp, delivery_id: call.method.encode("utf-8", "surrogatepass"),
            "url": lambda call, timestamp, delivery_id: self.url(call),
            "path": lambda call, timestamp, delivery_id: (
                call.path if self._public_path is None else self._public_path
            ),
        }
        return pieces[token.kind]


def _sorted_form(body: bytes) -> bytes:
    """Names and values, decoded, in order, with nothing between them; equal pairs count once."""
    return b"".join(name + value for name, value in sorted(set(query_pairs(body))))


def _named_piece(kind: TokenKind, ref: Ref) -> Piece:
    if kind == "headers":
        return lambda call, timestamp, delivery_id: _joined(call, ref)
    if kind == "bodyfield":
        return lambda call, timestamp, delivery_id: _field(call, ref)
    if kind == "fieldline":
        return lambda call, timestamp, delivery_id: _field(call, ref, with_name=True)
    find = finder(ref)

    def one(call: Call, timestamp: bytes, delivery_id: bytes) -> bytes | Missing:
        values = find(call)
        if len(values) == 1:
            return values[0]
        return Missing(
            f"{in_words(ref)}, which is signed, was sent {len(values)} times"
            if values
            else f"{in_words(ref)}, which is signed, was not sent"
        )

    return one


def _field(call: Call, ref: Ref, with_name: bool = False) -> bytes | Missing:
    """Returns the field's value. ``with_name``: name and value, each on a line of its own, or nothing if the field is absent."""
    payload = read_object(call, ANYTHING)
    if isinstance(payload, UnreadableContent):
        return Missing(f"the body, whose fields are signed, cannot be read: {payload.detail}")
    values = in_body(call, ref.path)
    if with_name:
        return b"".join(b"%b\n%b\n" % (ref.name.encode(), value) for value in values)
    # Senders leave out what is empty and still sign it as an empty text (Adyen's originalReference).
    return b"".join(values)


def _joined(call: Call, ref: Ref) -> bytes | Missing:
    """The values of all headers that the glob means, in the order of their names, one a line: none runs into the next."""
    pairs = matching_headers(call, ref)
    if not pairs:
        # An HMAC of nothing would be a fixed password.
        return Missing(f"no header {in_words(ref)} was sent, so nothing of this call is signed")
    if len({name for name, _ in pairs}) < len(pairs):
        return Missing(f"a header of {in_words(ref)} was sent twice")
    content = b"\n".join([value for _, value in pairs])
    if content.count(b"\n") != len(pairs) - 1:
        return Missing(f"a value of {in_words(ref)} holds a line break")
    return content
