"""Which webhooks a command is about."""

from typing import Annotated

import typer

from postern.surfaces.cli.options import with_options

OPTIONS = {
    "search": Annotated[
        str | None, typer.Option(help="Only those whose name, folder or tag holds this, or with this id.")
    ],
    "sender": Annotated[
        str | None,
        typer.Option(help="Only those that this sender calls, like shopify; or token, none, schedule."),
    ],
    "state": Annotated[
        str | None, typer.Option(help="Only these: enabled, held, disabled, failing or never_called.")
    ],
    "tag": Annotated[str | None, typer.Option(help="Only those with this tag.")],
    "folder": Annotated[
        str | None,
        typer.Option(help="Only those in this folder or one inside it; - for those that are in none."),
    ],
}
"""By the names that the API has for them."""
with_filter = with_options(OPTIONS)
