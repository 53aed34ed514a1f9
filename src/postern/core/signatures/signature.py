"""The one verifier: a scheme and its secrets, compiled once for a webhook, asked once for every call.

``read`` collects what the sender signed and with what; ``check`` compares. Nothing here knows whose scheme it
is.
"""

import hmac
from hashlib import sha256

from msgspec import Struct, field
from msgspec.structs import replace

from postern.core.calls.call import Call
from postern.core.calls.content import is_form
from postern.core.calls.paths import parse_path
from postern.core.signatures.certificates import (
    CERTIFICATES,
    CertificateKey,
    certificate_out_of_time,
    pattern_of,
)
from postern.core.signatures.credential import Credential, Matched, Unproven, VerifiedCall
from postern.core.signatures.encoding import decode_digest, decoder, encoding_words
from postern.core.signatures.freshness import FORMAT_WORDS, out_of_window, parse_timestamp
from postern.core.signatures.key import Key
from postern.core.signatures.keys import ALGORITHM_KINDS, is_shared, is_token, key_of
from postern.core.signatures.scheme import LONGEST_ADDRESS, SignatureScheme
from postern.core.signatures.select import Find, Ref, finder, in_body, in_words, parse_ref
from postern.core.signatures.signed_content import Missing, SignedContent
from postern.core.signatures.tokens import TOKENS, UNKNOWN_KEY, TokenKey, is_or_has, out_of_time, read_token

MOST_CANDIDATES = 128
"""DocuSign sends one header for each of up to 100 keys; nobody honest sends more."""
MOST_OF_PAIRS = 8
"""The most that are checked with a public key, which takes about fifty times as long."""


class Reading(Struct):
    """The signatures, time and id that a call carries, and the bytes that they sign. Nothing is proven yet."""

    candidates: list[bytes]
    content: bytes
    timestamp: bytes = b""
    signed_at: float | None = None
    delivery_id: bytes | None = None
    delivery_id_signed: bool = False


class _Values(Struct):
    """The signature values of one call, and their items by key."""

    candidates: list[bytes] = field(default_factory=list)
    items: dict[bytes, list[bytes]] = field(default_factory=dict)
    repeated: set[bytes] = field(default_factory=set)


class _Located(Struct, frozen=True):
    ref: Ref
    find: Find
    signed: bool = False


class SignatureCredential(Credential):
    """A signature in the form a scheme says, made with the main or the second secret or key. It is stored with the
    call and not masked, so that a rejected one can be checked again once its secret is right."""

    def __init__(
        self,
        scheme: SignatureScheme,
        main: bytes,
        second: bytes | None = None,
        *,
        public_url: str | None = None,
        tolerance_seconds: int | None = None,
        require_timestamp_and_digest: bool = False,
    ) -> None:
        self.scheme = scheme
        self._main = _key_of(scheme, main)
        self._second = _key_of(scheme, second) if second is not None else None
        shared = is_shared(scheme.algorithm)
        if shared:
            self.secrets = (main,) if second is None else (main, second)
        self._is_token = is_token(scheme.algorithm)
        self._certificate_at = [finder(parse_ref(text)) for text in scheme.certificate_from]
        self._certificate_addresses = [pattern_of(text) for text in scheme.certificate_addresses]
        self._says_more = self._is_token or bool(self._certificate_at)
        self.names_keys = bool(self._certificate_at)
        self.fetches_keys = bool(scheme.keys_from) or self.names_keys
        names_field = bool(self._certificate_at) and scheme.secret_claim != "aud"
        self._said_at = parse_path(scheme.secret_claim) if names_field else None
        self._said = {"main": main, "second": second}
        self.can_sign = self._main.can_sign
        self.sizes = ALGORITHM_KINDS[scheme.algorithm].sizes
        self._most = MOST_CANDIDATES if shared else MOST_OF_PAIRS
        self._secret = "secret" if shared else "audience" if self._is_token else "key"
        self.tolerance = scheme.tolerance_seconds if tolerance_seconds is None else tolerance_seconds
        self.content, self._second_content = (
            SignedContent(
                scheme.signed_content,
                public_url=public_url,
                url_unescape=scheme.url_unescape,
                free_value=scheme.free_value,
                secret=secret,
            )
            for secret in (main, second or b"")
        )

        signatures = [parse_ref(text) for text in scheme.signature]
        self._signature = [finder(ref) for ref in signatures]
        self._place = in_words(*scheme.signature)
        self._item_separator = scheme.item_separator.encode()
        self._key_separator = scheme.key_separator.encode()
        self._key = scheme.signature_key.encode()
        self._decode = (lambda text: text) if self._is_token else decoder(scheme.encoding, self.sizes)
        self._timestamp = _located(scheme.timestamp)
        self._digest = _located(scheme.body_digest)
        self._needs_timestamp = bool(scheme.timestamp) and (
            scheme.timestamp_required or require_timestamp_and_digest
        )
        self._needs_digest = bool(scheme.body_digest) and require_timestamp_and_digest
        digest_binds = self._needs_digest and all(scheme.signs(place.ref) for place in self._digest)
        self.body_is_signed = scheme.signs_body or digest_binds
        self._signs_id = "id" in self.content.kinds
        self._signs_form = "form" in self.content.kinds
        self._id = [
            replace(place, signed=self._signs_id or self._is_signed(place.ref))
            for place in _located(scheme.delivery_id)
        ]
        elsewhere = [place.ref for place in (*self._timestamp, *self._digest, *self._id)]
        refs = [*signatures, *elsewhere, *scheme.covered_refs]
        self.read_headers = frozenset(
            ref.name.encode() for ref in refs if ref.kind == "header" and not ref.is_glob
        )
        self.read_parameters = frozenset(ref.name.encode() for ref in refs if ref.kind == "query")
        # Of several headers whose names begin alike, the one that a test call carries (`making.py`).
        if self._is_token and "header:authorization" in map(str, signatures):
            self.masked_headers = frozenset({b"authorization"})  # good for other calls until it ends
            self.read_headers -= self.masked_headers
        self.signature_headers = (
            frozenset(
                f"{ref.name}{'1' if ref.is_glob else ''}".encode()
                for ref in signatures
                if ref.kind == "header"
            )
            - self.masked_headers
        )
        self.signature_parameters = frozenset(ref.name.encode() for ref in signatures if ref.kind == "query")
        self._steps = {
            which: f"the signature in {self._place} was made with the {which} {self._secret}"
            for which in ("main", "second")
        }

    def check(self, call: Call) -> VerifiedCall | Unproven:
        reading = self.read(call)
        if isinstance(reading, Unproven):
            return reading
        fetched = b""
        if self.fetches_keys:
            address = self.keys_at(call)
            if not address:
                where = in_words(*self.scheme.certificate_from)
                detail = (
                    f"what the call says in {where} is no address at which its sender has its certificates"
                )
                return Unproven("signature_mismatch", detail)
            known = (call.fetched or {}).get(address)
            if known is None:
                detail = f"the sender's keys could not be fetched from {address}"
                return Unproven("signing_keys_unavailable", detail, address)
            fetched = known
        # Both are asked, so that the time taken does not tell which one it was.
        is_main = self._main.matches(reading.content, reading.candidates, fetched)
        is_second = self._second is not None and self._second.matches(
            self.content_of("second", reading, call), reading.candidates, fetched
        )
        if not (is_main or is_second):
            return self._mismatch(reading, fetched)
        matched: Matched = "main" if is_main else "second"
        rejected = self._digest_rejected(call) if self._digest else None
        if rejected is None and reading.signed_at is not None:
            rejected = out_of_window(reading.signed_at, call.received_at, self.tolerance)
        if self._says_more and rejected is None:
            rejected = (
                self._token_rejected(call, reading.candidates[0])
                if self._is_token
                else self._certificate_rejected(call, matched, fetched)
            )
        if rejected is not None:
            return Unproven(*rejected)
        return VerifiedCall(
            call, matched, self._steps[matched], reading.delivery_id, reading.delivery_id_signed
        )

    def _token_rejected(self, call: Call, text: bytes) -> tuple[str, str] | None:
        """A genuine token, for another receiver or another time."""
        token = read_token(text)
        assert token is not None
        audiences, claimed = self.scheme.audiences, token.claims.get("aud")
        if audiences and not any(is_or_has(claimed, one) for one in audiences):
            return "signature_mismatch", f"the token's audience is not {' or '.join(audiences)}"
        if self.scheme.secret_claim != "aud" and not audiences:
            url = self.content.url(call).partition(b"?")[0].decode("utf-8", "replace")
            if not is_or_has(claimed, url):
                return "signature_mismatch", f"the token's audience is not this webhook's URL, {url}"
        is_good_for_others = self.fetches_keys or not self.scheme.body_claim
        has_age = self._needs_timestamp and self.tolerance > 0
        return out_of_time(token, call.received_at, must_end=is_good_for_others and not has_age)

    def keys_at(self, call: Call) -> str:
        if not self._certificate_at:
            return self.scheme.keys_from
        said = [value.decode("latin-1") for find in self._certificate_at for value in find(call)]
        is_one = len(said) == 1 and len(said[0]) <= LONGEST_ADDRESS
        is_allowed = is_one and any(one.fullmatch(said[0]) for one in self._certificate_addresses)
        return said[0] if is_allowed else ""

    def _certificate_rejected(self, call: Call, matched: Matched, fetched: bytes) -> tuple[str, str] | None:
        """The certificate's time; and the body's own field must be what was signed in its place."""
        if late := certificate_out_of_time(fetched, call.received_at):
            return "signature_mismatch", late
        if self._said_at is None or in_body(call, self._said_at) == [self._said[matched]]:
            return None
        return "signature_mismatch", f"{self.scheme.secret_claim} in the body is not what is set here"

    def _mismatch(self, reading: Reading, fetched: bytes) -> Unproven:
        trouble = self._main.trouble(reading.content, reading.candidates, fetched)
        if not trouble:
            return Unproven(
                "signature_mismatch",
                f"the signature in {self._place} was made with another {self._secret} or over other bytes",
            )
        wanted = self.scheme.keys_from if trouble == UNKNOWN_KEY else ""
        what = "token" if self._is_token else "signature"
        return Unproven(
            "signature_mismatch", f"the {what} in {self._place} proves nothing: {trouble}", wanted
        )

    def content_of(self, which: Matched, reading: Reading, call: Call) -> bytes:
        """Returns the signed bytes. They differ by the secret where that is a part of them."""
        if which == "main" or "secret" not in self.content.kinds:
            return reading.content
        content = self._second_content.of(call, reading.timestamp, reading.delivery_id or b"")
        return b"" if isinstance(content, Missing) else content

    def sign(self, content: bytes) -> bytes:
        return self._main.sign(content)

    def keys(self) -> dict[Matched, Key]:
        return {"main": self._main} if self._second is None else {"main": self._main, "second": self._second}

    def read(self, call: Call) -> Reading | Unproven:
        """Everything that is signed and every signature, or why there is nothing to compare."""
        values = self._values(call)
        if isinstance(values, Unproven):
            return values
        candidates = [digest for digest in map(self._decode, values.candidates) if digest is not None]
        if not candidates:
            return Unproven("signature_malformed", self._why_malformed(values))

        timestamp, signed_at = b"", None
        if self._timestamp:
            text = self._timestamp_text(call, values)
            if isinstance(text, Unproven):
                return text
            if text is not None:
                timestamp = text
                signed_at = parse_timestamp(text, self.scheme.timestamp_format)
                moves = signed_at is None and any(one in text for one in self.content.time_borders)
                if moves or (signed_at is None and self.tolerance):
                    return Unproven(
                        "timestamp_malformed",
                        f"the timestamp is not written as {FORMAT_WORDS[self.scheme.timestamp_format]}",
                    )

        delivery_id, id_signed, times = self._delivery_id(call, values)
        if self._signs_id and times != 1:
            return Unproven(
                "signature_malformed",
                f"the id, which is signed, was sent {times} times; it must be sent once",
            )

        content = self.content.of(call, timestamp, delivery_id or b"")
        if isinstance(content, Missing):
            return Unproven("signature_malformed", content.detail)
        return Reading(candidates, content, timestamp, signed_at, delivery_id, id_signed)

    def _values(self, call: Call) -> _Values | Unproven:
        found = [value for find in self._signature for value in find(call) if value]
        if not found:
            return Unproven("signature_missing", f"no signature was sent in {self._place}")
        if self._is_token:
            return self._token_values(found)
        if not self._key_separator and not self._item_separator:
            values = _Values(found)
        else:
            values = _Values()
            for value in found:
                self._take_items(value, values)
        if len(values.candidates) > self._most:
            return Unproven(
                "signature_malformed",
                f"{len(values.candidates)} signatures were sent, more than {self._most}",
            )
        return values

    def _token_values(self, found: list[bytes]) -> _Values | Unproven:
        """A token, and its claims as its items. Which of two would be meant nobody can say."""
        word, _, rest = found[0].partition(b" ")
        text = rest.strip() if word.lower() == b"bearer" else found[0]
        token = read_token(text) if len(found) == 1 else None
        if token is None:
            what = "is no signed token (JWT)" if len(found) == 1 else f"was sent {len(found)} times"
            return Unproven("signature_malformed", f"what was sent in {self._place} {what}")
        said = {name.encode("utf-8", "replace"): value for name, value in token.claims.items()}
        items = {
            name: [_as_item(value)] for name, value in said.items() if isinstance(value, str | int | float)
        }
        return _Values([text], items)

    def _take_items(self, value: bytes, values: _Values) -> None:
        items = value.split(self._item_separator) if self._item_separator else (value,)
        if not self._key_separator:
            for number, item in enumerate(items if not self._key else (), 1):
                item = item.strip()
                values.candidates.append(item)
                values.items.setdefault(b"%d" % number, []).append(item)
            return
        seen: set[bytes] = set()
        for item in items:
            item = item.strip()
            key, separator, rest = item.partition(self._key_separator)
            if separator:
                key = key.strip()
                if key in seen:
                    values.repeated.add(key)
                seen.add(key)
                values.items.setdefault(key, []).append(rest)
                if not self._key or key == self._key:
                    # Without a key to go by, base64's padding may be what looks like a separator.
                    values.candidates.append(rest or item)
            elif not self._key:
                values.candidates.append(item)

    def _why_malformed(self, values: _Values) -> str:
        if not values.candidates:
            return f"what was sent in {self._place} has no item {self.scheme.signature_key}{self.scheme.key_separator}…"
        what = ALGORITHM_KINDS[self.scheme.algorithm].signature_words
        return f"what was sent in {self._place} is not {what} in {encoding_words(self.scheme.encoding, self.sizes)}"

    def _timestamp_text(self, call: Call, values: _Values) -> bytes | Unproven | None:
        for place in self._timestamp:
            found = _at(place, call, values)
            if not found:
                continue
            if len(found) > 1:
                # One of them may be what was signed and another what is judged.
                return Unproven(
                    "timestamp_malformed",
                    f"the timestamp in {in_words(place.ref)} was sent {len(found)} times; it must be sent once",
                )
            return found[0]
        if self._needs_timestamp or "timestamp" in self.content.kinds:
            return Unproven(
                "timestamp_missing", f"no timestamp was sent in {in_words(*self.scheme.timestamp)}"
            )
        return None

    def _delivery_id(self, call: Call, values: _Values) -> tuple[bytes | None, bool, int]:
        for place in self._id:
            found = _at(place, call, values)
            if found:
                return found[0], place.signed, len(found)
        return None, False, 0

    def _is_signed(self, ref: Ref) -> bool:
        return self.scheme.signs(ref) or (ref.kind == "body" and self.body_is_signed)

    def _digest_rejected(self, call: Call) -> tuple[str, str] | None:
        digests = [(place.ref, value) for place in self._digest for value in place.find(call) if value]
        if not digests and (self._needs_digest or (self._signs_form and call.body and not is_form(call))):
            return (
                "signature_malformed",
                f"the SHA-256 of the body is required in {in_words(*self.scheme.body_digest)}, and was not sent",
            )
        digest = sha256(call.body).digest() if digests else b""
        for ref, value in digests:
            decoded = decode_digest(value)
            if decoded is None:
                return (
                    "signature_malformed",
                    f"what was sent in {in_words(ref)} is not a SHA-256 digest in hex or base64",
                )
            if not hmac.compare_digest(decoded, digest):
                return (
                    "signature_mismatch",
                    f"the body is not the one whose SHA-256 was sent in {in_words(ref)}",
                )
        return None


def _as_item(value: str | float) -> bytes:
    is_number = isinstance(value, float) and abs(value) < 1e15
    return str(int(value) if is_number else value).encode("utf-8", "surrogatepass")


def _located(places: tuple[str, ...]) -> list[_Located]:
    return [_Located(ref, finder(ref)) for ref in map(parse_ref, places)]


def _at(place: _Located, call: Call, values: _Values) -> list[bytes]:
    """Returns every value at a place. An item that each signature header repeats counts once."""
    if place.ref.kind != "item":
        return [value for value in place.find(call) if value]
    name = place.ref.name.encode()
    found = values.items.get(name, [])
    return found if name in values.repeated else list(dict.fromkeys(found))


def _key_of(scheme: SignatureScheme, secret: bytes) -> Key:
    if scheme.algorithm in TOKENS:
        return TokenKey(scheme.algorithm, secret, scheme.issuers, scheme.body_claim, scheme.secret_claim)
    if scheme.algorithm in CERTIFICATES:
        return CertificateKey(scheme.algorithm, secret, scheme.certificate_names)
    return key_of(scheme.algorithm, secret, scheme.secret_encoding, scheme.secret_prefix)
