"""The options that choose calls or webhooks, the same for all commands."""

from typing import get_args

import click

from postern.core.history.invocation import STATUSES
from postern.core.webhooks.listing import WebhookState
from postern.surfaces.cli.develop.senders import complete_sender
from postern.surfaces.cli.options import Choice, Options, together

CALLS: Options = {
    "webhook_id": click.option("--webhook", "webhook_id", help="Only calls to this webhook (wh_…)."),
    "status": click.option("--status", type=Choice(STATUSES), help=f"Only these: {', '.join(STATUSES)}."),
    "code": "Only calls with this reason, like signature_mismatch.",
    "since": "Not before this time: 2026-11-21T09:00:00Z, or 45s, 30m, 1h, 2d ago.",
    "until": "Before this time, written likewise.",
    "search": "Only calls whose headers, query or body hold this text, in capitals or not.",
    "answer": "Only calls whose caller heard this: 504, 5xx, or gone, where it had left.",
    "value": "Only those with this whole mapped value or event name, or one that begins so: 'A-10*'.",
    "address": "Only those from this address.",
    "bookmarked": click.option("--bookmarked", is_flag=True, help="Only those that somebody has bookmarked."),
    "header": "Only those with this header: x-topic, x-topic=paid, x-topic='pa*'.",
    "field": "Only those with this value: fieldOne=1001, or at a path of the payload, customer.id=7.",
    "error": "Only those that failed with this error, a … in it for any text: 'ERP said 503'.",
    "replay": "Only those that this replay of many has replayed (rpl_…).",
}
WEBHOOKS: Options = {
    "search": "Only those whose name, folder or tag holds this, or with this id.",
    "sender": click.option(
        "--sender",
        shell_complete=complete_sender,
        help="Only those that this sender calls, like shopify; or token, none, schedule.",
    ),
    "state": click.option(
        "--state",
        type=Choice(get_args(WebhookState)),
        help=f"Only these: {', '.join(get_args(WebhookState))}.",
    ),
    "tag": "Only those with this tag.",
    "folder": "Only those in this folder or one inside it; - for those that are in none.",
    "not_called_since": "Only those not called since: 2026-11-21T09:00:00Z, or 45s, 30m, 1h, 2d ago.",
}
which_calls, which_webhooks = together(CALLS), together(WEBHOOKS)
