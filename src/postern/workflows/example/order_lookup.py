"""Answer a caller who asks for an order by its number.

The webhook: synchronous response on, and ``orderNumber`` mapped to ``fieldOne``. The call and its answer:

    {"orderNumber": "1001"}
    {"orders": [{"name": "#1001", "financialStatus": "PAID", "fulfillmentStatus": "FULFILLED"}]}

Every workflow gets the events of every webhook, so set ORDER_LOOKUP_WEBHOOK_ID to the ID on your webhook's
page; `make run` sets it to the example webhook's. Unset, this workflow answers none.
"""

import os

from postern.workflows import Event, respond, step, workflow

ORDERS = [
    {"name": "#1001", "financialStatus": "PAID", "fulfillmentStatus": "FULFILLED"},
    {"name": "#1002", "financialStatus": "PENDING", "fulfillmentStatus": "UNFULFILLED"},
    {"name": "#1003", "financialStatus": "REFUNDED", "fulfillmentStatus": "RESTOCKED"},
]


@step(retries=2, wait=0.5)
def find_orders(number: str) -> list[dict[str, str]]:
    """Put your shop's API call here. A step is tried again when it fails, and done once even if the machine
    goes down."""
    return [order for order in ORDERS if order["name"] == f"#{number}"]


@workflow(webhook_id=os.environ.get("ORDER_LOOKUP_WEBHOOK_ID", "none"))
def order_lookup(event: Event) -> None:
    """Looks an order up by its number (field one) and answers with what was found."""
    number = event["fieldOne"].strip().removeprefix("#")
    orders = find_orders(number) if number else []
    respond({"orders": orders[:1]})
