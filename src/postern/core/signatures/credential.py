"""A credential checks a call, and says which secret proved it or why none did.

``VerifiedCall`` is made here and in ``signature.py`` only, as the answer of a check: whatever holds one may
rely on the caller being genuine. Everything after authentication takes a ``VerifiedCall`` and nothing else.
"""

import binascii
import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import islice
from typing import Literal

import msgspec

from postern.core.calls.call import Call
from postern.core.calls.paths import as_text, parse_path, walk_every

Matched = Literal["", "main", "second"]
Placement = Literal["header", "bearer", "basic", "url", "body"]
"""The place in a call where the token is."""

NO_WORD = 16
"""Characters from which a secret is not most likely a word like "json", where it stands among other text."""

_MOST_PLACES = 64


class VerifiedCall(msgspec.Struct):
    """A call whose sender is proven (or need not be: method None). ``delivery_id``: the sender's own id for it."""

    call: Call
    matched: Matched
    step: str
    delivery_id: bytes | None = None
    delivery_id_signed: bool = False


class Unproven(msgspec.Struct, frozen=True):
    """The reason why a call's sender is not proven. ``detail`` is for the webhook's owner; a caller hears the code alone."""

    code: str
    detail: str
    wanted: str = ""
    """The address of the keys without which this could not be said for sure: they are not at hand, or too old."""


class Credential:
    """Checks the calls of one webhook. It is made once for each configuration and asked once for each call."""

    challenge: bytes | None = None
    """The ``WWW-Authenticate`` value that goes with a 401, or None."""

    masked_headers: frozenset[bytes] = frozenset()
    """Lower-case names of headers that carry the credential itself and must never be stored."""

    masked_parameters: frozenset[bytes] = frozenset()
    """Names of query parameters that carry the credential itself."""

    secrets: tuple[bytes, ...] = ()
    """Secrets that a call may carry verbatim, so that one sent in the wrong place is masked there too."""

    read_headers: frozenset[bytes] = frozenset()
    """Headers that the check reads and that are no credential: stored even if their names look like one."""

    read_parameters: frozenset[bytes] = frozenset()
    """Query parameters, likewise."""

    signature_headers: frozenset[bytes] = frozenset()
    """Headers that carry a signature: stored, so that a call can be checked again."""

    signature_parameters: frozenset[bytes] = frozenset()
    """Query parameters, likewise."""

    fetches_keys: bool = False
    """Its calls are checked with keys or a certificate that are fetched from the sender."""

    names_keys: bool = False
    """Each call says itself where they are."""

    body_is_signed: bool = False
    """False where whoever saw one call could send another body with it."""

    def check(self, call: Call) -> VerifiedCall | Unproven:
        raise NotImplementedError

    def keys_at(self, call: Call) -> str:
        """Returns the address of the keys that this call is checked with, or an empty text if no address may be asked."""
        return ""

    def body_without_token(self, call: Call) -> bytes | None:
        """The body as it may be stored and handed on; None where a credential in it cannot be found."""
        return call.body

    def presented(self, call: Call) -> bytes:
        """The token that a call shows, with its place; empty where it shows none, or several. It is not to be kept."""
        return b""


class NoCredential(Credential):
    """Method None: anybody may call."""

    def check(self, call: Call) -> VerifiedCall | Unproven:
        return VerifiedCall(call, "", "no authentication is asked for")


class Proven(NoCredential):
    """For what a schedule fetched: the gateway itself asked, at the URL that the webhook's owner wrote. And for a recorded call
    whose token was compared by its fingerprint."""

    def __init__(self, step: str, matched: Matched = "") -> None:
        self._step, self._matched = step, matched

    def check(self, call: Call) -> VerifiedCall:
        return VerifiedCall(call, self._matched, self._step)


class TokenCredential(Credential):
    """A fixed secret in one place of the call."""

    def __init__(
        self,
        placement: Placement,
        main: bytes,
        second: bytes | None = None,
        *,
        header_name: str = "X-Api-Key",
        username: str = "",
        parameter_name: str = "token",
        path: str = "token",
    ) -> None:
        if not main or second == b"":
            raise ValueError("an empty token would let everybody in")
        # Digests have one length, so that comparing them tells nothing about the token's length.
        self._main = sha256(main).digest()
        self._second = sha256(second).digest() if second is not None else None
        self.secrets = (main,) if second is None else (main, second)
        self.placement = placement
        self._header = header_name.lower().encode()
        self._username = username.encode()
        self._parameter = parameter_name.encode()
        self._path = parse_path(path)
        self._find: Callable[[Call], list[bytes] | Unproven]
        match placement:
            case "header":
                self._place = f"the header {header_name}"
                self._find = lambda call: [value.strip() for value in call.header(self._header)]
                self.masked_headers = frozenset({self._header})
            case "bearer":
                self._place = "Authorization: Bearer"
                self._find = lambda call: self._authorization(call, b"bearer")
                self.challenge = b'Bearer realm="webhook"'
            case "basic":
                self._place, self._find = "HTTP Basic", self._in_basic
                self.challenge = b'Basic realm="webhook", charset="UTF-8"'
            case "url":
                self._place = f"the URL parameter {parameter_name}"
                self._find = lambda call: [
                    value for name, value in call.query_pairs if name == self._parameter
                ]
                self.masked_parameters = frozenset({self._parameter})
            case "body":
                self._place, self._find = f"the body's field {path}", self._in_body
        self._steps = {which: f"the {which} token was sent in {self._place}" for which in ("main", "second")}

    def check(self, call: Call) -> VerifiedCall | Unproven:
        tokens = self._find(call)
        if isinstance(tokens, Unproven):
            return tokens
        if not tokens:
            return _missing(f"no token was sent in {self._place}{self._elsewhere(call)}")
        if len(tokens) > 1:
            # A proxy and the gateway might each look at another one of them.
            return _mismatch(f"{self._place} was sent {len(tokens)} times; it must be sent once")
        matched = self._match(tokens[0])
        if not matched:
            return _mismatch(f"the token in {self._place} is not the right one{self._nearly(tokens[0])}")
        body = self.body_without_token(call)
        if body is not call.body:
            call = call.but(body=body)
        return VerifiedCall(call, matched, self._steps[matched])

    def body_without_token(self, call: Call) -> bytes | None:
        known = call.without_token
        if known is None or known[0] is not self:
            known = call.without_token = (self, self._masked_body(call))
        return known[1]

    def presented(self, call: Call) -> bytes:
        tokens = self._authorization(call, b"basic") if self.placement == "basic" else self._find(call)
        if isinstance(tokens, Unproven) or len(tokens) > 1:
            return b""
        if tokens:
            return _shown_in(self._place, tokens[0])
        return next((_shown_in(place, value) for _, place, value in self._right_elsewhere(call)), b"")

    @property
    def proofs(self) -> dict[Matched, bytes]:
        """Says that the main or the second token is in the right place."""
        shown = [b64encode(self._username + b":" + secret) for secret in self.secrets]
        values = shown if self.placement == "basic" else self.secrets
        names: tuple[Matched, ...] = ("main", "second")
        return {name: _shown_in(self._place, value) for name, value in zip(names, values, strict=False)}

    def may_hide_token(self, recorded: Call) -> bool:
        """Whether a recorded call may have had a token in this place, which is masked."""
        return bool(recorded.header(b"authorization") if self.challenge else self._find(recorded))

    def _masked_body(self, call: Call) -> bytes | None:
        if self.placement != "body":
            body = call.body  # a sender that was set up for another place may write it there
            for secret in self.secrets:
                if len(secret) >= NO_WORD:
                    body = body.replace(secret, b"*" * len(secret))
            return body
        if call.header(b"content-encoding"):
            return None
        body = call.body
        # Stars instead: what else is in the body keeps its place, and the size stays true.
        for quoted in {text for text in walk_every(body, self._path) if text[:1] == b'"'}:
            body = body.replace(quoted, b'"' + b"*" * (len(quoted) - 2) + b'"')
        for secret in self.secrets:  # elsewhere, or in what is no JSON
            body = body.replace(secret, b"*" * len(secret))
        return body

    def _match(self, token: bytes) -> Matched:
        """Both are always compared, so that the time taken does not tell which one came close."""
        digest = sha256(token).digest()
        is_main = hmac.compare_digest(digest, self._main)
        is_second = hmac.compare_digest(digest, self._second or self._main) and self._second is not None
        return "main" if is_main else "second" if is_second else ""

    def _elsewhere(self, call: Call) -> str:
        """Says where else the call carries the right token, for the webhook's owner. The caller hears none of it."""
        hints = (
            f"; the {which} token was sent in {place}" for which, place, _ in self._right_elsewhere(call)
        )
        return next(hints, "")

    def _right_elsewhere(self, call: Call) -> Iterator[tuple[Matched, str, bytes]]:
        for place, value in islice(_places(call), _MOST_PLACES):
            if matched := self._match(value):
                yield matched, place, value

    def _nearly(self, token: bytes) -> str:
        if self._match(token.strip(b" \t\"'")):
            return ": it has quotes or blanks around it"
        if self._match(token.partition(b" ")[2].strip()):
            return ": it has a word before it"
        if self.placement == "url" and self._match(token.replace(b" ", b"+")):
            return ": its + arrived as a blank; in a URL it is written %2B"
        return ""

    def _in_basic(self, call: Call) -> "list[bytes] | Unproven":
        tokens = []
        for value in self._authorization(call, b"basic"):
            try:
                # Only the first colon divides: a password may hold colons.
                username, colon, password = b64decode(value, validate=True).partition(b":")
            except (binascii.Error, ValueError):
                return _mismatch("what follows Basic is not base64")
            if not colon or not hmac.compare_digest(username, self._username):
                swapped = "; the token was sent as the username" if self._match(username) else ""
                return _mismatch(f"the username is not the right one{swapped}")
            tokens.append(password)
        return tokens

    def _in_body(self, call: Call) -> "list[bytes] | Unproven":
        """If the path leads through an array, every element must carry the token."""
        if call.header(b"content-encoding"):
            return _missing("a token in the body cannot be looked for in a compressed one")
        tokens = {
            as_text(text).encode("utf-8", "replace") if text[:1] == b'"' else b""
            for text in walk_every(call.body, self._path)
        }
        if len(tokens) > 1:
            return _mismatch(f"{self._place} is not the same in every element")
        return list(tokens)

    @staticmethod
    def _authorization(call: Call, scheme: bytes) -> list[bytes]:
        """Returns what follows the scheme's name, in upper or lower case, in each Authorization header."""
        credentials = []
        for value in call.header(b"authorization"):
            name, _, rest = value.strip().partition(b" ")
            if name.lower() == scheme and rest.strip():
                credentials.append(rest.strip())
        return credentials


def _shown_in(place: str, value: bytes) -> bytes:
    return place.lower().encode() + b"\0" + value


def _missing(detail: str) -> Unproven:
    return Unproven("credential_missing", detail)


def _mismatch(detail: str) -> Unproven:
    return Unproven("credential_mismatch", detail)


def _places(call: Call) -> Iterator[tuple[str, bytes]]:
    """Yields each place where senders put tokens, in words, and the value there."""
    for name, value in call.headers:
        value = value.strip()
        if name != b"authorization":
            yield f"the header {name.decode('latin-1')}", value
            continue
        word, _, rest = value.partition(b" ")
        if word.lower() == b"basic":
            try:
                username, _, password = b64decode(rest, validate=True).partition(b":")
            except (binascii.Error, ValueError):
                continue
            yield "HTTP Basic, as the password", password
            yield "HTTP Basic, as the username", username
        elif word.lower() == b"bearer":
            yield "Authorization: Bearer", rest.strip()
        else:
            yield "Authorization, with no Bearer before it", value
            yield "Authorization, after another word than Bearer", rest.strip()
    for name, value in call.query_pairs:
        yield f"the URL parameter {name.decode('latin-1')}", value
