"""`postern send-again`: asks a sender to repeat what it did not deliver."""

import time
from collections import Counter

import click
from msgspec.structs import replace

from postern.surfaces.cli.gateway.api import EXIT_CODES, Declined, api
from postern.surfaces.cli.options import Command
from postern.surfaces.cli.run import FAILED, end, note, out, plain, report
from postern.usecases.sending_again.views import SentAgain

LONGEST_WAIT = 3700.0
"""Seconds: GitHub's limit is for an hour."""
MOST_IN_VAIN = 10
"""Looks one after the other in which nothing could be asked for."""
MOST_TIMES = 12
"""For one event: every attempt at it fails."""


@click.command("send-again", cls=Command)
@click.option(
    "--since", required=True, help="What was not delivered since then: 30m, 2h, 3d, or 2026-11-21T09:00:00Z."
)
@click.option("--dry-run", is_flag=True, help="Only say what would be asked for.")
def send_again(webhook: str, since: str, dry_run: bool) -> None:
    """Ask a webhook's sender for undelivered calls again (GitHub, GitLab, Paddle, Resend), or list them (Stripe).

    It waits where the sender limits requests, and looks again until all has come. The calls are judged like any other; with
    duplicate protection each starts once.

    \b
    Examples:
      postern send-again wh_… --since 2h --dry-run
      postern send-again wh_… --since 2h
    """
    body = {"since": since, "dryRun": dry_run}
    done = _asked(api.post(SentAgain, "webhooks", webhook, "send-again", body=body))
    total, times, trouble = done.asked, Counter(request.event for request in done.asked), done.trouble
    in_vain, fail_always, problem = 0, False, None
    try:
        while (wait := done.retry_after_seconds) is not None and wait <= LONGEST_WAIT:
            in_vain = 0 if done.asked else in_vain + 1
            fail_always = min((times[request.event] for request in done.asked), default=0) >= MOST_TIMES
            if in_vain == MOST_IN_VAIN or fail_always:
                break
            why = f"; {plain(done.trouble)}" if done.trouble else ""
            note(f"{len(times)} asked for, {done.left} left{why}. Looking again in {wait:.0f} s.")
            time.sleep(wait)
            try:
                done = _asked(
                    api.post(SentAgain, "webhooks", webhook, "send-again", body=body, declines=True)
                )
            except Declined as declined:
                problem = declined
                break
            total, trouble = total + done.asked, done.trouble or trouble
            times.update(request.event for request in done.asked)
    except KeyboardInterrupt:
        note(f"{len(times)} asked for. The next time goes on, and asks for none of them again.")
        raise
    if fail_always:
        trouble = "what was asked for last fails each time it comes: look at its calls"
    elif not (done.left or done.refused):
        trouble = None
    done = replace(done, asked=total, trouble=trouble)
    report(done, _said(done, dry_run))
    if problem is not None:
        end(str(problem), EXIT_CODES.get(problem.status, FAILED), problem.code)
    if trouble:
        raise click.exceptions.Exit(FAILED)


def _asked(done: SentAgain) -> SentAgain:
    if not out.as_json:
        for request in done.asked:
            out.print(plain(f"{request.event}  {request.what}  {request.at or ''}".rstrip()))
    return done


def _said(done: SentAgain, dry_run: bool) -> str:
    if not done.listed:
        return done.by_hand or ""
    counts = {
        "would be asked for" if dry_run or done.by_hand else "asked for": len(
            {request.event for request in done.asked}
        ),
        "asked for and not sent yet": done.under_way,
        "that it is still trying by itself": done.by_itself,
        "that it does not send again": done.refused,
        "left": done.left,
    }
    first, *others = (f"{count} {words}" for words, count in counts.items())
    shown = [first, *(other for other in others if not other.startswith("0 "))]
    said = [f"{done.sender}: {', '.join(shown)}", done.trouble]
    return ". ".join(filter(None, [*said, done.by_hand, done.note]))
