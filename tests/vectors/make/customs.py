"""Senders without a preset: what a custom scheme must be able to say."""

import base64
import hashlib
import json
from dataclasses import replace
from typing import Any

import sdks
from published import (
    BOX_BODY,
    BOX_PRIMARY,
    BOX_SECONDARY,
    PAGERDUTY_BODY,
    PAGERDUTY_SECRET,
    PAGERDUTY_SIGNATURE,
)
from signing import (
    NOON,
    Confirmation,
    Headers,
    Message,
    bad,
    confirm,
    good,
    hmac_sha256,
    in_base64,
    in_base64url,
    in_hex,
    vector,
)

BODY = '{"event":"order.paid","note":"Grüße"}'.encode()
Scheme = dict[str, Any]


class Custom:
    """The vectors of one sender and its scheme."""

    def __init__(
        self,
        made: list[dict[str, Any]],
        sender: str,
        scheme: Scheme,
        secret: str,
        *,
        by: Confirmation | None = None,
    ) -> None:
        self.made, self.sender, self.scheme, self.secret, self.by = made, sender, scheme, secret, by

    def add(
        self, name: str, headers: Headers, expect: dict[str, Any], body: bytes = BODY, **more: Any
    ) -> None:
        message = more.pop("message", Message(body))
        source, by = more.pop("published", None), more.pop("by", self.by)
        made = vector(
            "custom",
            f"{self.sender}: {name}",
            self.secret,
            message,
            headers,
            expect,
            more={"scheme": self.scheme},
            **more,
        )
        confirm(made, by, {})
        if source:
            made["made_with"] = f"published example: {source}"
        self.made.append(made)


def custom() -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for one in (
        box,
        zoom,
        twitch,
        sanity,
        mollie,
        docusign,
        mailgun,
        adyen,
        adyen_payments,
        airtable,
        pagerduty,
        mercado_pago,
        ripple,
    ):
        one(made)
    return made


def box(made: list[dict[str, Any]]) -> None:
    scheme = {
        "signature": ["header:BOX-SIGNATURE-PRIMARY", "header:BOX-SIGNATURE-SECONDARY"],
        "encoding": "base64",
        "signedContent": "{body}{timestamp}",
        "timestamp": "header:BOX-DELIVERY-TIMESTAMP",
        "timestampFormat": "iso8601",
        "toleranceSeconds": 600,
        "deliveryId": ["header:BOX-DELIVERY-ID"],
    }
    box, at = Custom(made, "Box", scheme, "SamplePrimaryKey"), 1_577_862_001.0
    time = ("BOX-DELIVERY-TIMESTAMP", "2020-01-01T00:00:00-07:00")
    primary, secondary = ("BOX-SIGNATURE-PRIMARY", BOX_PRIMARY), ("BOX-SIGNATURE-SECONDARY", BOX_SECONDARY)
    source = "Box's documentation and SDK tests"
    second = {"second_secret": "SampleSecondaryKey"}
    box.add("both signatures, one key", [time, primary, secondary], good(), BOX_BODY, at=at, published=source)
    box.add(
        "only the secondary signature",
        [time, secondary],
        good("second"),
        BOX_BODY,
        at=at,
        published=source,
        **second,
    )
    box.add(
        "a wrong primary beside the secondary",
        [time, (primary[0], BOX_SECONDARY), secondary],
        good("second"),
        BOX_BODY,
        at=at,
        published=source,
        **second,
    )
    box.add(
        "another time in another zone",
        [("BOX-DELIVERY-TIMESTAMP", "2020-01-01T07:00:00Z"), primary],
        bad("signature_mismatch"),
        BOX_BODY,
        at=at,
    )
    box.add("too late", [time, primary], bad("timestamp_expired"), BOX_BODY, at=at + 601)


def zoom(made: list[dict[str, Any]]) -> None:
    scheme = {
        "signature": "header:x-zm-signature",
        "keySeparator": "=",
        "signatureKey": "v0",
        "signedContent": "v0:{timestamp}:{body}",
        "timestamp": "header:x-zm-request-timestamp",
    }
    zoom = Custom(made, "Zoom", scheme, "zoom-secret-token")
    right = in_hex(hmac_sha256(b"zoom-secret-token", f"v0:{NOON}:".encode() + BODY))
    headers = [("x-zm-request-timestamp", str(NOON)), ("x-zm-signature", f"v0={right}")]
    zoom.add("a genuine call", headers, good())
    zoom.add(
        "the body written anew", headers, bad("signature_mismatch"), json.dumps(json.loads(BODY)).encode()
    )
    zoom.add("the usual tolerance, a second too late", headers, bad("timestamp_expired"), at=NOON + 301)


def twitch(made: list[dict[str, Any]]) -> None:
    scheme = {
        "signature": "header:Twitch-Eventsub-Message-Signature",
        "keySeparator": "=",
        "signatureKey": "sha256",
        "signedContent": "{id}{timestamp}{body}",
        "timestamp": "header:Twitch-Eventsub-Message-Timestamp",
        "timestampFormat": "iso8601",
        "toleranceSeconds": 600,
        "deliveryId": "header:Twitch-Eventsub-Message-Id",
    }
    twitch, time = (
        Custom(made, "Twitch", scheme, "5f1a6e7cd2e7137ccf9e15b2f43fe63949eb84b1db83c1d5a867dc93429de4e4"),
        "2023-11-14T22:13:20.634234626Z",
    )
    right = in_hex(hmac_sha256(twitch.secret.encode(), f"e76c6bd4{time}".encode() + BODY))
    headers = [
        ("Twitch-Eventsub-Message-Id", "e76c6bd4"),
        ("Twitch-Eventsub-Message-Timestamp", time),
        ("Twitch-Eventsub-Message-Signature", f"sha256={right}"),
    ]
    twitch.add("a time in nanoseconds", headers, good())
    twitch.add("too late", headers, bad("timestamp_expired"), at=NOON + 602)
    twitch.add("the id is not sent", headers[1:], bad("signature_malformed"))


def sanity(made: list[dict[str, Any]]) -> None:
    scheme = {
        "signature": "header:sanity-webhook-signature",
        "itemSeparator": ",",
        "keySeparator": "=",
        "signatureKey": "v1",
        "encoding": "base64url",
        "signedContent": "{timestamp}.{body}",
        "timestamp": "item:t",
        "timestampFormat": "unix_ms",
        "toleranceSeconds": 300,
        "deliveryId": "header:idempotency-key",
    }
    sanity = Custom(made, "Sanity", scheme, "sanity-secret", by=sdks.SANITY)
    for number in range(40):
        # Until both characters by which base64url differs are in the signature.
        body = BODY.replace(b"paid", b"paid %d" % number)
        value = f"t={NOON}000,v1={in_base64url(hmac_sha256(b'sanity-secret', f'{NOON}000.'.encode() + body))}"
        if "-" in value and "_" in value:
            break
    if sdks.signed_by_sdk("sanity", sanity.secret, body, NOON) != value:
        raise SystemExit("Sanity signs otherwise")
    sanity.add("base64url without padding", [("sanity-webhook-signature", value)], good(), body)
    sanity.add(
        "an altered body", [("sanity-webhook-signature", value)], bad("signature_mismatch"), body + b" "
    )
    sanity.add(
        "too late",
        [("sanity-webhook-signature", value)],
        bad("timestamp_expired"),
        body,
        at=NOON + 301,
        by=None,
    )


def mollie(made: list[dict[str, Any]]) -> None:
    scheme = {
        "signature": "header:X-Mollie-Signature",
        "keySeparator": "=",
        "signatureKey": "sha256",
        "deliveryId": "body:id",
    }
    mollie = Custom(made, "Mollie", scheme, "mollie-new", by=sdks.MOLLIE)
    new = ("X-Mollie-Signature", "sha256=" + in_hex(hmac_sha256(b"mollie-new", BODY)))
    old = ("X-Mollie-Signature", "sha256=" + in_hex(hmac_sha256(b"mollie-old", BODY)))
    mollie.add("one header", [new], good())
    mollie.add("two headers while the secret changes, the old one first", [old, new], good())
    mollie.add("two headers while the secret changes, the new one first", [new, old], good())
    mollie.add("only the old secret's", [old], bad("signature_mismatch"))
    mollie.add(
        "only the old secret's, which is the second", [old], good("second"), second_secret="mollie-old"
    )


def docusign(made: list[dict[str, Any]]) -> None:
    docusign = Custom(
        made,
        "DocuSign",
        {"signature": "header:X-DocuSign-Signature-*", "encoding": "base64"},
        "docusign-key-3",
    )
    body = (
        b"<DocuSignEnvelopeInformation>\r\n  <Status>Completed</Status>\r\n</DocuSignEnvelopeInformation>\r\n"
    )
    headers = [
        (f"X-DocuSign-Signature-{number}", in_base64(hmac_sha256(f"docusign-key-{number}".encode(), body)))
        for number in (1, 2, 3)
    ]
    docusign.add("one header for each key, ours is the third", headers, good(), body)
    docusign.add("none of them is ours", headers[:2], bad("signature_mismatch"), body)
    docusign.add("other line endings", headers, bad("signature_mismatch"), body.replace(b"\r\n", b"\n"))
    docusign.add("no such header", [("X-DocuSign-Digest", headers[2][1])], bad("signature_missing"), body)


def mailgun(made: list[dict[str, Any]]) -> None:
    scheme = {
        "signature": "body:signature.signature",
        "signedContent": "{bodyfield:signature.timestamp}{bodyfield:signature.token}",
        "timestamp": "body:signature.timestamp",
        "toleranceSeconds": 300,
        "deliveryId": "body:signature.token",
    }
    mailgun = Custom(made, "Mailgun", scheme, "key-mailgun")
    right = in_hex(hmac_sha256(b"key-mailgun", f"{NOON}a8ce0edb2dd8301dee6c2405235584e4".encode()))

    def body(token: str, signature: str, event: str = "delivered") -> bytes:
        return json.dumps(
            {
                "signature": {"timestamp": str(NOON), "token": token, "signature": signature},
                "event-data": {"event": event},
            }
        ).encode()

    genuine = body("a8ce0edb2dd8301dee6c2405235584e4", right)
    mailgun.add("the signature is in the body", [], good(), genuine)
    mailgun.add("too late", [], bad("timestamp_expired"), genuine, at=NOON + 301)
    mailgun.add(
        "another token", [], bad("signature_mismatch"), body("b8ce0edb2dd8301dee6c2405235584e4", right)
    )
    mailgun.add("no signature in the body", [], bad("signature_missing"), b'{"event-data":{}}')
    mailgun.add("a body that is not JSON", [], bad("signature_missing"), b"signature=1")


ADYEN_KEY = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"


def adyen(made: list[dict[str, Any]]) -> None:
    scheme = {"signature": "header:HmacSignature", "encoding": "base64", "secretEncoding": "hex"}
    adyen = Custom(made, "Adyen", scheme, ADYEN_KEY, by=sdks.ADYEN)
    adyen.add(
        "a key in hex", [("HmacSignature", in_base64(hmac_sha256(bytes.fromhex(ADYEN_KEY), BODY)))], good()
    )
    adyen.add(
        "the key taken literally",
        [("HmacSignature", in_base64(hmac_sha256(ADYEN_KEY.encode(), BODY)))],
        bad("signature_mismatch"),
    )


def adyen_payments(made: list[dict[str, Any]]) -> None:
    item = "notificationItems.0.NotificationRequestItem"
    names = (
        "pspReference",
        "originalReference",
        "merchantAccountCode",
        "merchantReference",
        "amount.value",
        "amount.currency",
        "eventCode",
        "success",
    )
    scheme = {
        "signature": f"body:{item}.additionalData.hmacSignature",
        "encoding": "base64",
        "secretEncoding": "hex",
        "signedContent": ":".join(f"{{bodyfield:{item}.{name}}}" for name in names),
    }
    adyen = Custom(made, "Adyen payments", scheme, ADYEN_KEY, by=sdks.ADYEN_PAYMENTS)
    content = "7914073381342284::TestMerchant:TestPayment-1407325143704:1130:EUR:AUTHORISATION:true"

    def body(value: int) -> bytes:
        request = {
            "additionalData": {
                "hmacSignature": in_base64(hmac_sha256(bytes.fromhex(ADYEN_KEY), content.encode()))
            },
            "amount": {"currency": "EUR", "value": value},
            "eventCode": "AUTHORISATION",
            "merchantAccountCode": "TestMerchant",
            "merchantReference": "TestPayment-1407325143704",
            "pspReference": "7914073381342284",
            "success": "true",
        }
        return json.dumps(
            {"live": "false", "notificationItems": [{"NotificationRequestItem": request}]}
        ).encode()

    adyen.add("eight fields of the body", [], good(), body(1130))
    adyen.add("another amount", [], bad("signature_mismatch"), body(1131))


def airtable(made: list[dict[str, Any]]) -> None:
    scheme = {
        "signature": "header:X-Airtable-Content-MAC",
        "keySeparator": "=",
        "signatureKey": "hmac-sha256",
        "secretEncoding": "base64",
    }
    airtable = Custom(made, "Airtable", scheme, "aEYDZRTJOnXNtHrdeqoqMBGdNhvg")
    right = in_hex(hmac_sha256(base64.b64decode(airtable.secret), BODY))
    airtable.add("a key in base64", [("X-Airtable-Content-MAC", f"hmac-sha256={right}")], good())


def pagerduty(made: list[dict[str, Any]]) -> None:
    scheme = {
        "signature": "header:X-PagerDuty-Signature",
        "itemSeparator": ",",
        "keySeparator": "=",
        "signatureKey": "v1",
        "deliveryId": "body:event.id",
    }
    pagerduty, source = Custom(made, "PagerDuty", scheme, PAGERDUTY_SECRET), "tests of PagerDuty's Go SDK"
    name, other = (
        "X-PagerDuty-Signature",
        "v1=7020c8a7ec668a9b7012bc3dd82e483394b038f4230acc6785efbf2a7d8bcaf5",
    )
    pagerduty.add("its own example", [(name, PAGERDUTY_SIGNATURE)], good(), PAGERDUTY_BODY, published=source)
    pagerduty.add(
        "its own example of a mismatch",
        [(name, other)],
        bad("signature_mismatch"),
        PAGERDUTY_BODY,
        published=source,
    )
    pagerduty.add(
        "both in a list with a blank",
        [(name, f"{other}, {PAGERDUTY_SIGNATURE}")],
        good(),
        PAGERDUTY_BODY,
        published=source,
    )


def mercado_pago(made: list[dict[str, Any]]) -> None:
    scheme = {
        "signature": "header:x-signature",
        "itemSeparator": ",",
        "keySeparator": "=",
        "signatureKey": "v1",
        "signedContent": "id:{query:data.id};request-id:{header:x-request-id};ts:{timestamp};",
        "timestamp": "item:ts",
        "timestampFormat": "unix_ms",
        "toleranceSeconds": 300,
    }
    mercado = Custom(made, "Mercado Pago", scheme, "mp-secret")
    right = in_hex(hmac_sha256(b"mp-secret", f"id:123456;request-id:bb56a2f1;ts:{NOON}000;".encode()))
    headers = [("x-request-id", "bb56a2f1"), ("x-signature", f"ts={NOON}000,v1={right}")]
    message = replace(Message(BODY), query="data.id=123456&type=payment")
    mercado.add("a query parameter and a header are signed", headers, good(), message=message)
    mercado.add(
        "another query parameter",
        headers,
        bad("signature_mismatch"),
        message=replace(message, query="data.id=123457&type=payment"),
    )
    mercado.add("no query parameter", headers, bad("signature_malformed"), message=replace(message, query=""))


def ripple(made: list[dict[str, Any]]) -> None:
    scheme = {
        "signature": "header:X-Ripple-Signature",
        "signedContent": "{timestamp}.{body_sha256}",
        "timestamp": "header:X-Ripple-Timestamp",
    }
    ripple = Custom(made, "Ripple", scheme, "ripple-key")
    right = in_hex(hmac_sha256(b"ripple-key", f"{NOON}.{hashlib.sha256(BODY).hexdigest()}".encode()))
    headers = [("X-Ripple-Timestamp", str(NOON)), ("X-Ripple-Signature", right)]
    ripple.add("the digest of the body is signed", headers, good())
    ripple.add("an altered body", headers, bad("signature_mismatch"), BODY + b" ")
