"""A Temporal worker for Postern: the workflow that every webhook triggers, and the response action as an
activity.

    pip install temporalio httpx2
    TEMPORAL_ADDRESS=127.0.0.1:7233 python temporal_worker.py

It looks up an order by its number: map the caller's ``orderNumber`` to ``fieldOne``, turn *synchronous
response* on, and put your webhook's id in ``ORDER_LOOKUP_WEBHOOK``.
"""

import asyncio
import os
from datetime import datetime, timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    import httpx2

ORDER_LOOKUP = os.environ.get("ORDER_LOOKUP_WEBHOOK", "wh_…")

ORDERS = {"1001": {"name": "#1001", "financialStatus": "PAID", "fulfillmentStatus": "FULFILLED"}}


@activity.defn
async def look_up_order(number: str) -> list[dict[str, str]]:
    """Where a real worker would ask the shop."""
    order = ORDERS.get(number)
    return [order] if order else []


@activity.defn
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


async def answer_caller(trigger: dict[str, Any], body: Any, status: int = 200) -> None:
    """Call this from a workflow. Without a waiting caller it does nothing."""
    slot = trigger["response"]
    if slot is None:
        return
    left = datetime.fromisoformat(slot["deadline"]) - workflow.now()
    if left > timedelta(0):
        # Several arguments go in `args`; a list as the second argument would be one argument.
        await workflow.execute_activity(
            respond,
            args=[slot, {"status": status, "headers": {}, "body": body}],
            schedule_to_close_timeout=left,
            retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=200)),
        )


@workflow.defn(name="Webhook Trigger")
class WebhookTrigger:
    """Started for every call of every webhook: the first thing to do is to ask which one it was."""

    @workflow.run
    async def run(self, trigger: dict[str, Any]) -> None:
        if trigger["webhookId"] == ORDER_LOOKUP:
            orders = await workflow.execute_activity(
                look_up_order, trigger["fieldOne"], start_to_close_timeout=timedelta(seconds=10)
            )
            await answer_caller(trigger, {"orders": orders})


async def main() -> None:
    client = await Client.connect(
        os.environ.get("TEMPORAL_ADDRESS", "127.0.0.1:7233"),
        namespace=os.environ.get("TEMPORAL_NAMESPACE", "default"),
    )
    worker = Worker(
        client, task_queue="postern", workflows=[WebhookTrigger], activities=[look_up_order, respond]
    )
    await worker.run()


if __name__ == "__main__":
    asyncio.run(main())
