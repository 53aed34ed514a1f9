"""The generic scheme: the values of the X-Webhook-* headers in the order of their names, one a line, are
signed."""

import hashlib
from typing import Any

from signing import NOON, Headers, Message, bad, good, hmac_sha256, in_base64, in_hex, vector

SECRET = "whsec_Z2VuZXJpYyBzZWNyZXQ="
SECOND = "the-second-one"
BODY = '{"order":{"number":"1001"},"note":"é"}'.encode()
MESSAGE = Message(BODY)
ID_AND_TIME = [("X-Webhook-Id", "evt_1"), ("X-Webhook-Timestamp", str(NOON))]


def digest(lines: str, secret: str = SECRET) -> bytes:
    return hmac_sha256(secret.encode(), lines.encode("latin-1"))


def signed(headers: Headers, lines: str, secret: str = SECRET) -> Headers:
    return [("Content-Type", "application/json"), *headers, ("X-Signature", in_hex(digest(lines, secret)))]


def generic() -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []

    def add(
        kind: str,
        name: str,
        headers: Headers,
        expect: dict[str, Any],
        message: Message = MESSAGE,
        strict: bool = False,
        **more: Any,
    ) -> None:
        extra = {"require_timestamp_and_digest": True} if strict else None
        made.append(vector(kind, name, SECRET, message, headers, expect, more=extra, **more))

    lines = f"evt_1\n{NOON}"
    right = in_hex(digest(lines))
    body_sha256 = hashlib.sha256(BODY).hexdigest()
    with_digest = [("X-Webhook-Content-SHA256", body_sha256), *ID_AND_TIME]
    digest_lines = f"{body_sha256}\n{lines}"
    genuine = signed(ID_AND_TIME, lines)
    mismatch = bad("signature_mismatch")

    add("valid", "an id and a time", genuine, good())
    add("order", "the headers in another order on the wire", signed(ID_AND_TIME[::-1], lines), good())
    add("header_case", "header names in capitals", [(name.upper(), text) for name, text in genuine], good())
    add(
        "one_header",
        "one header of any name",
        signed([("X-Webhook-Event", "order paid")], "order paid"),
        good(),
    )
    add(
        "trimmed",
        "blanks around a value are not signed",
        signed([("X-Webhook-Event", "  order paid\t")], "order paid"),
        good(),
    )
    add(
        "in_base64",
        "the signature in base64",
        [*ID_AND_TIME, ("X-Signature", in_base64(digest(lines)))],
        good(),
    )
    add(
        "in_capitals", "the signature in hex capitals", [*ID_AND_TIME, ("X-Signature", right.upper())], good()
    )
    add("non_ascii_header", "a value beyond ASCII", signed([("X-Webhook-Event", "Grüße")], "Grüße"), good())
    add(
        "no_timestamp",
        "no time is sent, so there is none to check",
        signed(ID_AND_TIME[:1], "evt_1"),
        good(),
        at=NOON + 31_536_000,
    )
    add(
        "any_body",
        "without a digest the body is not covered",
        genuine,
        good(),
        Message(b'{"another":"body"}'),
    )
    add("empty_body", "no body", genuine, good(), Message(b""))
    of_second = signed(ID_AND_TIME, lines, SECOND)
    add("main_of_two", "the main secret while a second is set", genuine, good(), second_secret=SECOND)
    add("second_secret", "the second secret", of_second, good("second"), second_secret=SECOND)
    add("second_secret_not_set", "the second secret where none is set", of_second, mismatch)
    add("wrong_secret", "somebody else's secret", signed(ID_AND_TIME, lines, "somebody-else"), mismatch)
    add("empty_key", "signed with no secret at all", signed(ID_AND_TIME, lines, ""), mismatch)
    wrong = "0" * 64
    add(
        "repeated_right_last",
        "two signature headers, the second is right",
        [*ID_AND_TIME, ("X-Signature", wrong), ("X-Signature", right)],
        good(),
    )
    add(
        "repeated_wrong",
        "two signature headers, none is right",
        [*ID_AND_TIME, ("X-Signature", wrong), ("X-Signature", wrong)],
        mismatch,
    )
    add(
        "altered_signature",
        "one digit of the signature is another",
        [*ID_AND_TIME, ("X-Signature", f"{int(right[0], 16) ^ 1:x}{right[1:]}")],
        mismatch,
    )
    add("missing_signature", "no signature", ID_AND_TIME, bad("signature_missing"))
    add(
        "malformed_signature",
        "a signature in no encoding",
        [*ID_AND_TIME, ("X-Signature", "zz" * 32)],
        bad("signature_malformed"),
    )
    add(
        "latin1_signature",
        "a signature of bytes beyond ASCII",
        [*ID_AND_TIME, ("X-Signature", "é" * 64)],
        bad("signature_malformed"),
    )
    add(
        "half_signature",
        "only the first half of the digest",
        [*ID_AND_TIME, ("X-Signature", right[:32])],
        bad("signature_malformed"),
    )
    add("altered_id", "another id", [("X-Webhook-Id", "evt_2"), genuine[2], genuine[3]], mismatch)
    moved = signed([("X-Webhook-Id", "evt_1"), ("X-Webhook-Item", "7x")], "evt_17x")
    add("run_together", "values signed without the line break between them", moved, mismatch)
    add(
        "in_wire_order",
        "values signed in the order of the wire",
        signed(ID_AND_TIME[::-1], f"{NOON}\nevt_1"),
        mismatch,
    )
    add("header_added", "a header came after it was signed", [*genuine, ("X-Webhook-Extra", "1")], mismatch)
    add("header_removed", "a signed header is gone", [genuine[1], genuine[3]], mismatch)
    add(
        "nothing_signed",
        "no X-Webhook header, so nothing is signed",
        signed([], ""),
        bad("signature_malformed"),
    )
    twice = signed([*ID_AND_TIME, ("X-Webhook-Id", "evt_1")], f"evt_1\nevt_1\n{NOON}")
    add("header_twice", "one name twice", twice, bad("signature_malformed"))
    of_body = [*ID_AND_TIME, ("X-Signature", in_hex(hmac_sha256(SECRET.encode(), BODY)))]
    add("body_signed", "the body signed instead of the headers", of_body, mismatch)

    add("digest", "the digest of the body", signed(with_digest, digest_lines), good())
    digest64 = in_base64(bytes.fromhex(body_sha256))
    in_64 = signed([("X-Webhook-Content-SHA256", digest64), *ID_AND_TIME], f"{digest64}\n{lines}")
    add("digest_in_base64", "the digest of the body in base64", in_64, good())
    add(
        "altered_body",
        "another body than the digest's",
        signed(with_digest, digest_lines),
        mismatch,
        Message(BODY + b"\n"),
    )
    not_one = signed([("X-Webhook-Content-SHA256", "none"), *ID_AND_TIME], f"none\n{lines}")
    add("malformed_digest", "a digest that is none", not_one, bad("signature_malformed"))

    add("edge_past", "received a second before it is too old", genuine, good(), at=NOON + 299)
    add("edge_future", "signed as far ahead as is allowed", genuine, good(), at=NOON - 299)
    add("stale", "received too late", genuine, bad("timestamp_expired"), at=NOON + 302)
    add("future", "signed later than it was received", genuine, bad("timestamp_in_future"), at=NOON - 302)
    soon = signed([("X-Webhook-Id", "evt_1"), ("X-Webhook-Timestamp", "soon")], "evt_1\nsoon")
    add("malformed_timestamp", "a time in words, and signed so", soon, bad("timestamp_malformed"))

    add(
        "strict",
        "time and digest are required and sent",
        signed(with_digest, digest_lines),
        good(),
        strict=True,
    )
    add(
        "strict_missing_timestamp",
        "the required time is not sent",
        signed(with_digest[:2], f"{body_sha256}\nevt_1"),
        bad("timestamp_missing"),
        strict=True,
    )
    add(
        "strict_missing_digest",
        "the required digest is not sent",
        genuine,
        bad("signature_malformed"),
        strict=True,
    )
    return made
