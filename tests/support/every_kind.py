"""A request for each kind of webhook: every way to prove who is calling, and every setting once."""

import base64
from functools import cache
from typing import Any

from postern import presets
from postern.core.signatures.algorithms import is_shared
from postern.core.signatures.keys.public import new_private_key

SECRET = "a secret of 0123456789"


def _token(**settings: Any) -> dict[str, Any]:
    return {"authentication": {"method": "token", "token": "whk_0123456789", **settings}}


def _hmac(provider: str, **settings: Any) -> dict[str, Any]:
    return {"authentication": {"method": "hmac", "provider": provider, "secret": SECRET, **settings}}


@cache
def secret_of(name: str) -> str:
    """Returns a secret that this sender may have: of a pair of keys the private half, with which test calls can be
    signed."""
    scheme = presets.get(name).scheme
    if not is_shared(scheme.algorithm):
        return new_private_key(scheme.algorithm)
    raw = SECRET.encode()
    encoded = {"base64": base64.b64encode(raw).decode(), "hex": raw.hex()}
    return scheme.secret_prefix + encoded.get(scheme.secret_encoding, SECRET)


def _of_sender(name: str) -> dict[str, Any]:
    preset = presets.get(name)
    more: dict[str, Any] = {"publicUrl": "https://hooks.example.com/webhook/abc"} if preset.signs_url else {}
    more["secret"] = secret_of(name)
    if name == "meta":
        more["verifyToken"] = "the verify token"
    return _hmac(name, **more)


SCHEME = {
    "signature": "header:X-Shop-Signature",
    "itemSeparator": ",",
    "keySeparator": "=",
    "signatureKey": "v1",
    "signedContent": "{timestamp}.{header:X-Shop-Id}.{body}",
    "timestamp": "item:t",
    "deliveryId": "header:X-Shop-Id",
    "encoding": "hex",
}
REQUESTS: list[dict[str, Any]] = [
    {"authentication": {"method": "none"}},
    _token(headerName="X-Shop-Key", secondToken="whk_9876543210"),
    _token(placement="bearer"),
    _token(placement="basic", username="shop", token="pass:word é"),
    _token(placement="url", parameterName="key"),
    _token(token={"generate": True}),
    *(_of_sender(name) for name in presets.names()),
    _hmac("custom", toleranceSeconds=600, scheme=SCHEME, secondSecret="another secret of 0123456789"),
    _hmac("stripe", secret={"generate": True}),
    {"fieldMapping": {"fieldOne": "order.number", "fieldFour": "items[0].sku"}},
    {"duplicateProtection": {"enabled": True, "key": "header:X-Event-Id", "windowSeconds": 604800}},
    {"cors": {"enabled": True, "origins": ["https://shop.example.com", "https://*.example.org"]}},
    {"ipAllowlist": ["203.0.113.0/24", "2001:db8::/32", "192.0.2.7"], "enabled": False},
    {"payloadLimitBytes": 100, "rateLimit": {"callsPerSecond": 0.5, "burst": 20}},
    {"historyRetentionDays": 3650, "bodyRetentionDays": 3000, "folder": "Shops", "tags": ["orders", "eu"]},
    {"synchronousResponse": {"enabled": True, "timeoutSeconds": 12.5}},
    {
        "schedule": {
            "url": "https://api.example.com/orders",
            "every": "1h",
            "headers": {"Authorization": "Bearer poll-0123456789"},
            "onlyWhenChanged": True,
            "splitArray": True,
        }
    },
    {
        "schedule": {
            "url": "https://api.example.com/orders",
            "cron": "30 6 * * 1-5",
            "timeZone": "Europe/Berlin",
        }
    },
]
