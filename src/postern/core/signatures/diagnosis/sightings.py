"""Finds what looks like a signature, a time or an id in a call, whatever the scheme says."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from postern.core.calls.call import Call
from postern.core.signatures.algorithms import ALGORITHM_KINDS, ALGORITHMS, DIGESTS, Algorithm
from postern.core.signatures.encoding import ENCODINGS, Encoding, decoder
from postern.core.signatures.freshness import TIMESTAMP_FORMATS, TimestampFormat, parse_timestamp
from postern.core.signatures.select import in_words

_LONGEST_VALUE = 2000
_MOST_SHAPES = 12
_NEVER = frozenset({b"authorization", b"cookie", b"if-none-match", b"etag", b"traceparent", b"tracestate"})
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,20}")
_ITEM_SEPARATORS = ("", ",", ";", " ")
_KEY_SEPARATORS = ("", "=", ",")
_OTHER_LENGTHS = {96: "SHA-384", 32: "MD5"}
_DECODERS = {
    (encoding, algorithm): decoder(encoding, ALGORITHM_KINDS[algorithm].sizes)
    for encoding in ENCODINGS
    if encoding != "auto"
    for algorithm in ALGORITHMS
}


@dataclass(frozen=True, slots=True)
class SignatureShape:
    """One way in which a signature can be read out of the call."""

    ref: str
    item_separator: str
    key_separator: str
    key: str
    encoding: Encoding
    algorithm: Algorithm

    @property
    def words(self) -> str:
        before = f" after {self.key}{self.key_separator}" if self.key else ""
        return f"{self.encoding} in {in_words(self.ref)}{before}"


@dataclass(frozen=True, slots=True)
class Moment:
    """A time in the call that may be the one that is signed."""

    ref: str
    form: TimestampFormat


def shapes(call: Call, algorithms: tuple[Algorithm, ...] = tuple(DIGESTS)) -> list[SignatureShape]:
    """Returns every way to read a signature of one of these algorithms out of headers and query, simplest first."""
    ways: dict[SignatureShape, None] = {}
    for ref, value in _values(call):
        for shape in _shapes_of(ref, value, algorithms):
            ways.setdefault(shape)
    return list(ways)[:_MOST_SHAPES]


def moments(call: Call, around: float) -> list[Moment]:
    """Headers and signature items that hold a time within a month of ``around``."""
    times: dict[Moment, None] = {}
    for ref, value in _values(call):
        parts = re.split(r"[,; ]", value) if "=" in value else []
        items = [
            (f"item:{name}", text)
            for name, _, text in (part.strip().partition("=") for part in parts)
            if _NAME.fullmatch(name)
        ]
        for place, text in [(ref, value), *items]:
            for form in TIMESTAMP_FORMATS:
                moment = parse_timestamp(text.encode("latin-1"), form)
                if moment is not None and abs(moment - around) < 31 * 24 * 3600:
                    times.setdefault(Moment(place, form))
    return list(times)[:4]


def ids(call: Call) -> list[str]:
    """Headers that may hold the sender's id of this delivery."""
    names = dict.fromkeys(
        name for name, _ in call.headers if name.endswith((b"-id", b"_id")) and b"request" not in name
    )
    return [f"header:{name.decode('latin-1')}" for name in names][:3]


def other_digests(call: Call) -> list[str]:
    """Names of algorithms whose hex digests the call carries in a header that says signature or hash."""
    algorithms = []
    for name, value in call.headers:
        if not any(word in name for word in (b"signature", b"hmac", b"hash", b"digest")):
            continue
        for part in re.split(rb"[=,; ]", value[:_LONGEST_VALUE]):
            algorithm = _OTHER_LENGTHS.get(len(part)) if re.fullmatch(rb"[0-9a-fA-F]+", part) else None
            if algorithm and algorithm not in algorithms:
                algorithms.append(algorithm)
    return algorithms


def _values(call: Call) -> Iterator[tuple[str, str]]:
    for name, value in call.headers:
        if name not in _NEVER and len(value) <= _LONGEST_VALUE:
            yield f"header:{name.decode('latin-1')}", value.strip().decode("latin-1")
    for name, value in call.query_pairs:
        if len(value) <= _LONGEST_VALUE:
            yield f"query:{name.decode('latin-1')}", value.decode("latin-1")


def _shapes_of(ref: str, value: str, algorithms: tuple[Algorithm, ...]) -> Iterator[SignatureShape]:
    for item_separator in _ITEM_SEPARATORS:
        if item_separator and item_separator not in value:
            continue
        for item in value.split(item_separator) if item_separator else [value]:
            for key_separator in _KEY_SEPARATORS:
                key, separator, rest = (
                    item.strip().partition(key_separator) if key_separator else ("", "", item.strip())
                )
                if key_separator == item_separator != "" or (
                    key_separator and not (separator and _NAME.fullmatch(key))
                ):
                    continue
                for algorithm in algorithms:
                    encoding = _encoding_of(rest, algorithm)
                    if encoding is not None:
                        yield SignatureShape(ref, item_separator, key_separator, key, encoding, algorithm)


def _encoding_of(text: str, algorithm: Algorithm) -> Encoding | None:
    """The first encoding in which it is a signature as long as this algorithm makes them."""
    known = (encoding for encoding, other in _DECODERS if other == algorithm)
    return next(
        (
            candidate
            for candidate in known
            if _DECODERS[candidate, algorithm](text.encode("latin-1")) is not None
        ),
        None,
    )
