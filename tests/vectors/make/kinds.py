"""What is tried on every vendor: one function, one list of vectors. A kind that cannot apply to a vendor is
left out."""

from dataclasses import replace
from typing import Any

import sdks
from signing import NOON, Confirmation, Headers, Message, Sender, bad, confirm, good, hmac_sha256, vector

WRONG = "somebody-elses-secret"


class Bench:
    """Makes the vectors of one sender and has each confirmed."""

    def __init__(self, sender: Sender) -> None:
        self.sender = sender
        self.made: list[dict[str, Any]] = []

    def message(self, text: bytes = b"plain", *, second: int = NOON, **more: Any) -> Message:
        sender = self.sender
        time = sender.time(second) if sender.time else None
        return Message(sender.body(text, second), time, url=sender.public_url or "", **more)

    def digest(self, message: Message, key: bytes | None = None) -> bytes:
        return hmac_sha256(
            self.sender.key(self.sender.secret) if key is None else key, self.sender.signed(message)
        )

    def signature(self, message: Message, key: bytes | None = None) -> str:
        return self.sender.encode(self.digest(message, key))

    def headers(self, message: Message, *signatures: str) -> Headers:
        """What is sent with the message. The last header is the signature's; without signatures there is
        none."""
        sender = self.sender
        headers = [("Content-Type", "application/json"), *sender.others(message)]
        if sender.id_header:
            headers.append((sender.id_header, message.id))
        if sender.time_header and message.time is not None:
            headers.append((sender.time_header, message.time))
        if signatures:
            headers.append((sender.header, sender.value(list(signatures), message.time)))
        return headers

    def add(
        self,
        kind: str,
        name: str,
        message: Message,
        headers: Headers | None,
        expect: dict[str, Any],
        **more: Any,
    ) -> None:
        by: Confirmation | None = more.pop("by", self.sender.sdk)
        headers = self.headers(message, self.signature(message)) if headers is None else headers
        more.setdefault("public_url", self.sender.public_url)
        secret = more.pop("secret", self.sender.secret)
        made = vector(kind, name, secret, message, headers, expect, **more)
        confirm(made, by, self.sender.differences)
        self.made.append(made)


def changed(signature: str) -> str:
    """Another digest in the same form: the first character, because the last of base64 may carry no bits."""
    return ("a" if signature[0] != "a" else "b") + signature[1:]


def vectors(sender: Sender) -> list[dict[str, Any]]:
    bench = Bench(sender)
    by_sdk = sdks.signed_by_sdk(sender.name, sender.secret, bench.message().body, NOON)
    if by_sdk is not None and by_sdk != sender.value(
        [bench.signature(bench.message())], bench.message().time
    ):
        raise SystemExit(f"{sender.name}: the SDK signs {by_sdk}")
    secrets(bench)
    bodies(bench)
    signatures(bench)
    if sender.is_list:
        lists(bench)
    if sender.tolerance:
        times(bench)
    else:
        message = bench.message()
        bench.add(
            "late",
            "no timestamp is signed, so it is good a year later",
            message,
            None,
            good(),
            at=NOON + 31_536_000,
        )
    return bench.made


def secrets(bench: Bench) -> None:
    sender, message = bench.sender, bench.message()
    second = sender.key(sender.second_secret)
    of_second = bench.headers(message, bench.signature(message, second))
    of_nobody = bench.headers(message, bench.signature(message, WRONG.encode()))
    bench.add("valid", "a genuine call", message, None, good())
    bench.add(
        "main_of_two",
        "the main secret while a second is set",
        message,
        None,
        good(),
        second_secret=sender.second_secret,
    )
    bench.add(
        "second_secret",
        "the second secret",
        message,
        of_second,
        good("second"),
        second_secret=sender.second_secret,
    )
    bench.add(
        "second_secret_not_set",
        "the second secret where none is set",
        message,
        of_second,
        bad("signature_mismatch"),
    )
    bench.add("wrong_secret", "somebody else's secret", message, of_nobody, bad("signature_mismatch"))
    two = {"second_secret": sender.second_secret}
    bench.add(
        "wrong_secrets",
        "somebody else's secret where two are set",
        message,
        of_nobody,
        bad("signature_mismatch"),
        **two,
    )
    of_everybody = bench.headers(message, bench.signature(message, b""))
    bench.add("empty_key", "signed with no secret at all", message, of_everybody, bad("signature_mismatch"))
    if sender.wrong_reading:
        misread = bench.headers(message, bench.signature(message, sender.wrong_reading(sender.secret)))
        bench.add(
            "secret_misread",
            "the secret read as a neighbouring scheme reads it",
            message,
            misread,
            bad("signature_mismatch"),
        )


def bodies(bench: Bench) -> None:
    message = bench.message()
    signed = bench.headers(message, bench.signature(message))
    altered = replace(message, body=message.body.replace(b"plain", b"plaim"))
    bench.add("altered_body", "one letter of the body is another", altered, signed, bad("signature_mismatch"))
    longer = replace(message, body=message.body + b"\n")
    bench.add(
        "body_with_more",
        "a newline came after the body was signed",
        longer,
        signed,
        bad("signature_mismatch"),
    )
    bench.add("non_ascii_body", "a body beyond ASCII", bench.message("Grüße, 東京 🛒".encode()), None, good())
    bench.add("not_utf8_body", "a body that is not UTF-8", bench.message(b"caf\xe9 \xff\xfe"), None, good())
    bench.add(
        "trailing_newline_body",
        "a body that ends in a newline",
        replace(message, body=message.body + b"\r\n"),
        None,
        good(),
    )
    odd = message.body.replace(b'":', b'" :  ').replace(b"plain", rb"\u00e9 \/ 1.0")
    bench.add(
        "odd_json_body",
        "JSON that would be written differently if it were parsed",
        replace(message, body=odd),
        None,
        good(),
    )
    if bench.sender.time_in_body:
        bench.add(
            "empty_body",
            "no body, so no signed time",
            replace(message, body=b""),
            None,
            bad("timestamp_missing"),
        )
    else:
        bench.add("empty_body", "no body", replace(message, body=b""), None, good())


def signatures(bench: Bench) -> None:
    sender, message = bench.sender, bench.message()
    right = bench.signature(message)
    wrong = changed(right)

    def signed(*values: str) -> Headers:
        return [*bench.headers(message), *((sender.header, value) for value in values)]

    def value(signature: str) -> str:
        return sender.value([signature], message.time)

    half = sender.encode(bench.digest(message)[:16])
    bench.add(
        "altered_signature",
        "one digit of the signature is another",
        message,
        signed(value(wrong)),
        bad("signature_mismatch"),
    )
    bench.add("missing_signature", "no signature", message, signed(), bad("signature_missing"))
    bench.add("empty_signature", "an empty signature header", message, signed(""), bad("signature_missing"))
    bench.add(
        "half_signature",
        "only the first half of the digest",
        message,
        signed(value(half)),
        bad("signature_malformed"),
    )
    bench.add(
        "malformed_signature",
        "a signature in no encoding",
        message,
        signed(value(sender.malformed)),
        bad("signature_malformed"),
    )
    bench.add(
        "latin1_signature",
        "a signature of bytes beyond ASCII",
        message,
        signed(value("é" * 64)),
        bad("signature_malformed"),
    )
    bench.add(
        "header_case",
        "header names in capitals",
        message,
        [(name.upper(), text) for name, text in signed(value(right))],
        good(),
    )
    bench.add(
        "repeated_right_last",
        "two signature headers, the second is right",
        message,
        signed(value(wrong), value(right)),
        good(),
    )
    bench.add(
        "repeated_right_first",
        "two signature headers, the first is right",
        message,
        signed(value(right), value(wrong)),
        good(),
    )
    bench.add(
        "repeated_wrong",
        "two signature headers, none is right",
        message,
        signed(value(wrong), value(wrong)),
        bad("signature_mismatch"),
    )
    if sender.foreign_alone:
        bench.add(
            "other_scheme",
            "only a signature of another version",
            message,
            signed(sender.foreign_alone),
            bad("signature_malformed"),
        )
        bare = right if sender.time_header or not sender.time else f"t={message.time},{right}"
        bench.add(
            "no_prefix",
            "the signature without what goes before it",
            message,
            signed(bare),
            bad("signature_malformed"),
        )
    if sender.id_header:
        without = [header for header in signed(value(right)) if header[0] != sender.id_header]
        bench.add("missing_id", "the signed id is not sent", message, without, bad("signature_malformed"))
        other = [
            (name, "msg_other" if name == sender.id_header else text) for name, text in signed(value(right))
        ]
        bench.add("altered_id", "the signed id is another", message, other, bad("signature_mismatch"))


def lists(bench: Bench) -> None:
    sender, message = bench.sender, bench.message()
    right = bench.signature(message)
    wrong = changed(right)
    separator = {"Paddle-Signature": ";", "webhook-signature": " "}.get(sender.header, ",")
    bench.add(
        "list_right_last",
        "two signatures in one header, the second is right",
        message,
        bench.headers(message, wrong, right),
        good(),
    )
    bench.add(
        "list_right_first",
        "two signatures in one header, the first is right",
        message,
        bench.headers(message, right, wrong),
        good(),
    )
    bench.add(
        "list_wrong",
        "two signatures in one header, none is right",
        message,
        bench.headers(message, wrong, wrong),
        bad("signature_mismatch"),
    )
    of_both = bench.headers(
        message,
        bench.signature(message, WRONG.encode()),
        bench.signature(message, sender.key(sender.second_secret)),
    )
    bench.add(
        "list_second_secret",
        "two signatures, one by the second secret",
        message,
        of_both,
        good("second"),
        second_secret=sender.second_secret,
    )
    *others, (name, text) = bench.headers(message, right)
    more = [*others, (name, f"{text}{separator}{sender.foreign_items}")]
    bench.add("list_with_other_items", "items of another version besides", message, more, good())


def times(bench: Bench) -> None:
    sender, message = bench.sender, bench.message()
    window = sender.tolerance
    bench.add(
        "edge_past", "received a second before it is too old", message, None, good(), at=NOON + window - 1
    )
    bench.add("edge_future", "signed as far ahead as is allowed", message, None, good(), at=NOON - window + 1)
    bench.add("stale", "received too late", message, None, bad("timestamp_expired"), at=NOON + window + 2)
    bench.add(
        "very_stale", "received a year later", message, None, bad("timestamp_expired"), at=NOON + 31_536_000
    )
    bench.add(
        "future",
        "signed later than it was received",
        message,
        None,
        bad("timestamp_in_future"),
        at=NOON - window - 2,
    )
    bench.add(
        "far_future",
        "signed a year after it was received",
        message,
        None,
        bad("timestamp_in_future"),
        at=NOON - 31_536_000,
    )
    if sender.time_in_body:
        field = b'"webhookTimestamp":%d123' % NOON
        without = replace(message, body=message.body.replace(field, b'"createdAt":%d123' % NOON))
        soon = replace(message, body=message.body.replace(field, b'"webhookTimestamp":"soon"'))
        later = replace(
            message, body=message.body.replace(field, b'"webhookTimestamp":%d123' % (NOON + 3600))
        )
        signed = bench.headers(message, bench.signature(message))
        bench.add(
            "altered_timestamp",
            "a fresh time on an old signature",
            later,
            signed,
            bad("signature_mismatch"),
            at=NOON + 3600,
        )
        unsigned = [
            *bench.headers(message),
            ("Linear-Timestamp", f"{NOON + 3600}123"),
            (sender.header, bench.signature(message)),
        ]
        bench.add(
            "unsigned_timestamp",
            "a fresh time in a header that is not signed",
            message,
            unsigned,
            bad("timestamp_expired"),
            at=NOON + 3600,
        )
    else:
        assert sender.time
        without, soon, later = message.at(None), message.at("soon"), message.at(sender.time(NOON + 3600))
        old = bench.headers(later, bench.signature(message))
        bench.add(
            "altered_timestamp",
            "a fresh time on an old signature",
            later,
            old,
            bad("signature_mismatch"),
            at=NOON + 3600,
        )
        twice(bench, message, later)
    right = bench.signature(message)
    bench.add(
        "missing_timestamp",
        "no time",
        without,
        None if sender.time_in_body else bench.headers(without, right),
        bad("timestamp_missing"),
    )
    bench.add("malformed_timestamp", "a time in words, and signed so", soon, None, bad("timestamp_malformed"))


def twice(bench: Bench, message: Message, later: Message) -> None:
    """The signature of an old time beside a fresh one: whichever is checked must be the one that is
    signed."""
    sender, right = bench.sender, bench.signature(message)
    if sender.time_header:
        assert later.time
        headers = [
            *bench.headers(message),
            (sender.time_header, later.time),
            (sender.header, sender.value([right], None)),
        ]
    else:
        first = sender.value([changed(right)], later.time)
        headers = [
            *bench.headers(message),
            (sender.header, first),
            (sender.header, sender.value([right], message.time)),
        ]
        separator = ";" if ";" in first else ","
        joined = sender.value([], later.time) + separator + sender.value([right], message.time)
        bench.add(
            "two_timestamps_in_one",
            "a fresh and an old time in one header",
            message,
            [*bench.headers(message), (sender.header, joined)],
            bad("timestamp_malformed"),
            at=NOON + 3600,
        )
    bench.add(
        "two_timestamps",
        "a fresh and an old time",
        message,
        headers,
        bad("timestamp_malformed"),
        at=NOON + 3600,
    )
