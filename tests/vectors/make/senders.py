"""The vendors with a preset: how each of them signs, said a second time and independently of the
preset."""

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any
from unicodedata import normalize
from urllib.parse import parse_qsl

import sdks
from signing import Message, Sender, hmac_by, in_base64, in_hex, pair

NO_EMPTY_BODY = {"empty_body": "it takes an empty body for a missing one"}
PAST_ONLY = {"future": "it looks at the past side only", "far_future": "it looks at the past side only"}


def body_only(message: Message) -> bytes:
    return message.body


def time_dot_body(message: Message) -> bytes:
    return f"{message.time}.".encode() + message.body


def id_time_body(message: Message) -> bytes:
    return f"{message.id}.{message.time}.".encode() + message.body


def key_value(key: str, time_key: str = "t", separator: str = ",") -> Callable[[list[str], str | None], str]:
    def value(signatures: list[str], time: str | None) -> str:
        items = [] if time is None else [f"{time_key}={time}"]
        return separator.join(items + [f"{key}={signature}" for signature in signatures])

    return value


def prefixed(prefix: str, separator: str = "") -> Callable[[list[str], str | None], str]:
    return lambda signatures, time: separator.join(prefix + signature for signature in signatures)


def decoded(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix("whsec_"))


def literal(secret: str) -> bytes:
    return secret.encode()


def iso(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def http_date(second: int) -> str:
    return format_datetime(datetime.fromtimestamp(second, UTC), usegmt=True)


SENDERS = [
    Sender(
        "shopify",
        "hush_1f0c3d5b7a9e",
        "hush_next_99aa",
        "X-Shopify-Hmac-Sha256",
        in_base64,
        body_only,
        others=lambda message: [
            ("X-Shopify-Topic", "orders/create"),
            ("X-Shopify-Shop-Domain", "example.myshopify.com"),
            ("X-Shopify-API-Version", "2026-10"),
            ("X-Shopify-Webhook-Id", "b54557e4"),
            ("X-Shopify-Event-Id", "98880550"),
        ],
        sdk=sdks.SHOPIFY,
        differences=NO_EMPTY_BODY,
    ),
    Sender(
        "woocommerce",
        "wc }{$^ secret & more",
        "wc second",
        "X-WC-Webhook-Signature",
        in_base64,
        body_only,
        others=lambda message: [
            ("X-WC-Webhook-Topic", "order.created"),
            ("X-WC-Webhook-Delivery-ID", "31bbf1ef"),
        ],
    ),
    Sender(
        "bigcommerce",
        "2b0f3c1e5d7a9f8b6c4d2e0f1a3b5c7d9e8f6a4b2c0d1e3f5a7b9c8d6e4f2a0b",
        "cafe3c1e5d7a9f8b6c4d2e0f1a3b5c7d9e8f6a4b2c0d1e3f5a7b9c8d6e4f2a0b",
        "webhook-signature",
        in_base64,
        id_time_body,
        value=prefixed("v1,", " "),
        time=str,
        tolerance=300,
        is_list=True,
        separator=" ",
        foreign_items="v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==",
        foreign_alone="v2,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
        time_header="webhook-timestamp",
        id_header="webhook-id",
        wrong_reading=decoded,
        sdk=sdks.BIGCOMMERCE,
    ),
    Sender(
        "stripe",
        "whsec_R3lTYW1wbGVTZWNyZXRGb3JTdHJpcGU5OTk5",
        "whsec_bmV4dA8",
        "Stripe-Signature",
        in_hex,
        time_dot_body,
        value=key_value("v1"),
        time=str,
        tolerance=300,
        is_list=True,
        foreign_items="v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39",
        foreign_alone="t=1700000000,v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39",
        wrong_reading=decoded,
        sdk=sdks.STRIPE,
        differences=PAST_ONLY,
    ),
    Sender(
        "square",
        "asdf1234qwerSquareKey_",
        "zxcv5678",
        "x-square-hmacsha256-signature",
        in_base64,
        lambda message: message.url.encode() + message.body,
        public_url="https://shop.example/hooks/square",
        sdk=sdks.SQUARE,
        differences=NO_EMPTY_BODY,
    ),
    Sender(
        "paddle",
        "pdl_ntfset_01hwxyz_s3cr3t/+=",
        "pdl_ntfset_01hwxyz_second",
        "Paddle-Signature",
        in_hex,
        lambda message: f"{message.time}:".encode() + message.body,
        value=key_value("h1", "ts", ";"),
        time=str,
        tolerance=5,
        is_list=True,
        separator=";",
        foreign_items="h2=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39",
        foreign_alone="ts=1700000000;h2=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39",
        sdk=sdks.PADDLE,
        differences={"list_with_other_items": "it throws on keys it does not know"},
    ),
    Sender(
        "lemonsqueezy",
        "squeezy-secret",
        "squeezy-next",
        "X-Signature",
        in_hex,
        body_only,
        others=lambda message: [("X-Event-Name", "order_created")],
    ),
    Sender(
        "razorpay",
        "rzp hook secret",
        "rzp hook next",
        "X-Razorpay-Signature",
        in_hex,
        body_only,
        others=lambda message: [("X-Razorpay-Event-Id", "evt_77")],
        sdk=sdks.RAZORPAY,
    ),
    Sender(
        "recharge",
        "shpss_recharge_client_secret",
        "recharge_next",
        "X-Recharge-Webhook-Signature",
        in_hex,
        time_dot_body,
        value=key_value("v1"),
        time=str,
        tolerance=172_800,
        is_list=True,
        foreign_items="v2=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39",
        foreign_alone="t=1700000000,v2=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39",
    ),
    Sender(
        "klaviyo",
        "klaviyo-secret-16chars",
        "klaviyo-secret-second",
        "Klaviyo-Signature",
        in_hex,
        lambda message: message.body + (message.time or "").encode(),
        time=http_date,
        tolerance=300,
        time_header="Klaviyo-Timestamp",
        others=lambda message: [("Klaviyo-Webhook-Id", "the-subscription")],
    ),
    Sender(
        "aftership",
        "aftership-webhook-secret",
        "aftership-next",
        "aftership-hmac-sha256",
        in_base64,
        body_only,
    ),
    Sender(
        "hubspot",
        "11111111-2222-3333-4444-555555555555",
        "99999999-2222-3333-4444-555555555555",
        "X-HubSpot-Signature-v3",
        in_base64,
        lambda message: (
            f"{message.method}{message.url}".encode() + message.body + (message.time or "").encode()
        ),
        body=lambda text, time: (
            b'[{"eventId":100,"subscriptionType":"contact.creation","attemptNumber":0,"note":"'
            + text
            + b'"}]'
        ),
        time=lambda second: f"{second}123",
        tolerance=300,
        time_header="X-HubSpot-Request-Timestamp",
        public_url="https://shop.example/hooks/hubspot",
        sdk=sdks.HUBSPOT,
        differences=PAST_ONLY,
    ),
    Sender(
        "zendesk",
        "dGhpc19zZWNyZXRfaXNfZm9yX3Rlc3Rpbmdfb25seQ==",
        "c2Vjb25kX3NlY3JldA==",
        "X-Zendesk-Webhook-Signature",
        in_base64,
        lambda message: (message.time or "").encode() + message.body,
        time=iso,
        tolerance=300,
        time_header="X-Zendesk-Webhook-Signature-Timestamp",
        others=lambda message: [("X-Zendesk-Webhook-Invocation-Id", "01FE8Q9XS5")],
        wrong_reading=decoded,
    ),
    Sender(
        "typeform",
        "typeform-secret",
        "typeform-next",
        "Typeform-Signature",
        in_base64,
        body_only,
        value=prefixed("sha256="),
        foreign_alone="sha1=2jmj7l5rSw0yVb/vlWAYkK/YBwk=",
    ),
    Sender(
        "calendly",
        "5mEzn9C-I28UtwOjZJtFoob0sAAFZ95GbZkqj4y3i0I",
        "calendly-next",
        "Calendly-Webhook-Signature",
        in_hex,
        time_dot_body,
        value=key_value("v1"),
        time=str,
        tolerance=180,
        is_list=True,
        foreign_items="v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39",
        foreign_alone="t=1700000000,v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39",
    ),
    Sender(
        "slack",
        "8f742231b10e8888abcd99yyyzzz85a5",
        "slack-next-0000",
        "X-Slack-Signature",
        in_hex,
        lambda message: f"v0:{message.time}:".encode() + message.body,
        value=prefixed("v0="),
        time=str,
        tolerance=300,
        time_header="X-Slack-Request-Timestamp",
        foreign_alone="v1=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39",
        sdk=sdks.SLACK,
    ),
    Sender(
        "meta",
        "0123456789abcdef0123456789abcdef",
        "fedcba9876543210fedcba9876543210",
        "X-Hub-Signature-256",
        in_hex,
        body_only,
        value=prefixed("sha256="),
        body=lambda text, time: (
            b'{"object":"page","entry":[{"changes":[{"value":{"text":"'
            + text
            + b'","url":"https:\\/\\/example.com"}}]}]}'
        ),
        foreign_alone="sha1=f3cdb3e8b7bd0a6ac0a7d1b4a9a6d7b4e5a3c0f1",
    ),
    Sender(
        "github",
        "It's a Secret to Everybody",
        "Another Secret",
        "X-Hub-Signature-256",
        in_hex,
        body_only,
        value=prefixed("sha256="),
        others=lambda message: [
            ("X-GitHub-Event", "push"),
            ("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958"),
        ],
        foreign_alone="sha1=f3cdb3e8b7bd0a6ac0a7d1b4a9a6d7b4e5a3c0f1",
        sdk=sdks.GITHUB,
        differences=NO_EMPTY_BODY,
    ),
    Sender(
        "linear",
        "lin_wh_0123456789ABCDEF",
        "lin_wh_second",
        "Linear-Signature",
        in_hex,
        body_only,
        body=lambda text, time: (
            b'{"action":"create","type":"Issue","webhookTimestamp":%d123,"note":"%b"}' % (time, text)
        ),
        time_in_body=True,
        tolerance=60,
        others=lambda message: [
            ("Linear-Event", "Issue"),
            ("Linear-Delivery", "234d1a4e-b617-4388-90fe-adc3633d6b72"),
        ],
        sdk=sdks.LINEAR,
    ),
    Sender(
        "xero",
        "OSd0eLlVIY9ZhViEqlDUh4+6n6M+Lo+eDaEJheJ6OCCgWwIz2D3JIAU6jPMipHRbgKTLz2uJ+xiACXGDBLrgdA==",
        "c2Vjb25kIHhlcm8ga2V5",
        "x-xero-signature",
        in_base64,
        body_only,
        wrong_reading=decoded,
    ),
    Sender(
        "quickbooks",
        "c5d6e7f8-verifier-token",
        "b1b2b3b4-verifier-token",
        "intuit-signature",
        in_base64,
        body_only,
        others=lambda message: [("intuit-notification-id", "n-1")],
    ),
    Sender(
        "standardwebhooks",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
        "webhook-signature",
        in_base64,
        id_time_body,
        value=prefixed("v1,", " "),
        key=decoded,
        time=str,
        tolerance=300,
        is_list=True,
        separator=" ",
        foreign_items="v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==",
        foreign_alone="v2,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
        time_header="webhook-timestamp",
        id_header="webhook-id",
        wrong_reading=literal,
        sdk=sdks.STANDARD,
    ),
]


def milliseconds(second: int) -> str:
    return f"{second}123"


def sha1(name: str, secret: str, header: str, **more: Any) -> Sender:
    return Sender(
        name,
        secret,
        f"{secret}-next",
        header,
        more.pop("encode", in_hex),
        more.pop("signed", body_only),
        sign=hmac_by("sha1"),
        **more,
    )


def of_body(name: str, header: str, secret: str = "a-secret-of-this-sender", **more: Any) -> Sender:
    """The most common: a digest of the body."""
    return Sender(name, secret, f"{secret}-next", header, more.pop("encode", in_hex), body_only, **more)


def with_prefix(prefix: str) -> dict[str, Any]:
    return {"value": prefixed(prefix), "foreign_alone": "v9=6ffbb59b2300aae63f272406069a9788"}


def of_pair(
    name: str, kind: str, header: str, encode: Callable[[bytes], str], signed: Any, **more: Any
) -> Sender:
    files = {"ed25519": "ed25519", "ecdsa": "p256", "rsa": "rsa"}[kind]
    sign, keys = pair(kind, *(f"{files}-{number}" for number in (1, 2, 3)))
    main, second, other = keys
    return Sender(
        name,
        main,
        second,
        header,
        encode,
        signed,
        key=keys.__getitem__,
        sign=sign,
        is_pair=True,
        wrong_key=keys[other],
        **more,
    )


def like_stripe(name: str, header: str, secret: str, **more: Any) -> Sender:
    """``t=…,v1=…`` over the time, a dot and the body."""
    foreign = "v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39"
    return Sender(
        name,
        secret,
        f"{secret}-next",
        header,
        more.pop("encode", in_hex),
        time_dot_body,
        is_list=True,
        foreign_items=foreign,
        foreign_alone=f"t=1700000000,{foreign}",
        **{"value": key_value("v1"), "time": str, "tolerance": 300} | more,
    )


def standard(name: str, prefix: str, sdk: Any = None, differences: Any = None) -> Sender:
    """Standard Webhooks, under the names that this sender gives its headers."""
    return Sender(
        name,
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
        f"{prefix}-signature",
        in_base64,
        id_time_body,
        value=prefixed("v1,", " "),
        key=decoded,
        time=str,
        tolerance=300,
        is_list=True,
        separator=" ",
        foreign_items="v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==",
        foreign_alone="v2,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
        time_header=f"{prefix}-timestamp",
        id_header=f"{prefix}-id",
        wrong_reading=literal,
        sdk=sdk,
        differences=differences or {},
    )


def time_body(message: Message) -> bytes:
    return (message.time or "").encode() + message.body


def twilio_form(message: Message) -> bytes:
    text = message.body.decode("latin-1")
    pairs = sorted(set(parse_qsl(text, keep_blank_values=True, encoding="latin-1")))
    return message.url.encode() + "".join(name + value for name, value in pairs).encode("latin-1")


def adyen_fields(message: Message) -> bytes:
    fields = json.loads(message.body)["notificationItems"][0]["NotificationRequestItem"]
    fields |= fields["amount"]
    names = "pspReference originalReference merchantAccountCode merchantReference value currency eventCode success"
    return ":".join(str(fields[name]) for name in names.split()).encode()


def adyen_body(text: bytes, time: str, signature: str) -> bytes:
    return json.dumps({"live": "false", "notificationItems": [{"NotificationRequestItem": {
        "additionalData": {"hmacSignature": signature}, "amount": {"currency": "EUR", "value": 1130},
        "eventCode": "AUTHORISATION", "merchantAccountCode": "TestMerchant", "merchantReference": text.decode(),
        "originalReference": "", "pspReference": "7914073381342284", "success": "true"}}]}).encode()  # fmt: skip


def mailgun_body(text: bytes, time: str, signature: str) -> bytes:
    about = {"timestamp": time, "token": text.decode(), "signature": signature}
    return json.dumps({"signature": about, "event-data": {"event": "delivered"}}).encode()


def mailgun_fields(message: Message) -> bytes:
    about = json.loads(message.body)["signature"]
    return (about["timestamp"] + about["token"]).encode()


ONE_OF_TWO = "it looks for two parts, and no more"
NOT_A_LIST = dict.fromkeys(("list_right_last", "list_second_secret"), ONE_OF_TWO)
BARE = {"no_prefix": "it takes the signature without what goes before it"}
TWILIO = "https://shop.example/hooks/twilio"

SENDERS += [
    sha1(
        "intercom",
        "5c7e3b21-client-secret",
        "X-Hub-Signature",
        value=prefixed("sha1="),
        foreign_alone="sha256=" + "6f" * 32,
    ),
    sha1("segment", "segment shared secret", "X-Signature"),
    sha1("vercel", "vercel-webhook-secret", "x-vercel-signature"),
    sha1(
        "twilio",
        "12345f0e2b9a4d6c8e7f0a1b2c3d4e5f",
        "X-Twilio-Signature",
        encode=in_base64,
        signed=twilio_form,
        body=lambda text, time: b"CallSid=CA1&From=%2B14158675310&Body=" + text + b"&Body=again&Empty=",
        content_type="application/x-www-form-urlencoded; charset=UTF-8",
        public_url=TWILIO,
        tries_urls=True,
        sdk=sdks.TWILIO,
    ),
    Sender(
        "recurly",
        "recurly-endpoint-secret",
        "recurly-next-secret",
        "recurly-signature",
        in_hex,
        time_dot_body,
        value=lambda signatures, time: ",".join([*([] if time is None else [time]), *signatures]),
        time=milliseconds,
        tolerance=300,
        is_list=True,
        by_place=True,
        foreign_items="nothing",
    ),
    of_pair(
        "discord",
        "ed25519",
        "X-Signature-Ed25519",
        in_hex,
        time_body,
        time=str,
        tolerance=900,
        time_header="X-Signature-Timestamp",
        sdk=sdks.DISCORD,
        differences=dict.fromkeys(
            ("stale", "very_stale", "future", "far_future", "malformed_timestamp"), "it looks at no time"
        ),
    ),
    of_pair(
        "sendgrid",
        "ecdsa",
        "X-Twilio-Email-Event-Webhook-Signature",
        in_base64,
        time_body,
        body=lambda text, time: b'[{"event":"delivered","note":"' + text + b'"}]',
        half_code="signature_mismatch",
        time=str,
        tolerance=90_000,
        time_header="X-Twilio-Email-Event-Webhook-Timestamp",
        sdk=sdks.SENDGRID,
        differences=dict.fromkeys(
            ("stale", "very_stale", "future", "far_future", "malformed_timestamp"), "it looks at no time"
        ),
    ),
    of_pair("wise", "rsa", "X-Signature-SHA256", in_base64, body_only),
    Sender(
        "paystack",
        "sk_test_0123456789abcdef",
        "sk_test_next",
        "x-paystack-signature",
        in_hex,
        body_only,
        sign=hmac_by("sha512"),
        malformed="zz" * 64,
    ),
    Sender(
        "zoom",
        "zoom-secret-token",
        "zoom-next",
        "x-zm-signature",
        in_hex,
        lambda message: f"v0:{message.time}:".encode() + message.body,
        time=str,
        tolerance=300,
        time_header="x-zm-request-timestamp",
        **with_prefix("v0="),
    ),
    Sender(
        "twitch",
        "s3cre77890ab",
        "s3cre7-next",
        "Twitch-Eventsub-Message-Signature",
        in_hex,
        lambda message: (message.id + (message.time or "")).encode() + message.body,
        time=iso,
        tolerance=600,
        time_header="Twitch-Eventsub-Message-Timestamp",
        id_header="Twitch-Eventsub-Message-Id",
        **with_prefix("sha256="),
    ),
    of_body("dropbox", "X-Dropbox-Signature"),
    of_body("asana", "X-Hook-Signature"),
    of_body(
        "notion",
        "X-Notion-Signature",
        "secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl",
        **with_prefix("sha256="),
    ),
    Sender(
        "box",
        "SamplePrimaryKey",
        "SampleSecondaryKey",
        "BOX-SIGNATURE-PRIMARY",
        in_base64,
        lambda message: message.body + (message.time or "").encode(),
        time=iso,
        tolerance=600,
        time_header="BOX-DELIVERY-TIMESTAMP",
        other_header="BOX-SIGNATURE-SECONDARY",
    ),
    Sender(
        "airtable",
        "c2VjcmV0IG9mIHRoZSB3ZWJob29r",
        "YW5vdGhlciBzZWNyZXQgb2YgaXQ=",
        "X-Airtable-Content-MAC",
        in_hex,
        body_only,
        key=base64.b64decode,
        wrong_reading=literal,
        **with_prefix("hmac-sha256="),
    ),
    of_body("docusign", "X-DocuSign-Signature-1", encode=in_base64),
    of_body("sentry", "Sentry-Hook-Signature"),
    of_body(
        "pagerduty",
        "X-PagerDuty-Signature",
        value=prefixed("v1=", ","),
        is_list=True,
        foreign_items="v0=" + "6f" * 32,
        foreign_alone="v0=" + "6f" * 32,
    ),
    of_body(
        "circleci",
        "circleci-signature",
        value=prefixed("v1=", ","),
        is_list=True,
        foreign_items="v2=" + "6f" * 32,
        foreign_alone="v2=" + "6f" * 32,
    ),
    of_body("jira", "X-Hub-Signature", **with_prefix("sha256=")),
    of_body("bitbucket", "X-Hub-Signature", **with_prefix("sha256=")),
    like_stripe(
        "workos",
        "WorkOS-Signature",
        "workos-endpoint-secret",
        value=key_value("v1", separator=", "),
        time=milliseconds,
        tolerance=180,
        sdk=sdks.WORKOS,
        differences=NOT_A_LIST | {"list_right_first": ONE_OF_TWO, "list_with_other_items": ONE_OF_TWO},
    ),
    Sender(
        "adyen",
        "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056",
        "DFB1EB5485895CFA84146406857104ABB4CBCABDC8AAF103A624C8F6A3EAAB00",
        "unused",
        in_base64,
        adyen_fields,
        key=bytes.fromhex,
        time=str,
        time_in_body=True,
        inside=adyen_body,
        sdk=sdks.ADYEN,
    ),
    Sender(
        "mailgun",
        "mailgun-signing-key",
        "mailgun-next-key",
        "unused",
        in_hex,
        mailgun_fields,
        time=str,
        time_in_body=True,
        tolerance=32_400,
        inside=mailgun_body,
    ),
    of_body("line", "x-line-signature", encode=in_base64, sdk=sdks.LINE),
    of_body("mollie", "X-Mollie-Signature", sdk=sdks.MOLLIE, differences=BARE, **with_prefix("sha256=")),
    standard("clerk", "svix", sdks.SVIX),
    standard("resend", "svix", sdks.SVIX),
    standard("openai", "webhook", sdks.OPENAI, BARE),
    standard("gitlab", "webhook", sdks.STANDARD),
    of_body("gocardless", "Webhook-Signature", sdk=sdks.GOCARDLESS),
    of_body(
        "easypost",
        "X-Hmac-Signature",
        "sécret",
        key=lambda secret: normalize("NFKD", secret).encode(),
        sdk=sdks.EASYPOST,
        differences={"empty_body": "it parses the body, too"},
        **with_prefix("hmac-sha256-hex="),
    ),
    Sender(
        "webflow",
        "webflow-secret-key",
        "webflow-next",
        "x-webflow-signature",
        in_hex,
        lambda message: f"{message.time}:".encode() + message.body,
        time=milliseconds,
        tolerance=300,
        time_header="x-webflow-timestamp",
    ),
    like_stripe(
        "sanity",
        "sanity-webhook-signature",
        "sanity-secret",
        encode=lambda digest: base64.urlsafe_b64encode(digest).decode().rstrip("="),
        time=milliseconds,
        tolerance=3600,
    ),
    of_body("x", "x-twitter-webhooks-signature", encode=in_base64, **with_prefix("sha256=")),
    sha1(
        "trello",
        "6f3e7d5c9b1a2f4e8d0c6b5a3f2e1d9c8b7a6f5e4d3c2b1a0f9e8d7c6b5a4f3e",
        "X-Trello-Webhook",
        encode=in_base64,
        signed=lambda message: message.body + message.url.encode(),
        public_url="https://shop.example/hooks/trello",
        tries_urls=True,
    ),
    of_body("tally", "Tally-Signature", encode=in_base64),
    of_body("heroku", "Heroku-Webhook-Hmac-SHA256", encode=in_base64),
    like_stripe("mux", "Mux-Signature", "mux-signing-secret"),
]
for sender in SENDERS:
    if sender.encode is in_base64:
        sender.malformed = "!not*base64~at(all)"
