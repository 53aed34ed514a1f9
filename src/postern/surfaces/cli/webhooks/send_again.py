"""`postern send-again`: asks a sender to repeat what it did not deliver."""

import time

import click

from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.options import Command
from postern.surfaces.cli.run import out, plain, report
from postern.usecases.sending_again.views import SentAgain

LONGEST_WAIT = 120.0


@click.command("send-again", cls=Command)
@click.option(
    "--since", required=True, help="What was not delivered since then: 30m, 2h, 3d, or 2026-11-21T09:00:00Z."
)
@click.option("--dry-run", is_flag=True, help="Only say what would be asked for.")
def send_again(webhook: str, since: str, dry_run: bool) -> None:
    """Ask a webhook's sender for undelivered calls again (GitHub, GitLab, Paddle, Resend), or list them (Stripe).

    The calls are judged like any other; with duplicate protection each starts once.

    \b
    Examples:
      postern send-again wh_… --since 2h --dry-run
      postern send-again wh_… --since 2h
    """
    while True:
        done = api.post(
            SentAgain, "webhooks", webhook, "send-again", body={"since": since, "dryRun": dry_run}
        )
        report(done, _said(done, dry_run))
        wait = done.retry_after_seconds or 1.0
        if dry_run or out.as_json or not (done.left and done.asked) or wait > LONGEST_WAIT:
            return
        time.sleep(wait)


def _said(done: SentAgain, dry_run: bool) -> str:
    if not done.listed:
        return done.by_hand or ""
    if not out.as_json:
        for one in done.asked:
            out.print(plain(f"{one.event}  {one.what}  {one.at or ''}".rstrip()))
    verb = "would be asked for" if dry_run or done.by_hand else "asked for"
    parts = [f"{done.sender}: {len(done.asked)} {verb}"]
    if done.left:
        parts.append(f"{done.left} left")
    if done.by_itself:
        parts.append(f"{done.by_itself} that it is still trying by itself")
    return ". ".join([", ".join(parts), *filter(None, (done.by_hand, done.note))])
