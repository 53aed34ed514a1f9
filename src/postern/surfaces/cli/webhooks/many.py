"""`postern webhooks many`: one action for many webhooks."""

from typing import Any

import click

from postern.core.webhooks.listing import ACTIONS
from postern.surfaces.cli.filters import which_webhooks
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.options import Choice, Given
from postern.surfaces.cli.run import CONFLICT, counted, end, for_programs, note, out, plain
from postern.surfaces.cli.webhooks.webhooks import commands
from postern.usecases.webhooks.views import Many

LOSES = {
    "delete": "Their URLs will answer 404; for seven days each can be restored from the bin.",
    "disable": "Their callers will hear 403.",
}
DONE = {
    "enable": "Enabled",
    "disable": "Disabled",
    "hold": "On hold",
    "release": "Released",
    "tag": "Tagged",
    "untag": "Tags taken away",
    "move": "Moved",
    "delete": "Deleted",
}


@commands.command("many")
@click.argument("action", type=Choice(ACTIONS), metavar="ACTION", help=f"One of {', '.join(ACTIONS)}.")
@click.argument("webhooks", nargs=-1, metavar="[WEBHOOK]...", help="Their ids. Or filter them.")
@which_webhooks
@click.option("--all", "everything", is_flag=True, help="Every webhook there is.")
@click.option("--tags", help="For tag and untag: which, divided by commas.")
@click.option("--to", help="For move: the folder they go to; - takes them out of theirs.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
def many(
    *,
    action: str,
    webhooks: tuple[str, ...],
    wanted: Given,
    everything: bool,
    tags: str | None,
    to: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Do the same with many webhooks: those that you name, or all that match a filter.

    A webhook for which it fails does not stop the others. It is named at the end, and the exit code is 4.

    Examples:

      postern webhooks many tag --folder Shops/Europe --tags europe,shops

      postern webhooks many disable --state never_called

      postern webhooks many move --tag europe --to Shops/Europe
    """
    if (bool(webhooks) + bool(wanted) + everything) != 1:
        end("Say which webhooks: their ids, or a filter, or --all.")
    request: dict[str, Any] = {"action": action}
    request |= {"webhookIds": webhooks} if webhooks else {"filter": wanted}
    if tags is not None:
        request["tags"] = [tag.strip() for tag in tags.split(",") if tag.strip()]
    if to is not None:
        request["folder"] = None if to == "-" else to
    done: Many | None = None
    if dry_run or not (yes or out.as_json):
        done = api.post(Many, "webhooks", "many", body={**request, "dryRun": True})
        if done.done and not dry_run:
            out.print(f"{action.capitalize()}: {done.done} of {counted(done.matched, 'webhook')} that match.")
            click.confirm(f"{LOSES.get(action, '')} Go on?".strip(), abort=True)
            # Webhooks that match only since then were not agreed to.
            request["expected"], done = done.matched, None
    done = done or api.post(Many, "webhooks", "many", body=request)
    _report(done)
    if done.not_done and not dry_run:
        raise click.exceptions.Exit(CONFLICT)


def _report(done: Many) -> None:
    for_programs(done)
    would = "Would be: " if done.dry_run else ""
    out.print(f"{would}{DONE[done.action]}: {counted(done.done, 'webhook')}.")
    for webhook in done.webhooks or ():
        out.print(f"  {plain(webhook.name)} ({webhook.id})")
    if done.unchanged:
        out.print(
            f"{counted(done.unchanged, 'webhook')} {'was' if done.unchanged == 1 else 'were'} so already."
        )
    if done.released:
        out.print(f"Due now: {counted(done.released, 'delivery', 'deliveries')} that waited.")
    for failure in done.reasons:
        note(
            f"Not done: {plain(failure.name or failure.id)} ({failure.id}): {plain(failure.reason)}", "yellow"
        )
    if done.not_done > len(done.reasons):
        note(f"Not done: {done.not_done - len(done.reasons)} more.", "yellow")
