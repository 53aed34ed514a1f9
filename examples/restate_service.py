"""A Restate service for Postern: the handler that every webhook starts, and the response action as a step of it.

    pip install restate-sdk uvicorn httpx2
    uvicorn restate_service:app --port 9080
    restate deployments register http://127.0.0.1:9080 --use-http1.1

It looks up an order by its number: map the caller's ``orderNumber`` to ``fieldOne``, turn *synchronous
response* on, and put your webhook's id in ``ORDER_LOOKUP_WEBHOOK``.
"""

import os
from datetime import timedelta
from typing import Any

import httpx2
import restate

ORDER_LOOKUP = os.environ.get("ORDER_LOOKUP_WEBHOOK", "wh_…")

ORDERS = {"1001": {"name": "#1001", "financialStatus": "PAID", "fulfillmentStatus": "FULFILLED"}}

# Postern tries a start again for three days; for that long Restate is to know that it has it already.
webhook_trigger = restate.Service("WebhookTrigger", idempotency_retention=timedelta(days=4))


async def look_up_order(number: str) -> list[dict[str, str]]:
    """Where a real service would ask the shop."""
    order = ORDERS.get(number)
    return [order] if order else []


async def respond(slot: dict[str, str], answer: dict[str, Any]) -> bool:
    """The response action: hand the answer to the caller who waits. False when somebody was quicker, or time
    was up."""
    async with httpx2.AsyncClient(timeout=5) as client:
        reply = await client.post(
            slot["url"], json=answer, headers={"Authorization": f"Bearer {slot['token']}"}
        )
    if reply.status_code == 410:
        return False
    reply.raise_for_status()
    return True


async def answer_caller(ctx: restate.Context, trigger: dict[str, Any], body: Any, status: int = 200) -> None:
    """Call this from a handler. Without a waiting caller it does nothing."""
    slot = trigger["response"]
    if slot is not None:
        answer = {"status": status, "headers": {}, "body": body}
        await ctx.run_typed("respond", respond, slot=slot, answer=answer)


@webhook_trigger.handler("run")
async def run(ctx: restate.Context, trigger: dict[str, Any]) -> None:
    """Started for every call of every webhook: the first thing to do is to ask which one it was."""
    if trigger["webhookId"] == ORDER_LOOKUP:
        orders = await ctx.run_typed("look up", look_up_order, number=trigger["fieldOne"])
        await answer_caller(ctx, trigger, {"orders": orders})


app = restate.app([webhook_trigger])
