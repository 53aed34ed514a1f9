"""A scheme: how a signature proves who sent a call, as data. Presets, the generic scheme and custom ones are
rows of this model.

``signature.py`` verifies calls with it and never asks whose scheme it is.
"""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, cast

import msgspec

from postern.core.documents import Document
from postern.core.problems import FieldError
from postern.core.signatures.algorithms import ALGORITHMS, Algorithm, is_certificate, is_pair, is_token
from postern.core.signatures.encoding import ENCODINGS, SECRET_ENCODINGS, Encoding, SecretEncoding
from postern.core.signatures.freshness import TIMESTAMP_FORMATS, TimestampFormat
from postern.core.signatures.handshake import HANDSHAKES, HandshakeKind
from postern.core.signatures.select import InvalidReference, Ref, covers, parse_ref
from postern.core.signatures.signed_content import LONGEST as LONGEST_CONTENT
from postern.core.signatures.signed_content import SIGNS_BODY, TOKEN_WORDS, InvalidTemplate, parse_template

USUAL_TOLERANCE = 300
LONGEST_TOLERANCE = 30 * 24 * 3600
_MOST_REFS = 8
_MOST_TEXTS = 16
_LONGEST_TEXT = 64
LONGEST_ADDRESS = 300
TITLE = "CustomScheme"
_ADDRESS = re.compile(r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[!-~]*)?")
_PATTERN = re.compile(r"[A-Za-z0-9*.:/_-]{3,300}")

# Words that a form or a person may write for a separator; the character itself is what is kept.
_SEPARATOR_WORDS = {
    "none": "", "space": " ", "comma": ",", "semicolon": ";", "equals": "=", "ampersand": "&", "bar": "|"
}  # fmt: skip


class InvalidScheme(ValueError):
    """The document is not a scheme; ``errors`` has one message for each wrong field."""

    def __init__(self, errors: list[FieldError]) -> None:
        super().__init__("; ".join(f"{error.field}: {error.message}" for error in errors))
        self.errors = errors


class _Wrong(ValueError):
    """One field's value cannot be used; the message says why."""


class Reader(msgspec.Struct, frozen=True):
    """Reads a field as a person writes it, and raises ``_Wrong``. ``schema``: the JSON Schema of what it takes."""

    read: Callable[[Any], Any]
    schema: Document


_REF_SCHEMA: Document = {"type": "string", "examples": ["header:X-Signature"]}


def _list_of(most: int, item: Document) -> Document:
    """A list, for which one text may stand alone."""
    return {"anyOf": [{"type": "array", "items": item, "maxItems": most}, item]}


def _refs(*kinds: str, needed: bool = False) -> Reader:
    def read(value: Any) -> tuple[str, ...]:
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, (list, tuple)) or not all(isinstance(text, str) for text in value):
            raise _Wrong("a text or a list of texts, such as header:X-Signature")
        texts = tuple(text.strip() for text in value if text.strip())
        if needed and not texts:
            raise _Wrong("say where the signature is, for example header:X-Signature")
        if len(texts) > _MOST_REFS:
            raise _Wrong(f"at most {_MOST_REFS} places")
        for text in texts:
            try:
                kind = parse_ref(text).kind
            except InvalidReference as error:
                raise _Wrong(str(error)) from None
            if kind not in kinds:
                raise _Wrong(f"{text!r} cannot be used here; use {', '.join(kinds)}")
        return texts

    return Reader(read, _list_of(_MOST_REFS, _REF_SCHEMA))


def _ref(*kinds: str) -> Reader:
    def read(value: Any) -> str:
        texts = _refs(*kinds).read(value)
        if len(texts) > 1:
            raise _Wrong("one place")
        return str(parse_ref(texts[0])) if texts else ""

    return Reader(read, _REF_SCHEMA)


def _one_of(choices: tuple[str, ...], default: str) -> Reader:
    def read(value: Any) -> str:
        if value == "":
            return default
        if value not in choices:
            raise _Wrong(f"one of {', '.join(choices)}")
        return cast(str, value)

    return Reader(read, {"type": "string", "enum": list(choices)})


def _separator(characters: str) -> Reader:
    words = [word for word, character in _SEPARATOR_WORDS.items() if character in characters]

    def read(value: Any) -> str:
        character = _SEPARATOR_WORDS.get(value, value) if isinstance(value, str) else None
        if character is None or len(character) > 1 or character not in characters:
            raise _Wrong(f"one of {', '.join(words)}, or the character itself")
        return character

    return Reader(read, {"type": "string", "enum": [*words, "", *characters]})


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT or not value.isprintable():
        raise _Wrong(f"a text of at most {_LONGEST_TEXT} printable characters")
    return value


def _form(value: Any) -> str:
    before, signature, after = _text(value).partition("{signature}")
    star, rest = before.partition("*")[1:]
    if value and (not signature or "*" in rest + after or "{signature}" in after or (star and not rest)):
        raise _Wrong("{signature} once, with text around it; one * before it may stand for any text")
    return f"{before}{signature}{after}"


def _template(value: Any) -> str:
    if not isinstance(value, str):
        raise _Wrong("a text, for example {timestamp}.{body}")
    try:
        parse_template(value)
        value.encode()
    except InvalidTemplate as error:
        raise _Wrong(str(error)) from None
    except UnicodeEncodeError:
        raise _Wrong("holds a character that cannot be written as UTF-8") from None
    return value


def _https(value: Any) -> str:
    text = value.strip() if isinstance(value, str) else None
    if text is None or len(text) > LONGEST_ADDRESS or (text and not _ADDRESS.fullmatch(text)):
        raise _Wrong(f"an address that begins with https://, of at most {LONGEST_ADDRESS} characters")
    return text


def _patterns(value: Any) -> tuple[str, ...]:
    texts = _texts(value)
    if any(not _PATTERN.fullmatch(text) for text in texts):
        raise _Wrong("addresses or names, in which a * is letters, digits, - and _")
    return texts


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(",")
    if (
        not isinstance(value, (list, tuple))
        or len(value) > _MOST_TEXTS
        or not all(isinstance(text, str) for text in value)
    ):
        raise _Wrong(f"a text or a list of at most {_MOST_TEXTS}")
    return tuple(text.strip()[:LONGEST_ADDRESS] for text in value if text.strip())


def _seconds(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LONGEST_TOLERANCE:
        raise _Wrong(f"a whole number of seconds from 0 to {LONGEST_TOLERANCE}")
    return value


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Wrong("true or false")
    return value


def _escapes(value: Any) -> str:
    text = _text(value)
    if not text.isascii() or "%" in text or any(character.isalnum() for character in text):
        raise _Wrong("ASCII characters that are neither letters, digits nor %, for example :/?@")
    return text


_TEXT = Reader(_text, {"type": "string", "maxLength": _LONGEST_TEXT})
_TEXTS = Reader(_texts, _list_of(_MOST_TEXTS, {"type": "string", "maxLength": LONGEST_ADDRESS}))
_PATTERNS = Reader(_patterns, _TEXTS.schema)
_HTTPS = Reader(
    _https,
    {"type": "string", "maxLength": LONGEST_ADDRESS, "examples": ["https://keys.example.com/jwks.json"]},
)


_WORDS = {
    "signature": "The places of signatures. The call is genuine if any signature there is right.",
    "item_separator": "Divides a value into several items.",
    "key_separator": "Divides an item, at its first occurrence, into key and value.",
    "signature_key": "Only items with this key count: v1 of t=1700000000,v1=5f1d…. A prefix such as sha256= is the key sha256 before the separator =.",
    "signature_form": "The text around the signature within an item, like :{signature}: of RFC 9421. A * before it stands for any text, up to what follows the *: *:{signature} takes 7:5f1d….",
    "algorithm": "The algorithm that makes the signatures: with a shared secret, the sender's private key, or the key of its certificate.",
    "keys_from": "For signed tokens: the address of the sender's public keys, a key set (JWKS).",
    "secret_claim": "For tokens with a key set: the claim that must equal the secret that is set. If it is not the audience (aud), the audience must be one of audiences, or without such the webhook's URL. For signatures with a certificate: the field of the body that must equal it.",
    "issuers": "For signed tokens: the issuers (iss) that are accepted.",
    "audiences": "For signed tokens: the audiences (aud) that are accepted, for example the webhook's URL.",
    "body_claim": "For signed tokens: the claim that has the body's SHA-256, in hex, like payload_hash.",
    "certificate_from": "For signatures with a certificate: the place where the call says the certificate's address.",
    "certificate_addresses": "The addresses from which a certificate may be fetched. A * stands for letters, digits, - and _.",
    "certificate_names": "The names for which the certificate may be issued, common or alternative. A * stands for the same.",
    "encoding": "The form in which a signature is written. auto: hex or base64, told by its length.",
    "signed_content": "The bytes that are signed: tokens in braces, and the text between them exactly as it is written here.",
    "free_value": "The one value within what is signed that may hold the text by which it is divided from its neighbours, like a line break in a message between lines. A call in which another value holds it is rejected: the border could be moved.",
    "secret_encoding": "The way in which the pasted secret becomes the key's bytes: as text, decoded, or (sha1) as the digest of the text.",
    "secret_prefix": "Removed before decoding, where the secret has it, like whsec_.",
    "timestamp": "The places of the time of signing. The first one that the call has counts.",
    "timestamp_format": "The form in which that time is written: seconds or milliseconds since 1970, or a date.",
    "tolerance_seconds": f"The seconds by which that time may differ from the time of receipt, in both directions. 0 checks nothing. Left out: {USUAL_TOLERANCE} with a timestamp.",
    "timestamp_required": "Whether a call without that time is rejected. One whose time is signed always is.",
    "body_digest": "The places of the body's SHA-256, for schemes that sign headers. A value that is there must be right.",
    "delivery_id": "The places of the sender's own id of this delivery, for {id} and for duplicate protection.",
    "url_unescape": "Characters whose percent escapes are decoded in {url}.",
    "handshake": "The test of the URL that the sender makes before it sends anything. It is no part of verifying.",
}
"""The meaning of each member of a scheme."""


class SignatureScheme(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How one sender signs. Beside each field's type stands what reads the words of a person; ``_WORDS`` has its meaning."""

    signature: Annotated[tuple[str, ...], _refs("header", "query", "body", needed=True)] = (
        "header:X-Signature",
    )
    item_separator: Annotated[str, _separator(",; &")] = ""
    key_separator: Annotated[str, _separator("=,|")] = ""
    signature_key: Annotated[str, _TEXT] = ""
    signature_form: Annotated[str, Reader(_form, _TEXT.schema | {"examples": ["*:{signature}"]})] = ""
    algorithm: Annotated[Algorithm, _one_of(ALGORITHMS, "hmac_sha256")] = "hmac_sha256"
    keys_from: Annotated[str, _HTTPS] = ""
    secret_claim: Annotated[str, Reader(lambda value: _text(value) or "aud", _TEXT.schema)] = "aud"
    issuers: Annotated[tuple[str, ...], _TEXTS] = ()
    audiences: Annotated[tuple[str, ...], _TEXTS] = ()
    body_claim: Annotated[str, _TEXT] = ""
    certificate_from: Annotated[tuple[str, ...], _refs("header", "body")] = ()
    certificate_addresses: Annotated[tuple[str, ...], _PATTERNS] = ()
    certificate_names: Annotated[tuple[str, ...], _PATTERNS] = ()
    encoding: Annotated[Encoding, _one_of(ENCODINGS, "hex")] = "hex"
    signed_content: Annotated[
        str,
        Reader(
            _template, {"type": "string", "maxLength": LONGEST_CONTENT, "examples": ["{timestamp}.{body}"]}
        ),
    ] = "{body}"
    free_value: Annotated[str, _ref("header", "query", "body")] = ""
    secret_encoding: Annotated[SecretEncoding, _one_of(SECRET_ENCODINGS, "utf8")] = "utf8"
    secret_prefix: Annotated[str, _TEXT] = ""
    timestamp: Annotated[tuple[str, ...], _refs("header", "query", "body", "item")] = ()
    timestamp_format: Annotated[TimestampFormat, _one_of(TIMESTAMP_FORMATS, "unix")] = "unix"
    tolerance_seconds: Annotated[
        int, Reader(_seconds, {"type": "integer", "minimum": 0, "maximum": LONGEST_TOLERANCE})
    ] = 0
    timestamp_required: Annotated[bool, Reader(_switch, {"type": "boolean"})] = True
    body_digest: Annotated[tuple[str, ...], _refs("header", "query", "body")] = ()
    delivery_id: Annotated[tuple[str, ...], _refs("header", "query", "body", "item")] = ()
    url_unescape: Annotated[str, Reader(_escapes, _TEXT.schema | {"examples": [":/?@"]})] = ""
    handshake: Annotated[HandshakeKind, _one_of(HANDSHAKES, "none")] = "none"

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "SignatureScheme":
        scheme, errors = _read(document)
        if errors:
            raise InvalidScheme(errors)
        return scheme

    def to_document(self) -> Document:
        """Returns every field under its name in the API, as plain JSON values."""
        document: Document = msgspec.json.decode(msgspec.json.encode(self))
        return document

    @property
    def covered_refs(self) -> tuple[Ref, ...]:
        """The headers, parameters and body fields that are themselves signed."""
        return tuple(token.ref for token in parse_template(self.signed_content) if token.ref is not None)

    @property
    def signs_body(self) -> bool:
        if is_token(self.algorithm):
            return bool(self.body_claim)
        tokens = parse_template(self.signed_content)
        return any(token.kind in SIGNS_BODY for token in tokens) or self.signs_digest

    @property
    def signs_digest(self) -> bool:
        """Returns whether each place of the body's digest is signed, so that none can be left out."""
        tokens = parse_template(self.signed_content)
        signed = {token.ref for token in tokens if token.kind in ("header", "query")}
        by_fields = any(token.kind == "form" for token in tokens)  # they bind a body, too
        places = map(parse_ref, self.body_digest)
        return bool(self.body_digest) and not by_fields and all(place in signed for place in places)

    def item(self, signature: str) -> str:
        """The item that carries this signature, as the sender writes it."""
        key = f"{self.signature_key}{self.key_separator}" if self.signature_key else ""
        return key + (self.signature_form or "{signature}").replace("*", "1").replace(
            "{signature}", signature
        )

    def signs(self, ref: Ref) -> bool:
        return (ref.kind == "body" and self.signs_body) or any(
            covers(wider, ref) for wider in self.covered_refs
        )


def problems(document: Mapping[str, Any]) -> list[FieldError]:
    return _read(document)[1]


_FIELDS = {field.encode_name: field for field in msgspec.structs.fields(SignatureScheme)}
FIELDS = tuple(_FIELDS)


def json_schema() -> Document:
    """The members that a person may write, for OpenAPI, editors and assistants."""
    members = {
        name: {
            "description": _WORDS[field.name],
            **field.type.__metadata__[0].schema,
            "default": field.default,
        }
        for name, field in _FIELDS.items()
    }
    tokens = "; ".join(f"{token} {words}" for token, words in TOKEN_WORDS.items())
    members["signedContent"]["description"] += f" The tokens: {tokens}."
    del members["toleranceSeconds"]["default"]  # it depends on whether there is a timestamp
    return {"title": TITLE, "type": "object", "properties": members, "additionalProperties": False}


def _read(document: Mapping[str, Any]) -> tuple[SignatureScheme, list[FieldError]]:
    values: Document = {}
    unknown = f"a scheme has no such member; it has {', '.join(FIELDS)}"
    errors = [FieldError(str(name)[:60], unknown) for name in document if name not in _FIELDS]
    for name, field in _FIELDS.items():
        value = document.get(name)
        if value is None:
            continue
        try:
            values[field.name] = field.type.__metadata__[0].read(value)
        except _Wrong as wrong:
            errors.append(FieldError(name, str(wrong)))
    if not errors and document.get("toleranceSeconds") is None and values.get("timestamp"):
        values["tolerance_seconds"] = USUAL_TOLERANCE
    scheme = SignatureScheme(**values)
    return scheme, errors or _disagreements(scheme)


def _disagreements(scheme: SignatureScheme) -> list[FieldError]:
    """Fields that are each in order and do not go together."""
    algorithm = scheme.algorithm
    token, certificate, pair = is_token(algorithm), is_certificate(algorithm), is_pair(algorithm)
    has_key_set = algorithm in ("jwt_rs256", "jwt_es256")
    items = [text for text in (*scheme.timestamp, *scheme.delivery_id) if text.startswith("item:")]
    by_place = scheme.item_separator and all(text.removeprefix("item:").isdecimal() for text in items)
    kinds = {piece.kind for piece in parse_template(scheme.signed_content)}
    of_certificates = (scheme.certificate_from, scheme.certificate_addresses, scheme.certificate_names)
    rows = (
        (
            bool(scheme.signature_key) and not scheme.key_separator,
            "keySeparator",
            "a signature key needs the separator that divides it from the signature",
        ),
        (
            bool(scheme.item_separator) and scheme.item_separator == scheme.key_separator,
            "keySeparator",
            "items, and the key within an item, cannot be divided by the same character",
        ),
        (
            bool(items) and not (scheme.key_separator or by_place or token),
            "keySeparator",
            "a reference to an item of the signature needs a separator between key and value, or is item:1 for the first of a list",
        ),
        (
            has_key_set != bool(scheme.keys_from),
            "keysFrom",
            "say where the sender's key set is" if has_key_set else "only of tokens with a public key",
        ),
        (
            scheme.secret_claim != "aud" and not (has_key_set or certificate),
            "secretClaim",
            "only of tokens with a public key, and of signatures with a certificate",
        ),
        (
            not token and bool(scheme.issuers or scheme.audiences or scheme.body_claim),
            "issuers",
            "only signed tokens have issuers and claims",
        ),
        (
            token
            and (
                scheme.signed_content != "{body}"
                or bool(
                    scheme.item_separator
                    or scheme.key_separator
                    or scheme.signature_form
                    or scheme.body_digest
                )
            ),
            "signedContent",
            "a token says itself what it signs: leave this and the separators",
        ),
        (
            certificate != all(of_certificates) or certificate != any(of_certificates),
            "certificateFrom",
            "a signature with a certificate needs where its address is, which addresses may be fetched and whose it may be"
            if certificate
            else "only of signatures with a certificate",
        ),
        (
            not all(text.startswith("https://") for text in scheme.certificate_addresses),
            "certificateAddresses",
            "each begins with https://",
        ),
        # Anybody may have an account there, and have the sender sign.
        (
            certificate != ("secret" in kinds),
            "signedContent",
            "the sender signs for everybody: {secret} says where in what is signed yours is"
            if certificate
            else "{secret} is only of signatures with a certificate",
        ),
        (
            (pair or certificate) and scheme.encoding == "auto",
            "encoding",
            "with a public key say which one: hex, base64 or base64url",
        ),
        (
            (pair or certificate) and (scheme.secret_encoding != "utf8" or bool(scheme.secret_prefix)),
            "secretEncoding",
            "a public key is told by its own form: leave this, and the prefix",
        ),
        (
            "timestamp" in kinds and not scheme.timestamp,
            "timestamp",
            "{timestamp} is signed, so say where the timestamp is",
        ),
        (
            "timestamp" in kinds and not scheme.timestamp_required,
            "timestampRequired",
            "{timestamp} is signed, so it is always required",
        ),
        (
            bool(scheme.free_value) and scheme.free_value not in map(str, scheme.covered_refs),
            "freeValue",
            "is one of the values that signedContent names, for example body:Message",
        ),
        ("id" in kinds and not scheme.delivery_id, "deliveryId", "{id} is signed, so say where the id is"),
    )
    return [FieldError(field, message) for is_so, field, message in rows if is_so]
