"""The one verifier: a scheme and its secrets, compiled once for a webhook, asked once for every call.

``read`` collects what the sender signed and with what; ``check`` compares. Nothing here knows whose scheme it
is.
"""

import hmac
from collections.abc import Callable
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from postern.core.calls.call import Call
from postern.core.calls.content import is_form
from postern.core.signatures.algorithms import ALGORITHM_KINDS, DIGESTS, is_certificate, is_shared, is_token
from postern.core.signatures.credential import Credential, Matched, Unproven, VerifiedCall
from postern.core.signatures.encoding import (
    decode_digest,
    decoder,
    encoding_words,
    is_stand_in,
    signing_key,
    within,
)
from postern.core.signatures.freshness import FORMAT_WORDS, out_of_window, parse_timestamp
from postern.core.signatures.keys.certificate import CertificateKey
from postern.core.signatures.keys.key import Key, SignatureValues
from postern.core.signatures.keys.public import KeyOfPair, read_key
from postern.core.signatures.keys.shared import SharedKey
from postern.core.signatures.keys.token import UNKNOWN_KEY, TokenKey
from postern.core.signatures.scheme import SignatureScheme
from postern.core.signatures.select import Find, Ref, finder, in_words, parse_ref
from postern.core.signatures.signed_content import Missing, SignedContent


class Reading(Struct):
    """The signatures, time and id that a call carries, and the bytes that they sign. Nothing is proven yet."""

    candidates: list[bytes]
    content: bytes
    timestamp: bytes = b""
    signed_at: float | None = None
    delivery_id: bytes | None = None
    delivery_id_signed: bool = False


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
        self.sizes = ALGORITHM_KINDS[scheme.algorithm].sizes
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
        self._needs_timestamp = bool(scheme.timestamp) and (
            scheme.timestamp_required or require_timestamp_and_digest
        )
        has_age = self._needs_timestamp and self.tolerance > 0
        secrets = (main,) if second is None else (main, second)
        made = (_key_of(scheme, secret, self.content.url, has_age) for secret in secrets)
        self.keys: dict[Matched, Key] = dict(zip(("main", "second"), made, strict=False))
        self._main = self.keys["main"]
        if is_shared(scheme.algorithm):
            self.secrets = secrets
        self.names_keys = bool(scheme.certificate_from)
        self.fetches_keys = bool(scheme.keys_from) or self.names_keys
        self.can_sign = self._main.can_sign

        signatures = [parse_ref(text) for text in scheme.signature]
        self._signature = [finder(ref) for ref in signatures]
        self._place = in_words(*scheme.signature)
        self._item_separator = scheme.item_separator.encode()
        self._key_separator = scheme.key_separator.encode()
        self._key = scheme.signature_key.encode()
        decode = decoder(scheme.encoding, self.sizes)
        self._decode = within(scheme.signature_form, decode) if scheme.signature_form else decode
        if is_token(scheme.algorithm):
            self._decode = lambda text: text
        self._timestamp = _located(scheme.timestamp)
        self._digest = _located(scheme.body_digest)
        self._needs_digest = scheme.signs_digest or (
            bool(scheme.body_digest) and require_timestamp_and_digest
        )
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
        # If several headers have names that begin alike: the one that a test call carries (`making.py`).
        if is_token(scheme.algorithm) and "header:authorization" in map(str, signatures):
            self.masked_headers = frozenset({b"authorization"})  # good for other calls until it ends
            self.read_headers -= self.masked_headers
        headers = [ref for ref in signatures if ref.kind == "header"]
        carrying = frozenset(f"{ref.name}{'1' if ref.is_glob else ''}".encode() for ref in headers)
        self.signature_headers = carrying - self.masked_headers
        self.signature_parameters = frozenset(ref.name.encode() for ref in signatures if ref.kind == "query")

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
        matching = [
            which
            for which, key in self.keys.items()
            if key.matches(self.content_of(which, reading, call), reading.candidates, fetched)
        ]
        if not matching:
            return self._mismatch(reading, fetched)
        matched = matching[0]
        rejected = self._digest_rejected(call) if self._digest or self._signs_form else None
        if rejected is None and reading.signed_at is not None:
            rejected = out_of_window(reading.signed_at, call.received_at, self.tolerance)
        if rejected is None:
            rejected = self.keys[matched].rejected(call, reading.candidates[0], fetched)
        if rejected is not None:
            return Unproven(*rejected)
        step = f"the signature in {self._place} was made with the {matched} {self._main.noun}"
        return VerifiedCall(call, matched, step, reading.delivery_id, reading.delivery_id_signed)

    def keys_at(self, call: Call) -> str:
        return self._main.keys_at(call)

    def _mismatch(self, reading: Reading, fetched: bytes) -> Unproven:
        trouble = self._main.trouble(reading.content, reading.candidates, fetched)
        key_source = self.scheme.keys_from if trouble == UNKNOWN_KEY else ""
        why = (
            f"proves nothing: {trouble}"
            if trouble
            else f"was made with another {self._main.noun} or over other bytes"
        )
        detail = f"the {self._main.signature_noun} in {self._place} {why}"
        return Unproven("signature_mismatch", detail, key_source)

    def content_of(self, which: Matched, reading: Reading, call: Call) -> bytes:
        """Returns the signed bytes. They differ by the secret where that is a part of them."""
        if which == "main" or "secret" not in self.content.kinds:
            return reading.content
        content = self._second_content.of(call, reading.timestamp, reading.delivery_id or b"")
        return b"" if isinstance(content, Missing) else content

    def sign(self, content: bytes) -> bytes:
        return self._main.sign(content)

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
                moves = signed_at is None and any(border in text for border in self.content.time_borders)
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

    def _values(self, call: Call) -> SignatureValues | Unproven:
        signatures = [value for find in self._signature for value in find(call) if value]
        if not signatures:
            return Unproven("signature_missing", f"no signature was sent in {self._place}")
        values = self._main.values(signatures)
        if isinstance(values, str):
            return Unproven("signature_malformed", f"what was sent in {self._place} {values}")
        if values is None:
            values = SignatureValues()
            for value in signatures:
                self._take_items(value, values)
        if len(values.candidates) > self._main.most:
            return Unproven(
                "signature_malformed",
                f"{len(values.candidates)} signatures were sent, more than {self._main.most}",
            )
        return values

    def _take_items(self, value: bytes, values: SignatureValues) -> None:
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

    def _why_malformed(self, values: SignatureValues) -> str:
        if not values.candidates:
            return f"what was sent in {self._place} has no item {self.scheme.signature_key}{self.scheme.key_separator}…"
        what = ALGORITHM_KINDS[self.scheme.algorithm].signature_words
        return f"what was sent in {self._place} is not {what} in {encoding_words(self.scheme.encoding, self.sizes)}"

    def _timestamp_text(self, call: Call, values: SignatureValues) -> bytes | Unproven | None:
        for place in self._timestamp:
            texts = _at(place, call, values)
            if not texts:
                continue
            if len(texts) > 1:
                # One of them may be what was signed and another what is judged.
                return Unproven(
                    "timestamp_malformed",
                    f"the timestamp in {in_words(place.ref)} was sent {len(texts)} times; it must be sent once",
                )
            return texts[0]
        if self._needs_timestamp or "timestamp" in self.content.kinds:
            return Unproven(
                "timestamp_missing", f"no timestamp was sent in {in_words(*self.scheme.timestamp)}"
            )
        return None

    def _delivery_id(self, call: Call, values: SignatureValues) -> tuple[bytes | None, bool, int]:
        for place in self._id:
            ids = _at(place, call, values)
            if ids:
                return ids[0], place.signed, len(ids)
        return None, False, 0

    def _is_signed(self, ref: Ref) -> bool:
        return self.scheme.signs(ref) or (ref.kind == "body" and self.body_is_signed)

    def _digest_rejected(self, call: Call) -> tuple[str, str] | None:
        digests = [(place.ref, value) for place in self._digest for value in place.find(call) if value]
        is_no_form = self._signs_form and bool(call.body) and not is_form(call)
        if is_no_form and not self._digest:
            return "signature_malformed", "the fields of a form are signed, and the body is no form"
        if not digests and (self._needs_digest or is_no_form):
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


def _located(places: tuple[str, ...]) -> list[_Located]:
    return [_Located(ref, finder(ref)) for ref in map(parse_ref, places)]


def _at(place: _Located, call: Call, values: SignatureValues) -> list[bytes]:
    """Returns every value at a place. An item that each signature header repeats counts once."""
    if place.ref.kind != "item":
        return [value for value in place.find(call) if value]
    name = place.ref.name.encode()
    sent = values.items.get(name, [])
    return sent if name in values.repeated else list(dict.fromkeys(sent))


def _key_of(scheme: SignatureScheme, secret: bytes, url: Callable[[Call], bytes], has_age: bool) -> Key:
    """``has_age``: signatures are too old after a while. Raises ValueError, with words for whoever pasted it, where it can be
    no such key."""
    if is_token(scheme.algorithm):
        return TokenKey(scheme, secret, url, has_age)
    if is_certificate(scheme.algorithm):
        return CertificateKey(scheme, secret)
    digest, is_awaited = DIGESTS.get(scheme.algorithm), is_stand_in(secret)
    if digest is not None:  # what stands in for a secret need not be written as one
        key = secret if is_awaited else signing_key(secret, scheme.secret_encoding, scheme.secret_prefix)
        return SharedKey(key, digest)
    return Key() if is_awaited else KeyOfPair(scheme.algorithm, *read_key(secret))
