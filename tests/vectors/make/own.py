"""What is tried on one vendor alone: its aliases, its neighbours' headers, its URLs, and what it publishes
itself."""

import hashlib
from dataclasses import replace
from typing import Any

import sdks
from kinds import Bench
from published import PUBLISHED
from senders import SHOPIFY_HEADERS
from signing import NOON, Sender, bad, good, in_base64, in_hex, vector


def vectors(sender: Sender) -> list[dict[str, Any]]:
    bench = Bench(sender)
    if sender.name in _OWN:
        _OWN[sender.name](bench)
    for published in PUBLISHED:
        if published.provider == sender.name:
            made = vector(
                "published",
                published.name,
                published.secret,
                published.message,
                published.headers,
                good(),
                at=published.at,
            )
            made["made_with"] = f"published example: {published.source}"
            if sender.sdk and sender.sdk.ask(made) is not True:
                raise SystemExit(f"{published.name}: refused by {sender.sdk.name}")
            bench.made.append(made)
    return bench.made


def _alias(bench: Bench, name: str, header: str, **more: Any) -> None:
    message = bench.message()
    signed = [*bench.headers(message), (header, bench.signature(message))]
    bench.add("alias_header", name, message, signed, good(), **more)


def _neighbour(bench: Bench, name: str, header: str, value: str) -> None:
    message = bench.message()
    bench.add(
        "neighbour_header",
        name,
        message,
        [*bench.headers(message), (header, value)],
        bad("signature_missing"),
    )


def _shopify(bench: Bench) -> None:
    message = bench.message()
    family = [(name.removeprefix("X-"), text) for name, text in SHOPIFY_HEADERS]
    ids = [("Shopify-Webhook-Id", "b54557e4"), ("Shopify-Event-Id", "98880550")]
    signed = [*family, *ids, ("Shopify-Hmac-Sha256", bench.signature(message))]
    bench.add("alias_header", "the header family without X-", message, signed, good())


def _aftership(bench: Bench) -> None:
    _alias(bench, "Returns and Warranty use another header", "as-signature-hmac-sha256")


def _standardwebhooks(bench: Bench) -> None:
    message = bench.message()
    headers = [
        (name.replace("webhook-", "svix-"), text)
        for name, text in bench.headers(message, bench.signature(message))
    ]
    bench.add("alias_header", "the svix- header family", message, headers, good(), by=sdks.SVIX)
    bare = bench.sender.secret.removeprefix("whsec_")
    bench.add("secret_without_prefix", "the secret pasted without whsec_", message, None, good(), secret=bare)


def _hub(bench: Bench) -> None:
    message = bench.message()
    right = f"sha256={bench.signature(message)}"
    _neighbour(bench, "a SHA-256 signature in the SHA-1 header", "X-Hub-Signature", right)


def _recharge(bench: Bench) -> None:
    message = bench.message()
    secret = bench.sender.secret.encode()
    plain_hash = hashlib.sha256(secret + message.body).hexdigest()
    _neighbour(bench, "only the old header, which is no HMAC", "X-Recharge-Hmac-Sha256", plain_hash)
    wrong = [*bench.headers(message, "0" * 64), ("X-Recharge-Hmac-Sha256", plain_hash)]
    bench.add(
        "neighbour_rescue",
        "the old header beside a wrong signature",
        message,
        wrong,
        bad("signature_mismatch"),
    )
    late = [
        *bench.headers(message, bench.signature(message)),
        ("X-Recharge-Webhook-Timestamp", str(NOON + 200_000)),
    ]
    bench.add(
        "unsigned_timestamp",
        "a fresh time in a header that is not signed",
        message,
        late,
        bad("timestamp_expired"),
        at=NOON + 200_000,
    )


def _hubspot(bench: Bench) -> None:
    sender, message = bench.sender, bench.message()
    for version, content in (("", message.body), ("v2", f"POST{message.url}".encode() + message.body)):
        plain_hash = hashlib.sha256(sender.secret.encode() + content).hexdigest()
        name = f"only the signature of version {version or 'v1'}, which is no HMAC"
        _neighbour(bench, name, "X-HubSpot-Signature", plain_hash)
    _urls(bench)
    asked = "name=a%20b%26c&next=https%3A%2F%2Fshop.example%2F%3Fq%3D1%40x%2C%28y%29"
    known = "name=a%20b%26c&next=https://shop.example/?q%3D1@x,(y)"
    signed = replace(message, url=f"{sender.public_url}?{known}", query=asked)
    bench.add(
        "url_escapes", "twelve escapes of the URL are decoded, the others stay", signed, None, good(), by=None
    )


def _square(bench: Bench) -> None:
    _urls(bench)
    message = replace(
        bench.message(), url="https://shop.example/hooks/square?shop=1&x=%20", query="shop=1&x=%20"
    )
    bench.add(
        "url_as_typed",
        "the URL as it was typed, query string included",
        message,
        None,
        good(),
        public_url=message.url,
    )


def _urls(bench: Bench) -> None:
    message = bench.message()
    other = {"public_url": "https://shop.example/hooks/other"}
    headers = bench.headers(message, bench.signature(message))
    bench.add("other_url", "signed for another URL", message, headers, bad("signature_mismatch"), **other)
    here = replace(message, url=f"https://hooks.example{message.path}")
    bench.add(
        "no_public_url",
        "no public URL is set, and the sender calls this one",
        here,
        None,
        good(),
        public_url=None,
    )
    query = replace(message, url=f"{message.url}?a=1&b=%C3%A9+", query="a=1&b=%C3%A9+")
    bench.add("url_with_query", "a query string is part of the URL", query, None, good())
    without = replace(query, query="a=2&b=%C3%A9+")
    headers = bench.headers(query, bench.signature(query))
    bench.add(
        "altered_query",
        "another query string than the one signed",
        without,
        headers,
        bad("signature_mismatch"),
    )


def _slack(bench: Bench) -> None:
    form = replace(
        bench.message(),
        body=b"token=xyz&command=%2Fweather&text=94070+%C3%A9&response_url=https%3A%2F%2Fhooks.example",
    )
    bench.add("form_body", "a form", form, None, good())


def _github(bench: Bench) -> None:
    _hub(bench)
    form = replace(bench.message(), body=b"payload=%7B%22zen%22%3A%22Keep+it+logically+awesome.%22%7D")
    bench.add("form_body", "a form with the payload in one field", form, None, good())


def _linear(bench: Bench) -> None:
    message = bench.message()
    other = replace(message, body=b"[1,2]")
    bench.add("not_an_object", "a body that is JSON and has no fields", other, None, bad("timestamp_missing"))
    torn = replace(message, body=message.body[:-5])
    bench.add("torn_body", "a body that breaks off, and is signed so", torn, None, bad("timestamp_missing"))


def _encodings(bench: Bench) -> None:
    message = bench.message()
    other = in_hex if bench.sender.encode is in_base64 else in_base64
    headers = bench.headers(message, other(bench.digest(message)))
    bench.add(
        "other_encoding", "the right digest in another encoding", message, headers, bad("signature_malformed")
    )


def _with_encoding(*more: Any) -> Any:
    def run(bench: Bench) -> None:
        _encodings(bench)
        for one in more:
            one(bench)

    return run


_OWN = {
    "shopify": _with_encoding(_shopify),
    "woocommerce": _encodings,
    "aftership": _with_encoding(_aftership),
    "standardwebhooks": _standardwebhooks,
    "meta": _with_encoding(_hub),
    "github": _github,
    "recharge": _recharge,
    "hubspot": _hubspot,
    "square": _square,
    "slack": _slack,
    "linear": _linear,
    "lemonsqueezy": _encodings,
    "razorpay": _encodings,
    "xero": _encodings,
    "quickbooks": _encodings,
}
