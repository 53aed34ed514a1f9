"""The vendors with a preset: how each of them signs, said a second time and independently of the
preset."""

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import format_datetime

import sdks
from signing import Message, Sender, in_base64, in_hex

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
        foreign_items="v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==",
        foreign_alone="v2,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
        time_header="webhook-timestamp",
        id_header="webhook-id",
        wrong_reading=literal,
        sdk=sdks.STANDARD,
    ),
]
for sender in SENDERS:
    if sender.encode is in_base64:
        sender.malformed = "!not*base64~at(all)"
