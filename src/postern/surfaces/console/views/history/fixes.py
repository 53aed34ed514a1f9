"""Fixes of one click for rejected calls, by the reason of the rejection."""

from msgspec import Struct

from postern.core.calls.content import LARGEST_PAYLOAD_LIMIT
from postern.core.documents import Patch
from postern.core.problems import Refused
from postern.core.signatures.handshake import ASKS_TO_CONFIRM
from postern.usecases.history.views.calls import Invocation
from postern.usecases.webhooks.views import Webhook

SUBSCRIPTION = "subscription"


class Fix(Struct, frozen=True):
    kind: str
    label: str
    help: str
    patch: Patch
    """The change to the webhook."""


def fix_for(item: Invocation, webhook: Webhook | None) -> Fix | None:
    if webhook is not None and item.status == "handshake" and item.detail == ASKS_TO_CONFIRM:
        help = "Do it only if you subscribed this webhook to that topic."
        return Fix(SUBSCRIPTION, "Confirm the subscription", help, {})
    if webhook is None or item.status != "rejected":
        return None
    match item.code:
        case "webhook_disabled" if not webhook.enabled:
            return Fix("enable", "Enable the webhook", "It is disabled.", {"enabled": True})
        case "ip_not_allowed" if item.address not in webhook.ip_allowlist:
            allowed = [*webhook.ip_allowlist, item.address]
            help = "Adds this address to the allowlist."
            return Fix("allow-address", f"Allow {item.address}", help, {"ipAllowlist": allowed})
        case "origin_not_allowed":
            origin = next((value for name, value in item.headers if name == "origin"), "")
            if origin and origin not in webhook.cors.origins:
                cors = {"enabled": True, "origins": [*webhook.cors.origins, origin]}
                return Fix(
                    "allow-origin", f"Allow {origin}", "Adds this site to the CORS list.", {"cors": cors}
                )
        case "payload_too_large" if _may_fit(_promised(item), webhook.payload_limit_bytes):
            doubled = min(webhook.payload_limit_bytes * 2, LARGEST_PAYLOAD_LIMIT)
            help = f"Up to {LARGEST_PAYLOAD_LIMIT // 1024**2} MiB can be accepted."
            return Fix("raise-limit", "Double the payload limit", help, {"payloadLimitBytes": doubled})
    return None


def _promised(item: Invocation) -> int | None:
    """The size that was announced. A body of any other kind was not read further than the limit at that time."""
    written = next((value for name, value in item.headers if name == "content-length"), "")
    return int(written) if written.isdecimal() and len(written) < 20 else None


def _may_fit(size: int | None, limit: int) -> bool:
    """After the limit was raised, and not before."""
    return limit < LARGEST_PAYLOAD_LIMIT and (size is None or limit < size <= LARGEST_PAYLOAD_LIMIT)


def patch_of(kind: str, item: Invocation, webhook: Webhook) -> Patch:
    fix = fix_for(item, webhook)
    if fix is None or fix.kind != kind:
        raise Refused(
            "not_found", "There is nothing left to put right: the webhook has been changed meanwhile."
        )
    return fix.patch
