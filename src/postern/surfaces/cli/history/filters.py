"""Which calls: the options that are the same wherever calls are chosen."""

import click

from postern.core.history.invocation import STATUSES
from postern.surfaces.cli.options import Choice, together

OPTIONS = {
    "webhook_id": click.option("--webhook", "webhook_id", help="Only calls to this webhook (wh_…)."),
    "status": click.option("--status", type=Choice(STATUSES), help=f"Only these: {', '.join(STATUSES)}."),
    "code": click.option("--code", help="Only calls with this reason, like signature_mismatch."),
    "since": click.option(
        "--since", help="Not before this time: 2026-11-21T09:00:00Z, or 45s, 30m, 1h, 2d ago."
    ),
    "until": click.option("--until", help="Before this time, written likewise."),
    "search": click.option(
        "--search", help="Only calls whose headers, query or body hold this text, in capitals or not."
    ),
    "answer": click.option(
        "--answer", help="Only calls whose caller heard this: 504, 5xx, or gone, where it had left."
    ),
    "value": click.option(
        "--value",
        help="Only those with this whole mapped value or event name, or one that begins so: 'A-10*'.",
    ),
    "address": click.option("--address", help="Only those from this address."),
    "bookmarked": click.option("--bookmarked", is_flag=True, help="Only those that somebody has bookmarked."),
    "header": click.option(
        "--header", help="Only those with this header: x-topic, x-topic=paid, x-topic='pa*'."
    ),
    "field": click.option(
        "--field",
        help="Only those with this value: fieldOne=1001, or at a path of the payload, customer.id=7.",
    ),
    "replay": click.option("--replay", help="Only those that this replay of many has replayed (rpl_…)."),
}
"""By the names that the API has for them."""
with_filter = together(OPTIONS)
