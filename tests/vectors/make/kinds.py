"""What is tried on every vendor. A kind that cannot apply to a vendor is left out."""

from dataclasses import replace
from typing import Any

import sdks
from signing import NOON, Headers, Message, Sender, bad, confirm, good, vector

YEAR = 31_536_000


class Bench:
    """Makes the vectors of one sender and has each confirmed."""

    def __init__(self, sender: Sender) -> None:
        self.sender = sender
        self.made: list[dict[str, Any]] = []

    def message(self, text: bytes = b"plain", *, second: int = NOON) -> Message:
        sender = self.sender
        time = sender.time(second) if sender.time else None
        return Message(sender.body(text, second), time, url=sender.public_url or "")

    def digest(self, message: Message, key: bytes | None = None) -> bytes:
        key = self.sender.key(self.sender.secret) if key is None else key
        return self.sender.sign(key, self.sender.signed(message))

    def signature(self, message: Message, key: bytes | None = None) -> str:
        return self.sender.encode(self.digest(message, key))

    def headers(self, message: Message, *signatures: str) -> Headers:
        """What is sent with the message. The last header is the signature's; without signatures there is
        none."""
        sender = self.sender
        headers = [("Content-Type", sender.content_type), *sender.others(message)]
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
        code: str = "",
        message: Message | None = None,
        headers: Headers | None = None,
        matched: str = "main",
        **more: Any,
    ) -> None:
        """``code``: why it is refused, empty where it is good."""
        sender = self.sender
        message = message or self.message()
        headers = self.headers(message, self.signature(message)) if headers is None else headers
        expect = bad(code) if code else good(matched)
        made = vector(
            kind, name, sender.secret, message, headers, expect, public_url=sender.public_url, **more
        )
        confirm(made, sender.sdk, sender.differences)
        self.made.append(made)


def changed(signature: str) -> str:
    """Another digest in the same form: the first character, because the last of base64 may carry no bits."""
    return ("a" if signature[0] != "a" else "b") + signature[1:]


def vectors(sender: Sender) -> list[dict[str, Any]]:
    bench = Bench(sender)
    message = bench.message()
    by_sdk = sdks.signed_by_sdk(sender.name, sender.secret, message.body, NOON)
    if by_sdk is not None and by_sdk != sender.value([bench.signature(message)], message.time):
        raise SystemExit(f"{sender.name}: the SDK signs {by_sdk}")
    if sender.inside:
        inside(bench)
        return bench.made
    secrets(bench)
    bodies(bench)
    signatures(bench)
    if sender.is_list:
        lists(bench)
    if sender.tolerance:
        times(bench)
    elif not sender.time_in_body:
        bench.add("late", "no timestamp is signed, so it is good a year later", at=NOON + YEAR)
    if sender.other_header:
        message = bench.message()
        *others, (_, value) = bench.headers(message, bench.signature(message))
        bench.add("alias_header", "the other header", headers=[*others, (sender.other_header, value)])
    if sender.tries_urls:
        urls(bench)
    return bench.made


def inside(bench: Bench) -> None:
    """The signature is a field of the body, and signs others."""
    sender, add = bench.sender, bench.add
    put = sender.inside
    assert put is not None and sender.time
    time = sender.time(NOON)

    def signed(key: bytes | None = None, text: bytes = b"plain", time: str = time) -> Message:
        message = Message(put(text, time, ""), time)
        return replace(message, body=put(text, time, bench.signature(message, key)))

    def of(kind: str, name: str, code: str, message: Message, **more: Any) -> None:
        add(kind, name, code, message, bench.headers(message), **more)

    right, second = signed(), {"second_secret": sender.second_secret}
    of_second = signed(sender.key(sender.second_secret))
    of("valid", "a genuine call", "", right)
    of("main_of_two", "the main secret while a second is set", "", right, **second)
    of("second_secret", "the second secret", "", of_second, matched="second", **second)
    of("wrong_secret", "somebody else's secret", "signature_mismatch", signed(sender.wrong_key))
    altered = replace(right, body=right.body.replace(b"plain", b"plaim"))
    of("altered_body", "a signed field is another", "signature_mismatch", altered)
    of("missing_signature", "no signature", "signature_missing", Message(put(b"plain", time, "")))
    of(
        "malformed_signature",
        "a signature in no encoding",
        "signature_malformed",
        Message(put(b"plain", time, "zz" * 32)),
    )
    of("not_json_body", "a body that is not JSON", "signature_missing", Message(b"plain"))
    if sender.tolerance:
        window = sender.tolerance
        of("stale", "received too late", "timestamp_expired", right, at=NOON + window + 2)
        of("edge_past", "received a second before it is too old", "", right, at=NOON + window - 1)
        of(
            "malformed_timestamp",
            "a time in words, and signed so",
            "timestamp_malformed",
            signed(time="soon"),
        )


def urls(bench: Bench) -> None:
    message, query = bench.message(), "id=1&b=%20"
    sent = bench.headers(message, bench.signature(message))

    def add(kind: str, name: str, code: str, of: Message, headers: Headers, public_url: str | None) -> None:
        sender = bench.sender
        expect = bad(code) if code else good()
        made = vector(kind, name, sender.secret, of, headers, expect, public_url=public_url)
        confirm(made, sender.sdk, sender.differences)
        bench.made.append(made)

    public = bench.sender.public_url or ""
    add("other_url", "another URL", "signature_mismatch", message, sent, "https://else.example/hooks")
    own = replace(message, url="https://hooks.example" + message.path)
    add("no_public_url", "the URL that was called", "", own, bench.headers(own, bench.signature(own)), None)
    asked = replace(message, query=query, url=f"{public}?{query}")
    signed = bench.headers(asked, bench.signature(asked))
    add("url_with_query", "a URL with a query", "", asked, signed, public)
    other = replace(asked, query="id=2&b=%20")
    add("altered_query", "another query", "signature_mismatch", other, signed, public)


def secrets(bench: Bench) -> None:
    sender, message, add = bench.sender, bench.message(), bench.add
    two = {"second_secret": sender.second_secret}

    def by(key: bytes) -> dict[str, Any]:
        return {"headers": bench.headers(message, bench.signature(message, key))}

    of_second = by(sender.key(sender.second_secret))
    add("valid", "a genuine call")
    add("main_of_two", "the main secret while a second is set", **two)
    add("second_secret", "the second secret", matched="second", **of_second, **two)
    add("second_secret_not_set", "the second secret where none is set", "signature_mismatch", **of_second)
    wrong = by(sender.wrong_key)
    add("wrong_secret", "somebody else's secret", "signature_mismatch", **wrong)
    add("wrong_secrets", "somebody else's secret where two are set", "signature_mismatch", **wrong, **two)
    if not sender.is_pair:
        add("empty_key", "signed with no secret at all", "signature_mismatch", **by(b""))
    if sender.wrong_reading:
        misread = by(sender.wrong_reading(sender.secret))
        name = "the secret read as a neighbouring scheme reads it"
        add("secret_misread", name, "signature_mismatch", **misread)


def bodies(bench: Bench) -> None:
    message, add = bench.message(), bench.add
    signed = bench.headers(message, bench.signature(message))

    def of(body: bytes) -> Message:
        return replace(message, body=body)

    altered, longer = of(message.body.replace(b"plain", b"plaim")), of(message.body + b"\n")
    add("altered_body", "one letter of the body is another", "signature_mismatch", altered, signed)
    name = "a newline came after the body was signed"
    add("body_with_more", name, "signature_mismatch", longer, signed)
    add("non_ascii_body", "a body beyond ASCII", "", bench.message("Grüße, 東京 🛒".encode()))
    add("not_utf8_body", "a body that is not UTF-8", "", bench.message(b"caf\xe9 \xff\xfe"))
    add("trailing_newline_body", "a body that ends in a newline", "", of(message.body + b"\r\n"))
    odd = message.body.replace(b'":', b'" :  ').replace(b"plain", rb"\u00e9 \/ 1.0")
    add("odd_json_body", "JSON that would be written differently if it were parsed", "", of(odd))
    if bench.sender.time_in_body:
        add("empty_body", "no body, so no signed time", "timestamp_missing", of(b""))
    else:
        add("empty_body", "no body", "", of(b""))


def signatures(bench: Bench) -> None:
    sender, message = bench.sender, bench.message()
    right = bench.signature(message)
    half = sender.encode(bench.digest(message)[:16])

    def value(signature: str) -> str:
        return sender.value([signature], message.time)

    good_one, wrong = value(right), value(changed(right))

    def add(kind: str, name: str, code: str, *values: str) -> None:
        headers = [*bench.headers(message), *((sender.header, one) for one in values)]
        bench.add(kind, name, code, headers=headers)

    add("altered_signature", "one digit of the signature is another", "signature_mismatch", wrong)
    add("missing_signature", "no signature", "signature_missing")
    add("empty_signature", "an empty signature header", "signature_missing", "")
    add("half_signature", "only the first half of the digest", sender.half_code, value(half))
    add("malformed_signature", "a signature in no encoding", "signature_malformed", value(sender.malformed))
    add("latin1_signature", "a signature of bytes beyond ASCII", "signature_malformed", value("é" * 64))
    sent = [*bench.headers(message), (sender.header, good_one)]
    capitals = [(name.upper(), text) for name, text in sent]
    bench.add("header_case", "header names in capitals", headers=capitals)
    add("repeated_right_last", "two signature headers, the second is right", "", wrong, good_one)
    add("repeated_right_first", "two signature headers, the first is right", "", good_one, wrong)
    add("repeated_wrong", "two signature headers, none is right", "signature_mismatch", wrong, wrong)
    if sender.foreign_alone:
        name = "only a signature of another version"
        add("other_scheme", name, "signature_malformed", sender.foreign_alone)
        bare = right if sender.time_header or not sender.time else f"t={message.time},{right}"
        add("no_prefix", "the signature without what goes before it", "signature_malformed", bare)
    if sender.id_header:
        without = [header for header in sent if header[0] != sender.id_header]
        bench.add("missing_id", "the signed id is not sent", "signature_malformed", headers=without)
        other = [(name, "msg_other" if name == sender.id_header else text) for name, text in sent]
        bench.add("altered_id", "the signed id is another", "signature_mismatch", headers=other)


def lists(bench: Bench) -> None:
    sender, message = bench.sender, bench.message()
    right = bench.signature(message)
    wrong = changed(right)

    def add(kind: str, name: str, code: str, *values: str, **more: Any) -> None:
        bench.add(kind, name, code, headers=bench.headers(message, *values), **more)

    add("list_right_last", "two signatures in one header, the second is right", "", wrong, right)
    add("list_right_first", "two signatures in one header, the first is right", "", right, wrong)
    add("list_wrong", "two signatures in one header, none is right", "signature_mismatch", wrong, wrong)
    keys = sender.wrong_key, sender.key(sender.second_secret)
    both = [bench.signature(message, key) for key in keys]
    two = {"second_secret": sender.second_secret, "matched": "second"}
    add("list_second_secret", "two signatures, one by the second secret", "", *both, **two)
    separator = sender.separator
    *others, (name, text) = bench.headers(message, right)
    more = [*others, (name, f"{text}{separator}{sender.foreign_items}")]
    bench.add("list_with_other_items", "items of another version besides", headers=more)


def times(bench: Bench) -> None:
    sender, message, add = bench.sender, bench.message(), bench.add
    window, fresh = sender.tolerance, NOON + 3600
    right = bench.signature(message)
    add("edge_past", "received a second before it is too old", at=NOON + window - 1)
    add("edge_future", "signed as far ahead as is allowed", at=NOON - window + 1)
    add("stale", "received too late", "timestamp_expired", at=NOON + window + 2)
    add("very_stale", "received a year later", "timestamp_expired", at=NOON + YEAR)
    add("future", "signed later than it was received", "timestamp_in_future", at=NOON - window - 2)
    add("far_future", "signed a year after it was received", "timestamp_in_future", at=NOON - YEAR)
    if sender.time_in_body:
        field = b'"webhookTimestamp":%d123' % NOON

        def instead(text: bytes) -> Message:
            return replace(message, body=message.body.replace(field, text))

        without, soon = instead(b'"createdAt":%d123' % NOON), instead(b'"webhookTimestamp":"soon"')
        later, old = instead(b'"webhookTimestamp":%d123' % fresh), bench.headers(message, right)
    else:
        assert sender.time
        without, soon, later = message.at(None), message.at("soon"), message.at(sender.time(fresh))
        old = bench.headers(later, right)
    name = "a fresh time on an old signature"
    add("altered_timestamp", name, "signature_mismatch", later, old, at=fresh)
    if sender.time_in_body:
        header = ("Linear-Timestamp", f"{fresh}123")
        unsigned = [*bench.headers(message), header, (sender.header, right)]
        name = "a fresh time in a header that is not signed"
        add("unsigned_timestamp", name, "timestamp_expired", headers=unsigned, at=fresh)
    else:
        twice(bench, message, later, fresh)
    headers = None if sender.time_in_body else bench.headers(without, right)
    code = "timestamp_malformed" if sender.by_place else "timestamp_missing"
    add("missing_timestamp", "no time", code, without, headers)
    add("malformed_timestamp", "a time in words, and signed so", "timestamp_malformed", soon)


def twice(bench: Bench, message: Message, later: Message, fresh: int) -> None:
    """The signature of an old time beside a fresh one: whichever is checked must be the one that is
    signed."""
    sender, right, plain = bench.sender, bench.signature(message), bench.headers(message)
    if sender.time_header:
        assert later.time
        headers = [*plain, (sender.time_header, later.time), (sender.header, sender.value([right], None))]
    else:
        first = sender.value([changed(right)], later.time)
        headers = [*plain, (sender.header, first), (sender.header, sender.value([right], message.time))]
        separator = ";" if ";" in first else ","
        joined = sender.value([], later.time) + separator + sender.value([right], message.time)
        if sender.by_place:  # the second is no time, by its place
            bench.add(
                "two_timestamps", "a fresh and an old time", "timestamp_malformed", headers=headers, at=fresh
            )
            return
        bench.add(
            "two_timestamps_in_one",
            "a fresh and an old time in one header",
            "timestamp_malformed",
            headers=[*plain, (sender.header, joined)],
            at=fresh,
        )
    bench.add("two_timestamps", "a fresh and an old time", "timestamp_malformed", headers=headers, at=fresh)
