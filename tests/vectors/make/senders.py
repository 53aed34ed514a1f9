"""The vendors with a preset: how each of them signs, said a second time and independently of the preset, in
``senders.toml``. Only what differs from the most common way is said there."""

import base64
import json
import tomllib
from collections.abc import Callable
from hashlib import sha1
from typing import Any
from unicodedata import normalize
from urllib.parse import parse_qsl, urlencode

import sdks
from signing import HERE, Message, Sender, hmac_by, http_date, in_base64, in_hex, iso, pair

PAIRS = {"ed25519": "ed25519", "ecdsa": "p256", "rsa": "rsa"}
ENCODINGS: dict[str, Callable[[bytes], str]] = {
    "hex": in_hex,
    "base64": in_base64,
    "base64url": lambda digest: base64.urlsafe_b64encode(digest).decode().rstrip("="),
}
KEYS: dict[str, Callable[[str], bytes]] = {
    "text": lambda secret: secret.encode(),
    "base64": lambda secret: base64.b64decode(secret.removeprefix("whsec_")),
    "hex": bytes.fromhex,
    "nfkd": lambda secret: normalize("NFKD", secret).encode(),
    "sha1": lambda secret: sha1(secret.encode()).digest(),
}
TIMES: dict[str, Callable[[int], str]] = {
    "unix": str,
    "unix_ms": lambda second: f"{second}123",
    "iso8601": iso,
    "http_date": http_date,
}
ONE_OF_TWO = "it looks for two parts, and no more"
TIMED = ("stale", "very_stale", "future", "far_future", "malformed_timestamp")
DIFFERENCES = {
    "no_empty_body": {"empty_body": "it takes an empty body for a missing one"},
    "past_only": dict.fromkeys(("future", "far_future"), "it looks at the past side only"),
    "not_a_list": dict.fromkeys(("list_right_last", "list_second_secret"), ONE_OF_TWO),
    "bare": {"no_prefix": "it takes the signature without what goes before it"},
    "no_time": dict.fromkeys(TIMED, "it looks at no time"),
}


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


def braintree_body(text: bytes, time: str, signature: str) -> bytes:
    signed = {"bt_signature": f"public_key|{signature}"} if signature else {}
    return urlencode(signed | {"bt_payload": f"PD94{text.decode()}\n"}).encode()


def braintree_payload(message: Message) -> bytes:
    return dict(parse_qsl(message.body.decode()))["bt_payload"].encode()


FUNCTIONS: dict[str, Any] = {
    one.__name__: one
    for one in (
        *(twilio_form, adyen_fields, adyen_body, mailgun_body, mailgun_fields),
        *(braintree_body, braintree_payload),
    )
}


def written(template: str) -> Callable[[Message], bytes]:
    """What is signed. The body goes in last: it may hold braces of its own."""

    def of(message: Message) -> bytes:
        text = template
        for name in ("id", "time", "url", "method"):
            text = text.replace(f"{{{name}}}", getattr(message, name) or "")
        return text.encode().replace(b"{body}", message.body)

    return of


def valued(item: str, time_item: str, joiner: str) -> Callable[[list[str], str | None], str]:
    """The header's value, of its signatures and the time."""

    def of(signatures: list[str], time: str | None) -> str:
        timed = [time_item.replace("{time}", time)] if time is not None and time_item else []
        return joiner.join(timed + [item.replace("{signature}", one) for one in signatures])

    return of


def body_of(template: str) -> Callable[[bytes, int], bytes]:
    return lambda text, time: template.replace("{time}", str(time)).encode().replace(b"{text}", text)


def sender_of(name: str, row: dict[str, Any]) -> Sender:
    how: dict[str, Any] = {}
    if kind := row.pop("pair", None):
        sign, keys = pair(kind, *(f"{PAIRS[kind]}-{number}" for number in (1, 2, 3)))
        main, second, other = keys
        how |= {"key": keys.__getitem__, "sign": sign, "is_pair": True, "wrong_key": keys[other]}
    else:
        main, second = row.pop("secrets")
        how |= {"key": KEYS[row.pop("key", "text")], "sign": hmac_by(row.pop("digest", "sha256"))}
    encoding, signed = row.pop("encoding", "hex"), row.pop("signed", "{body}")
    if encoding == "base64":
        how["malformed"] = "!not*base64~at(all)"
    if "time" in row:
        how["time"] = TIMES[row.pop("time")]
    if "misread" in row:
        how["wrong_reading"] = KEYS[row.pop("misread")]
    if "body" in row:
        how["body"] = body_of(row.pop("body"))
    if "inside" in row:
        how["inside"] = FUNCTIONS[row.pop("inside")]
    if "sdk" in row:
        how["sdk"] = getattr(sdks, row.pop("sdk"))
    others = list(row.pop("others", {}).items())
    differences = row.pop("differences", {})
    for kind in row.pop("differs_by", ()):
        differences |= DIFFERENCES[kind]
    item, time_item = row.pop("item", "{signature}"), row.pop("time_item", "")
    joiner = row.pop("joiner", row.get("separator", ","))
    return Sender(
        name, main, second, row.pop("header"), ENCODINGS[encoding], FUNCTIONS.get(signed) or written(signed),
        value=valued(item, time_item, joiner), others=lambda message: others, differences=differences,
        **how | row,
    )  # fmt: skip


def read() -> list[Sender]:
    rows = tomllib.loads((HERE / "senders.toml").read_text("utf-8"))
    for row in rows.values():
        if "like" in row:
            row |= rows[row.pop("like")] | row
    return [sender_of(name, row) for name, row in rows.items()]


SENDERS = read()
