"""A DBOS app for Postern: the workflow that every webhook enqueues, and the response action as a step.

    pip install dbos httpx2
    DBOS_DATABASE=postgresql://user@localhost/dbos ORDER_LOOKUP_WEBHOOK=wh_… python dbos_app.py

It looks up an order by its number: map the caller's ``orderNumber`` to ``fieldOne``, turn *synchronous
response* on, and put your webhook's id in ``ORDER_LOOKUP_WEBHOOK``.
"""

import os
import threading
from typing import Any

import httpx2
from dbos import DBOS

ORDER_LOOKUP = os.environ.get("ORDER_LOOKUP_WEBHOOK", "wh_…")

ORDERS = {"1001": {"name": "#1001", "financialStatus": "PAID", "fulfillmentStatus": "FULFILLED"}}


@DBOS.step()
def look_up_order(number: str) -> list[dict[str, str]]:
    """Where a real app would ask the shop."""
    order = ORDERS.get(number)
    return [order] if order else []


@DBOS.step(retries_allowed=True, interval_seconds=0.2)
def respond(slot: dict[str, str], answer: dict[str, Any]) -> bool:
    """The response action: hand the answer to the caller who waits. False when somebody was quicker, or time
    was up."""
    reply = httpx2.post(
        slot["url"], json=answer, headers={"Authorization": f"Bearer {slot['token']}"}, timeout=5
    )
    if reply.status_code == 410:
        return False
    reply.raise_for_status()
    return True


def answer_caller(trigger: dict[str, Any], body: Any, status: int = 200) -> None:
    """Call this from a workflow. Without a waiting caller it does nothing."""
    if trigger["response"] is not None:
        respond(trigger["response"], {"status": status, "headers": {}, "body": body})


@DBOS.workflow(name="Webhook Trigger")
def webhook_trigger(trigger: dict[str, Any]) -> None:
    """Enqueued for every call of every webhook: the first thing to do is to ask which one it was."""
    if trigger["webhookId"] == ORDER_LOOKUP:
        answer_caller(trigger, {"orders": look_up_order(trigger["fieldOne"])})


def serve() -> None:
    """Until it is stopped."""
    DBOS(
        config={
            "name": "postern-example",
            "system_database_url": os.environ["DBOS_DATABASE"],
            # Otherwise unfinished runs are left behind when this file changes.
            "application_version": "1",
        }
    )
    DBOS.launch()
    DBOS.register_queue("postern", polling_interval_sec=0.1)
    threading.Event().wait()


if __name__ == "__main__":
    serve()
