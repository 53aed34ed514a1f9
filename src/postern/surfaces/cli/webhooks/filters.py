"""Which webhooks a command is about."""

from typing import Annotated

import typer

Search = Annotated[
    str | None, typer.Option(help="Only those whose name, folder or tag holds this, or with this id.")
]
Sender = Annotated[
    str | None,
    typer.Option(help="Only those that this sender calls, like shopify; or token, none, schedule."),
]
State = Annotated[
    str | None, typer.Option(help="Only these: enabled, held, disabled, failing or never_called.")
]
Tag = Annotated[str | None, typer.Option(help="Only those with this tag.")]
Folder = Annotated[
    str | None, typer.Option(help="Only those in this folder or one inside it; - for those that are in none.")
]


def given(
    search: str | None, sender: str | None, state: str | None, tag: str | None, folder: str | None
) -> dict[str, str]:
    wanted = {"search": search, "sender": sender, "state": state, "tag": tag, "folder": folder}
    return {name: value for name, value in wanted.items() if value}
