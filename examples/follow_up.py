"""Thank for an order now, ask for a review a week later.

Copy it to your workflows. The webhook: map the order's number to ``fieldOne`` and the customer's address to
``fieldTwo``. Set FOLLOW_UP_WEBHOOK_ID to its ID; unset, this workflow answers every webhook.
"""

import os

from postern.workflows import Event, sleep, step, workflow

A_WEEK = 7 * 24 * 3600


@step(retries=3)
def send_mail(address: str, text: str) -> None:
    """Put your mail service's API call here."""
    print(f"to {address}: {text}")


@workflow(webhook_id=os.environ.get("FOLLOW_UP_WEBHOOK_ID"))
def follow_up(event: Event) -> None:
    """Mails the customer now and again after a week, however often the machine restarts in between."""
    order, address = event["fieldOne"], event["fieldTwo"]
    if not address:
        return
    send_mail(address, f"Thank you for order {order}.")
    sleep(A_WEEK)
    send_mail(address, f"How do you like what you got with order {order}?")
