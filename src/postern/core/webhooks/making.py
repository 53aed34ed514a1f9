"""A call as its sender would make it: the other side of ``signature.py``, from the same scheme.

The verifier itself reads the signed content from the finished call, with a stand-in where the signature will be: so
the two cannot disagree. Words in braces are filled in, the same everywhere in one call; ``PLACEHOLDERS`` lists them.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Literal
from urllib.parse import quote_plus

from postern.core.calls.call import Call, query_pairs
from postern.core.calls.paths import Path, parse_path, walk
from postern.core.signatures.algorithms import Algorithm, is_certificate, is_token
from postern.core.signatures.credential import Unproven
from postern.core.signatures.encoding import write_digest
from postern.core.signatures.freshness import TimestampFormat, write_timestamp
from postern.core.signatures.scheme import SignatureScheme
from postern.core.signatures.select import Ref, covers, parse_ref
from postern.core.signatures.signature import SignatureCredential
from postern.core.webhooks.settings import TokenAuthentication

Wrong = Literal["secret", "body", "stale", "missing"]
"""How a call is broken: another secret, another body than the signed one, signed too long ago, no signature or token."""

PLACEHOLDERS = {
    "{event}": "the event's name",
    "{uuid}": "a new id in the form of a UUID",
    "{unique}": "a new id of 24 letters and digits",
    "{number}": "a new number of 12 digits",
    "{unix}": "now, in seconds since 1970",
    "{unix_ms}": "now, in milliseconds since 1970",
    "{iso}": "now, like 2026-11-21T09:00:00Z",
    "{timestamp}": "now, as the signature's scheme writes it",
}

_SIGNATURE = "{signature}"
_DIGEST = "{body_sha256}"
_FORM = "x-www-form-urlencoded"
_TOO_LATE = 60
"""Seconds beyond the time for which a signature is valid."""

Value = str | int | float | bool | list[Any] | dict[str, Any] | None


NO_CERTIFICATE = "only the sender has the key of its certificate, with which calls are signed: have the sender send a test event"
NO_TOKEN = "this webhook takes tokens that its sender has signed, and none is made here: have the sender send a test event"
ONLY_ITS_SENDER = (
    "this webhook has the sender's public key, and only the sender has the private one, with which calls are signed: have the "
    "sender send a test event. A webhook that is there for trying can be given the private half of a key pair of your own; "
    "then test calls are signed with it"
)


def cannot_sign(algorithm: Algorithm) -> str:
    """Says why calls cannot be signed here, for an algorithm whose key only the sender has."""
    if is_certificate(algorithm):
        return NO_CERTIFICATE
    return NO_TOKEN if is_token(algorithm) else ONLY_ITS_SENDER


class CannotMake(ValueError):
    """Such a call cannot be made; the message says why."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A call before it is signed."""

    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes = field(default=b"{}", repr=False)
    event: str = ""
    query: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Made:
    """A call ready to be sent. Not to be shown: it carries a credential."""

    headers: tuple[tuple[str, str], ...]
    query: str
    body: bytes

    def __repr__(self) -> str:
        return f"Made({len(self.body)} bytes)"


@dataclass(frozen=True, slots=True)
class Occasion:
    """The time and the URL of one call, and the random bytes that make it differ from every other."""

    at: float
    chance: bytes
    base_url: str = ""
    path: str = "/"
    query: str = ""
    """The query string that the URL has already."""


def unsigned(draft: Draft, occasion: Occasion, changes: Mapping[str, Value]) -> Made:
    """A call that proves nothing."""
    draft = _changed(_put(draft, _values(draft, occasion, "unix")), changes)
    return Made(draft.headers, _query(occasion, draft.query), draft.body)


def with_token(
    how: TokenAuthentication,
    token: bytes,
    draft: Draft,
    occasion: Occasion,
    changes: Mapping[str, Value],
    wrong: Wrong | None = None,
) -> Made:
    """A call that carries a token where its webhook looks for one."""
    if wrong in ("body", "stale"):
        raise CannotMake("a token says nothing about the body or the time, so nothing would be wrong")
    text = occasion.chance.hex() if wrong == "secret" else token.decode("utf-8", "replace")
    if how.placement == "body" and wrong != "missing":
        changes = {**changes, how.token_path: text}
    made = unsigned(draft, occasion, changes)
    if wrong == "missing":
        return made
    header, parameter = carried(how, text)
    if parameter is not None:
        return replace(made, query=_query(occasion, (*draft.query, parameter)))
    return replace(made, headers=(*made.headers, *([header] if header else [])))


def carried(how: TokenAuthentication, token: str) -> tuple[tuple[str, str] | None, tuple[str, str] | None]:
    """The header, or the parameter of the URL, in which a caller sends its token."""
    match how.placement:
        case "header":
            return (how.header_name, token), None
        case "bearer":
            return ("Authorization", f"Bearer {token}"), None
        case "basic":
            pair = f"{how.username or ''}:{token}".encode()
            return ("Authorization", f"Basic {base64.b64encode(pair).decode()}"), None
        case "url":
            return None, (how.parameter_name, token)
        case "body":
            return None, None


def signed(
    credential: SignatureCredential,
    draft: Draft,
    occasion: Occasion,
    changes: Mapping[str, Value],
    wrong: Wrong | None = None,
) -> Made:
    """A call with the signature that this credential accepts, or one that is wrong in one way."""
    scheme = credential.scheme
    if not credential.can_sign and wrong != "missing":
        raise CannotMake(cannot_sign(scheme.algorithm))
    if wrong == "stale":
        if not scheme.timestamp:
            raise CannotMake("this scheme signs no time, so no call is too old")
        if not credential.tolerance:
            raise CannotMake("this webhook takes signatures of any age, so no call is too old")
        occasion = replace(occasion, at=occasion.at - credential.tolerance - _TOO_LATE)
    values = _values(draft, occasion, scheme.timestamp_format)
    draft = _put(_completed(scheme, _put(draft, values)), values)
    carries_digest = any(_DIGEST in value for _, value in (*draft.headers, *draft.query))
    if wrong == "body" and not (scheme.signs_body or carries_digest):
        raise CannotMake("this scheme does not sign the body, so another body is accepted")
    draft = _changed(draft, changes)
    draft = _with_time_in_body(scheme, draft, values["{timestamp}"])
    # Bytes that nobody sends: what is signed then is good for no other call.
    other = occasion.chance.hex().encode() if wrong == "body" else b""
    digested = _put(draft, {_DIGEST: sha256(draft.body + other).hexdigest()})
    draft = replace(digested, body=draft.body)  # whose own words are no placeholder
    if wrong == "missing":
        headers, query = (
            tuple(pair for pair in pairs if _SIGNATURE not in pair[1])
            for pairs in (draft.headers, draft.query)
        )
        fields = draft.body.split(b"&") if _is_form(draft) else [draft.body]
        body = b"&".join(part for part in fields if _SIGNATURE.encode() not in part or len(fields) == 1)
        return _finished(replace(draft, headers=headers, query=query, body=body), occasion, "")
    in_token = is_token(scheme.algorithm)
    stand_in = (
        credential.sign(b"").decode()
        if in_token
        else write_digest(bytes(credential.sizes[0]), scheme.encoding)
    )
    content = _content(credential, draft, occasion, stand_in)
    to_sign = content + (other if scheme.signs_body else b"")
    # With another secret every bit is another one, as it is over other bytes.
    signature = credential.sign(occasion.chance + to_sign if wrong == "secret" else to_sign)
    text = signature.decode() if in_token else write_digest(signature, scheme.encoding)
    if _content(credential, draft, occasion, text) != content:
        raise CannotMake("by this scheme the signature is a part of what it signs")
    return _finished(draft, occasion, text)


def _finished(draft: Draft, occasion: Occasion, signature: str) -> Made:
    draft = _put(draft, {_SIGNATURE: signature})
    return Made(draft.headers, _query(occasion, draft.query), draft.body)


def _content(credential: SignatureCredential, draft: Draft, occasion: Occasion, signature: str) -> bytes:
    made = _finished(draft, occasion, signature)
    try:
        headers = tuple((name.lower().encode(), value.encode("latin-1")) for name, value in made.headers)
    except UnicodeEncodeError:
        raise CannotMake("a header holds characters that HTTP does not carry") from None
    path, query = occasion.path.encode(), made.query.encode()
    call = Call("POST", path, query, headers, made.body, "", occasion.at, occasion.base_url)
    reading = credential.read(call)
    if isinstance(reading, Unproven):
        raise CannotMake(f"with this body or these headers it cannot be signed: {reading.detail}")
    return reading.content


def _completed(scheme: SignatureScheme, draft: Draft) -> Draft:
    """Adds everything that the scheme looks for and the draft lacks. For a custom scheme that is all of it."""
    is_inside = scheme.signature[0].startswith("body:") and _SIGNATURE.encode() in draft.body
    if not is_inside and not any(_SIGNATURE in value for _, value in (*draft.headers, *draft.query)):
        draft = _with(draft, scheme.signature, _signature_value(scheme), "signature")
    if any(not text.startswith("item:") for text in scheme.timestamp):
        draft = _with(draft, scheme.timestamp, "{timestamp}", "timestamp")
    is_in_body = any(text.startswith("body:") for text in scheme.delivery_id[:1])
    if scheme.delivery_id and (not is_in_body or "{id}" in scheme.signed_content):
        draft = _with(draft, scheme.delivery_id, "{uuid}", "id")
    by_fields = "{form}" in scheme.signed_content and _is_form(draft)
    if scheme.body_digest and not scheme.body_digest[0].startswith("body:") and not by_fields:
        draft = _with(draft, scheme.body_digest, _DIGEST, "body digest")
    for ref in scheme.covered_refs:
        if not ref.is_glob or not any(covers(ref, header) for header in _headers_of(draft)):
            name = f"{ref.name}test" if ref.is_glob else ref.name
            draft = _with(draft, (f"{ref.kind}:{name}",), "test", "signed value")
    return draft


def _is_form(draft: Draft) -> bool:
    return any(_FORM in value for _, value in draft.headers)


def _headers_of(draft: Draft) -> list[Ref]:
    return [Ref("header", name.lower()) for name, _ in draft.headers]


def _with(draft: Draft, places: tuple[str, ...], value: str, what: str) -> Draft:
    """The value at the first of these places, unless something is at one of them already."""
    refs = [(text, parse_ref(text)) for text in places]
    if any(_holds(draft, ref) for _, ref in refs):
        return draft
    text, first = refs[0]
    name = text.partition(":")[2].strip().removesuffix("*") + ("1" if first.is_glob else "")
    if first.kind == "header":
        return replace(draft, headers=(*draft.headers, (name, value)))
    if first.kind == "query":
        return replace(draft, query=(*draft.query, (first.name, value)))
    if _SIGNATURE in value or value == _DIGEST:
        raise CannotMake(f"the {what} is inside the body, and such calls are not made here")
    if value == "{timestamp}":
        return draft  # it is set when the body is known
    return replace(draft, body=_set(draft.body, first.path, value))


def _holds(draft: Draft, ref: Ref) -> bool:
    match ref.kind:
        case "header":
            return any(header == ref or covers(ref, header) for header in _headers_of(draft))
        case "query":
            return any(name == ref.name for name, _ in draft.query)
        case "body":
            return walk(draft.body, ref.path) is not None or ref.name.encode() in dict(
                query_pairs(draft.body)
            )
        case "item":  # it is written with the signature
            return True


def _signature_value(scheme: SignatureScheme) -> str:
    """The value that carries the signature, like ``t={timestamp},v1={signature}``."""
    between = scheme.key_separator
    parts = [
        f"{text.removeprefix('item:')}{between}{value}"
        for places, value in ((scheme.timestamp[:1], "{timestamp}"), (scheme.delivery_id[:1], "{uuid}"))
        for text in places
        if text.startswith("item:")
    ]
    parts.append(scheme.item(_SIGNATURE))
    if len(parts) > 1 and not scheme.item_separator:
        raise CannotMake("the scheme does not say what divides the parts of its signature")
    return scheme.item_separator.join(parts)


def _with_time_in_body(scheme: SignatureScheme, draft: Draft, timestamp: str) -> Draft:
    """Set last: a body of one's own, edited for a while, must not be too old by its own word."""
    first = scheme.timestamp[0] if scheme.timestamp else ""
    if not first.startswith("body:"):
        return draft
    value = int(timestamp) if scheme.timestamp_format in ("unix", "unix_ms") else timestamp
    path = parse_ref(first).path
    is_text = (walk(draft.body, path) or b"").startswith(b'"')
    return replace(draft, body=_set(draft.body, path, timestamp if is_text else value))


def _values(draft: Draft, occasion: Occasion, kind: TimestampFormat) -> dict[str, str]:
    chance = sha256(occasion.chance).digest()
    digits = chance.hex()
    return {
        "{event}": draft.event,
        "{uuid}": f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}",
        "{unique}": digits[32:56],
        "{number}": str(100_000_000_000 + int.from_bytes(chance[:8]) % 900_000_000_000),
        "{unix}": write_timestamp(occasion.at, "unix"),
        "{unix_ms}": write_timestamp(occasion.at, "unix_ms"),
        "{iso}": write_timestamp(occasion.at, "iso8601"),
        "{timestamp}": write_timestamp(occasion.at, kind),
    }


def _put(draft: Draft, values: Mapping[str, str]) -> Draft:
    for placeholder, text in values.items():
        headers, query = (
            tuple((name, value.replace(placeholder, text)) for name, value in pairs)
            for pairs in (draft.headers, draft.query)
        )
        body = draft.body.replace(placeholder.encode(), text.encode())
        draft = replace(draft, headers=headers, query=query, body=body)
    return draft


def _query(occasion: Occasion, pairs: tuple[tuple[str, str], ...]) -> str:
    own = [occasion.query] if occasion.query else []
    return "&".join([*own, *(f"{quote_plus(name)}={quote_plus(value)}" for name, value in pairs)])


def _changed(draft: Draft, changes: Mapping[str, Value]) -> Draft:
    body = draft.body
    for path, value in changes.items():
        body = _set(body, parse_path(path), value)
    return replace(draft, body=body)


def _set(body: bytes, path: Path, value: Value) -> bytes:
    """The body with this value at the path, objects made on the way where there are none."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise CannotMake("the body is not JSON, so nothing can be set in it") from None
    here: Any = document
    for number, step in enumerate(path):
        last = number == len(path) - 1
        if isinstance(here, list) and str(step).isdecimal() and int(step) < len(here):
            step = int(step)
        elif not isinstance(here, dict):
            shown = ".".join(map(str, path))
            raise CannotMake(f"the body has no place {shown}")
        else:
            step = str(step)
            if not last and not isinstance(here.get(step), dict | list):
                here[step] = {}
        if last:
            here[step] = value
        else:
            here = here[step]
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
