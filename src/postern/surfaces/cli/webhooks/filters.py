"""Which webhooks a command is about."""

import click

from postern.surfaces.cli.options import together

OPTIONS = {
    "search": click.option(
        "--search", help="Only those whose name, folder or tag holds this, or with this id."
    ),
    "sender": click.option(
        "--sender", help="Only those that this sender calls, like shopify; or token, none, schedule."
    ),
    "state": click.option("--state", help="Only these: enabled, held, disabled, failing or never_called."),
    "tag": click.option("--tag", help="Only those with this tag."),
    "folder": click.option(
        "--folder", help="Only those in this folder or one inside it; - for those that are in none."
    ),
}
"""By the names that the API has for them."""
with_filter = together(OPTIONS)
