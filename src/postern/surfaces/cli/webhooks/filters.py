"""Which webhooks a command is about."""

from typing import get_args

import click

from postern.core.webhooks.listing import State
from postern.surfaces.cli.develop.senders import complete_sender
from postern.surfaces.cli.options import Choice, together

OPTIONS = {
    "search": click.option(
        "--search", help="Only those whose name, folder or tag holds this, or with this id."
    ),
    "sender": click.option(
        "--sender",
        shell_complete=complete_sender,
        help="Only those that this sender calls, like shopify; or token, none, schedule.",
    ),
    "state": click.option(
        "--state", type=Choice(get_args(State)), help=f"Only these: {', '.join(get_args(State))}."
    ),
    "tag": click.option("--tag", help="Only those with this tag."),
    "folder": click.option(
        "--folder", help="Only those in this folder or one inside it; - for those that are in none."
    ),
    "not_called_since": click.option(
        "--not-called-since",
        help="Only those not called since: 2026-11-21T09:00:00Z, or 45s, 30m, 1h, 2d ago.",
    ),
}
"""By the names that the API has for them."""
with_filter = together(OPTIONS)
