"""Which calls: the options that are the same wherever calls are chosen."""

from typing import Annotated

import typer

from postern.core.history.invocation import STATUSES
from postern.surfaces.cli.options import with_options

OPTIONS = {
    "webhook_id": Annotated[str | None, typer.Option("--webhook", help="Only calls to this webhook (wh_…).")],
    "status": Annotated[str | None, typer.Option(help=f"Only these: {', '.join(STATUSES)}.")],
    "code": Annotated[str | None, typer.Option(help="Only calls with this reason, like signature_mismatch.")],
    "since": Annotated[
        str | None, typer.Option(help="Not before this time: 2026-11-21T09:00:00Z, or 45s, 30m, 1h, 2d ago.")
    ],
    "until": Annotated[str | None, typer.Option(help="Before this time, written likewise.")],
    "search": Annotated[
        str | None,
        typer.Option(help="Only calls whose headers, query or body hold this text, in capitals or not."),
    ],
    "answer": Annotated[
        str | None,
        typer.Option(help="Only calls whose caller heard this: 504, 5xx, or gone, where it had left."),
    ],
    "value": Annotated[
        str | None,
        typer.Option(
            help="Only those with this whole mapped value or event name, or one that begins so: 'A-10*'."
        ),
    ],
    "address": Annotated[str | None, typer.Option(help="Only those from this address.")],
    "bookmarked": Annotated[
        bool, typer.Option("--bookmarked", help="Only those that somebody has bookmarked.")
    ],
    "header": Annotated[
        str | None,
        typer.Option(help="Only those with this header: x-topic, x-topic=paid, x-topic='pa*'."),
    ],
    "field": Annotated[
        str | None,
        typer.Option(
            help="Only those with this value: fieldOne=1001, or at a path of the payload, customer.id=7."
        ),
    ],
    "replay": Annotated[
        str | None, typer.Option(help="Only those that this replay of many has replayed (rpl_…).")
    ],
}
"""By the names that the API has for them."""
with_filter = with_options(OPTIONS)
