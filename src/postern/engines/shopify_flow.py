"""Shopify Flow: a start is one ``flowTriggerReceive``, and Flow itself fans it out to the workflows that use
the trigger.

Flow takes no idempotency key: a start that is sent again because its answer was lost runs the workflows
again.
"""

import re
import time
from collections.abc import Sequence

import msgspec

from postern.core.address import NOBODY
from postern.core.deliveries.delivery import EngineHealth, EngineRejected, EngineUnavailable, Started, Trigger
from postern.core.documents import Document
from postern.core.fetched import Fetched
from postern.engines.handover import EngineOverHttp, deadline_text
from postern.outbound.guard import FetchFailed

ALSO = ("payload", "responseUrl", "responseToken", "responseDeadline")

_MUTATION = """mutation WebhookTrigger($handle: String!, $payload: JSON!) {
  flowTriggerReceive(handle: $handle, payload: $payload) { userErrors { field message } }
}"""
_SHOP = re.compile(r"[a-z0-9][a-z0-9-]{0,62}\.myshopify\.com")
_VERSION = re.compile(r"\d{4}-\d{2}|unstable")
_LARGEST_ANSWER = 256 * 1024


class ShopifyFlowEngine(EngineOverHttp):
    """``also_send``: what a trigger carries besides the six variables; the trigger extension must declare
    each of them."""

    name = "shopify-flow"

    def __init__(
        self,
        shop: str,
        access_token: str,
        *,
        handle: str = "webhook-trigger",
        api_version: str = "2026-10",
        also_send: Sequence[str] = (),
        payload_limit: int = 50_000,
    ) -> None:
        if not _SHOP.fullmatch(shop):
            raise ValueError("the shop must be written as your-shop.myshopify.com")
        if not _VERSION.fullmatch(api_version):
            raise ValueError("the API's version must be written as 2026-10, or unstable")
        if not access_token.isascii() or not access_token.isprintable():
            raise ValueError("the access token must be the text that Shopify shows, shpat_…")
        if unknown := sorted(set(also_send) - set(ALSO)):
            raise ValueError(f"{unknown[0][:50]!r} cannot be sent; choose from {', '.join(ALSO)}")
        super().__init__(f"https://{shop}/admin/api/{api_version}/graphql.json", 10.0, NOBODY)
        self._headers = {"Content-Type": "application/json", "X-Shopify-Access-Token": access_token}
        self._handle = handle
        self._also_send = tuple(also_send)
        self._payload_limit = payload_limit

    async def start(self, trigger: Trigger) -> Started:
        payload = self._payload(trigger)
        if (size := len(msgspec.json.encode(payload))) > self._payload_limit:
            raise EngineRejected(
                f"the trigger has {size} bytes; Flow takes {self._payload_limit}. Map smaller values"
            )
        fetched, answer = await self._ask(_MUTATION, {"handle": self._handle, "payload": payload})
        outcome = (
            answer.get("data", {}).get("flowTriggerReceive") if isinstance(answer.get("data"), dict) else None
        )
        if not isinstance(outcome, dict):
            raise EngineUnavailable(
                f"Shopify answered {fetched.status} without saying whether the trigger was taken"
            )
        if errors := _messages(outcome.get("userErrors")):
            raise EngineRejected(f"Flow refused the trigger: {errors}")
        # How many workflows use the trigger, Flow does not say.
        return Started(1)

    def _payload(self, trigger: Trigger) -> dict[str, str]:
        slot = trigger.response
        also = {
            "payload": trigger.payload.decode("utf-8", "replace"),
            "responseUrl": slot.url if slot else "",
            "responseToken": slot.token if slot else "",
            "responseDeadline": deadline_text(slot) if slot else "",
        }
        return {**trigger.variables, **{name: also[name] for name in self._also_send}}

    async def _ask(self, query: str, variables: Document) -> tuple[Fetched, Document]:
        """The answer to a GraphQL request that Shopify has taken; everything else is raised as what it means
        for a start."""
        try:
            content = msgspec.json.encode({"query": query, "variables": variables})
            fetched = await self._fetch(content, self._headers, _LARGEST_ANSWER)
        except FetchFailed as failed:
            raise EngineUnavailable(f"Shopify cannot be reached: {failed.detail}") from failed
        if fetched.status in (408, 425, 429, 430) or fetched.status >= 500:
            raise EngineUnavailable(f"Shopify answered {fetched.status}", fetched.retry_after(time.time()))
        if fetched.status != 200:
            raise EngineRejected(f"Shopify answered {fetched.status}: {_meaning(fetched.status)}")
        try:
            answer = msgspec.json.decode(fetched.body, type=Document)
        except msgspec.DecodeError as error:
            raise EngineUnavailable("Shopify's answer is not JSON") from error
        if errors := answer.get("errors"):
            # Throttled requests are answered with 200; only the errors' codes tell.
            if _codes(errors) & {"THROTTLED", "INTERNAL_SERVER_ERROR", "TIMEOUT"}:
                raise EngineUnavailable(f"Shopify is busy: {_messages(errors)}", _time_to_refill(answer))
            raise EngineRejected(f"Shopify refused the request: {_messages(errors)}")
        return fetched, answer

    async def health(self) -> EngineHealth:
        try:
            await self._ask("query { __typename }", {})
        except (EngineUnavailable, EngineRejected) as failed:
            return EngineHealth(False, failed.detail)
        return EngineHealth(True, "Shopify answers")


def _meaning(status: int) -> str:
    return {
        401: "the access token is wrong or was revoked",
        402: "the shop is frozen",
        403: "the access token may not do this",
        404: "there is no such shop or API version",
    }.get(status, "the request was not taken")


def _messages(errors: object) -> str:
    if not isinstance(errors, list):
        return str(errors)[:300] if errors else ""
    return "; ".join(
        str(error.get("message", error)) if isinstance(error, dict) else str(error) for error in errors
    )[:300]


def _codes(errors: object) -> set[str]:
    details = (
        [error.get("extensions") for error in errors if isinstance(error, dict)]
        if isinstance(errors, list)
        else []
    )
    return {str(extensions.get("code")) for extensions in details if isinstance(extensions, dict)}


def _time_to_refill(answer: Document) -> float:
    """Returns the seconds until Shopify's bucket holds what the request costs."""
    try:
        cost = answer["extensions"]["cost"]
        status = cost["throttleStatus"]
        missing = float(cost["requestedQueryCost"]) - float(status["currentlyAvailable"])
        return min(max(missing / float(status["restoreRate"]), 1.0), 60.0)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return 1.0
