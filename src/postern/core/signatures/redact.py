"""Masks credentials: they never reach the disk or a log. Signatures do, so that a call can be checked again."""

import re
from collections.abc import Callable

import msgspec

from postern.core.calls.call import Call, Headers, unquote_plus
from postern.core.signatures.credential import NO_WORD, Credential

MASK = "***"
_MASK = MASK.encode()

TEST_CALL = b"x-postern-test"
"""In a call that was made for somebody who may not see what its secrets sign: such a signature is masked, too."""

_COOKIES = frozenset({b"cookie", b"set-cookie"})
# By these a body is read, once more when its call is started or replayed.
_HOW_TO_READ = frozenset({"content-type", "content-encoding"})
# Wherever a sender puts a credential that this webhook does not even look at, it is still one.
_LOOKS_SECRET = re.compile(
    rb"(^|[-_])(api[-_]?key|token|secret|password|passwd|credentials?|authorization|session)s?$"
)
_SECRET_PARAMETERS = frozenset(
    {
        b"token",
        b"access_token",
        b"api_key",
        b"apikey",
        b"key",
        b"secret",
        b"password",
        b"auth",
        b"hub.verify_token",
    }
)


MOST_REMEMBERED = 1000
LONGEST_REMEMBERED = 100

_encode = msgspec.json.Encoder().encode


class _Header(msgspec.Struct):
    """A header of an earlier call: most come again with the same value."""

    name: str
    is_masked: bool
    value: bytes | None
    """The last one; None before the first, and where it is masked whatever it is."""
    written: bytes
    """The pair as stored."""

    def __repr__(self) -> str:
        return f"_Header({self.name!r})"


class Mask:
    """The masks of one webhook, made once with its credential."""

    def __init__(self, credential: Credential, *others: bytes) -> None:
        """``others``: secrets beside those of the credential."""
        self._names = credential.masked_headers
        self._parameters = credential.masked_parameters | (_SECRET_PARAMETERS - credential.read_parameters)
        self._secrets = tuple(secret for secret in (*credential.secrets, *others) if len(secret) >= 4)
        self._long_secrets = tuple(secret for secret in self._secrets if len(secret) >= NO_WORD)
        self._keep = credential.read_headers
        self._signatures = credential.signature_headers
        self._signature_parameters = credential.signature_parameters
        self._known: dict[bytes, _Header] = {}

    def headers(
        self, headers: Headers, untrusted: frozenset[bytes] = frozenset(), is_test: bool = False
    ) -> bytes:
        """The headers as stored: JSON pairs, in order. Credentials, untrusted ones, and a test call's signature are masked."""
        hidden = untrusted | self._signatures if is_test else untrusted
        if hidden:
            headers = tuple((name, _MASK if name in hidden else value) for name, value in headers)
        known_names = self._known
        written: list[bytes] = []
        unseen: list[tuple[int, _Header, bytes]] = []
        for name, value in headers:
            known = known_names.get(name) or self._learn(name)
            if known.value != value and not known.is_masked:
                unseen.append((len(written), known, value))
            written.append(known.written)
        if unseen:
            # Nearly always none of them holds the webhook's own secret: one look at all of them together says so.
            suspect = _holds(self._secrets, b"\n".join([value for _, _, value in unseen]))
            for place, known, value in unseen:
                secrets = self._long_secrets if known.name in _HOW_TO_READ else self._secrets
                masked = suspect and _holds(secrets, value)
                pair = _encode((known.name, MASK if masked else value.decode("latin-1")))
                written[place] = pair
                if len(value) <= LONGEST_REMEMBERED:
                    known.value, known.written = value, pair
        return b"[" + b",".join(written) + b"]"

    def reader(self, name: bytes) -> Callable[[Call], bytes | None]:
        """Reads the first value of a header as the history will show it."""
        is_masked, is_signature = self.hides(name), name in self._signatures
        secrets = self._long_secrets if name.decode("latin-1") in _HOW_TO_READ else self._secrets

        def read(call: Call) -> bytes | None:
            value = call.first_header(name)
            if value is None:
                return None
            hidden = is_masked or (is_signature and call.first_header(TEST_CALL) is not None)
            hidden = hidden or (name == b"traceparent" and name in call.untrusted)
            return _MASK if hidden or _holds(secrets, value) else value

        return read

    def hides(self, name: bytes) -> bool:
        """Whether a header is masked whatever its value is."""
        return (self._known.get(name) or self._learn(name)).is_masked

    def _learn(self, name: bytes) -> "_Header":
        looks_secret = name in _COOKIES or _LOOKS_SECRET.search(name) is not None
        is_masked = name in self._names or (looks_secret and name not in self._keep)
        text = name.decode("latin-1")
        known = _Header(text, is_masked, None, _encode((text, MASK)))
        # Bounded, for strangers choose names, too.
        if len(self._known) < MOST_REMEMBERED and len(name) <= LONGEST_REMEMBERED:
            self._known[name] = known
        return known

    def query(self, query: bytes, is_test: bool = False) -> bytes:
        """The query string as stored. Unmasked parts keep every byte: a signature may cover them."""
        if not query:
            return query
        masked = self._parameters | self._signature_parameters if is_test else self._parameters
        parts = []
        for part in query.split(b"&"):
            name, equals, value = part.partition(b"=")
            plain = unquote_plus(name)
            if equals and (plain in masked or _holds(self._secrets, unquote_plus(value))):
                parts.append(name + b"=" + _MASK)
            elif _holds(self._secrets, plain):  # `?TOKEN`, pasted without its parameter's name
                parts.append(_MASK + equals + value)
            else:
                parts.append(part)
        return b"&".join(parts)


def _holds(secrets: tuple[bytes, ...], value: bytes) -> bool:
    """The webhook's own token in the wrong place, like a Referer that carries the whole URL."""
    # `in` takes what it looks for as a number first: the exception inside costs five times the search.
    plain = unquote_plus(value) if value.find(b"%") >= 0 else b""
    for secret in secrets:  # noqa: SIM110 - `any` costs more than the search, and this is asked at every call
        if value.find(secret) >= 0 or plain.find(secret) >= 0:
            return True
    return False
