"""Which calls: the options that are the same wherever calls are chosen."""

from typing import Annotated

import typer

from postern.core.history.invocation import STATUSES

Webhook = Annotated[str | None, typer.Option(help="Only calls to this webhook (wh_…).")]
Status = Annotated[str | None, typer.Option(help=f"Only these: {', '.join(STATUSES)}.")]
Code = Annotated[str | None, typer.Option(help="Only calls with this reason, like signature_mismatch.")]
Since = Annotated[str | None, typer.Option(help="Not before this time (2026-11-21T09:00:00Z).")]
Until = Annotated[str | None, typer.Option(help="Before this time.")]
Search = Annotated[str | None, typer.Option(help="Only calls whose headers, query or body hold this text.")]
AnswerHeard = Annotated[
    str | None, typer.Option(help="Only calls whose caller heard this: 504, 5xx, or gone, where it had left.")
]
Value = Annotated[
    str | None,
    typer.Option(
        help="Only those with this whole mapped value or event name, or one that begins so: 'A-10*'."
    ),
]
Address = Annotated[str | None, typer.Option(help="Only those from this address.")]
Bookmarked = Annotated[bool, typer.Option("--bookmarked", help="Only those that somebody has bookmarked.")]
Header = Annotated[
    str | None, typer.Option(help="Only those with this header: x-topic, x-topic=paid, x-topic='pa*'.")
]
Field = Annotated[
    str | None,
    typer.Option(
        help="Only those with this value: fieldOne=1001, or at a path of the payload, customer.id=7."
    ),
]
