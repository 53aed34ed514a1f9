"""`postern send`: calls as their sender would make them."""

import base64
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator

import click

from postern.core.documents import BodyChanges, Document
from postern.surfaces.cli.develop.senders import check_sender, complete_sender, samples_of, webhooks_of
from postern.surfaces.cli.files import read_file
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.options import Choice, command
from postern.surfaces.cli.run import CONFLICT, FAILED, NOT_FOUND, end, for_programs, out, plain, show_page
from postern.surfaces.cli.terminal import Style
from postern.usecases.answers import whole
from postern.usecases.signatures.views import Sent, SentCall

WRONGS = ("secret", "body", "stale", "missing")
AT_A_TIME = 10
"""Calls of one request, if nobody says how many a second."""


@command()
@click.argument(
    "target",
    shell_complete=complete_sender,
    metavar="SENDER|WEBHOOK",
    help="A webhook (wh_…), or a sender like stripe: its webhook here, or any URL with --to.",
)
@click.option("--event", help="Which of its events; --list shows them. Default: the first.")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="PATH=VALUE",
    help="A value in the body, like data.id=7. May be given again.",
)
@click.option("--body", help="Another body: a file, or - for standard input.")
@click.option(
    "--wrong",
    type=Choice(WRONGS),
    help="Broken in one way: secret, body (another than the signed one), stale, or missing (no signature, no token).",
)
@click.option("--count", type=click.IntRange(1, 100_000), default=1, help="How many, each with new ids.")
@click.option(
    "--rate", type=click.FloatRange(0.01, 100), help="Calls a second. Default: one after the other."
)
@click.option("--to", metavar="URL", help="Make it here and send it to this URL; no gateway takes part.")
@click.option("--secret", help="With --to: the secret or token, as env:NAME, file:PATH or -.")
@click.option(
    "--list", "only_list", is_flag=True, help="Show the events of a sender or a webhook; send nothing."
)
def send(
    *,
    target: str,
    event: str | None,
    changes: tuple[str, ...],
    body: str | None,
    wrong: str | None,
    count: int,
    rate: float | None,
    to: str | None,
    secret: str | None,
    only_list: bool,
) -> None:
    """Send a call as its sender would: its headers, ids, time and a correct signature. The gateway signs with the
    webhook's stored secret and calls the webhook's public URL, so that the whole way is tried; nobody is shown the
    signature.

    Words in braces in a body are filled in for each call: {uuid}, {unique}, {number}, {unix}, {unix_ms}, {iso},
    {timestamp}, {event}.

    It ends with 1 if a correct call was rejected, or a wrong one accepted.

    Examples:

      postern send shopify --event orders/create --set customer.email=ada@example.com

      postern send wh_… --wrong stale

      postern send stripe --to http://localhost:3000/hooks --secret env:STRIPE_SECRET
    """
    if secret is not None and to is None:
        end("--secret goes with --to; otherwise the gateway signs with the webhook's stored secret")
    encoded = None if body is None else base64.b64encode(read_file(body)).decode()
    given: Document = {"changes": _changes(changes), "bodyBase64": encoded, "event": event, "wrong": wrong}
    document = {name: value for name, value in given.items() if value is not None}
    if only_list:
        known = samples_of(target)
        show_page(whole(known), "", ["event", "title"])
        return
    if to is not None:
        from postern.surfaces.cli.develop.making import Here

        here = Here(target, to)
        calls = list(here.send(document, secret, count, rate))
        url, sent_event = here.url, here.event
    else:
        parts = list(_over_the_gateway(_webhook(target), document, count, rate))
        url, sent_event = parts[0].url, parts[0].event
        calls = [call for part in parts for call in part.calls]
    for_programs({"url": url, "event": sent_event, "calls": calls})
    _show(sent_event, calls)
    taken = [call.status is not None and call.status < 400 for call in calls]
    if any(taken) if wrong else not all(taken):
        sys.exit(FAILED)


def _changes(pairs: tuple[str, ...]) -> BodyChanges:
    """Reads pairs like ``data.id=7``. A path is not divided, for its steps may be indexes. A value that reads
    as JSON is JSON, and else text."""
    changes: BodyChanges = {}
    for pair in pairs:
        path, equals, text = pair.partition("=")
        if not equals or not path:
            end(f"--set: {pair!r}: write path=value, like data.id=7")
        try:
            changes[path] = json.loads(text)
        except (ValueError, RecursionError):
            changes[path] = text
    return changes


def _webhook(target: str) -> str:
    """Returns the one webhook of this sender, if no webhook is named."""
    if target.startswith("wh_"):
        return target
    check_sender(target)
    webhooks = webhooks_of(target)
    if not webhooks:
        end(f"No webhook here is set up for {target}. Make one, or say --to URL with --secret.", NOT_FOUND)
    if len(webhooks) > 1:
        end(
            f"Say which webhook: {', '.join(f'{webhook.id} ({plain(webhook.name)})' for webhook in webhooks)}",
            CONFLICT,
        )
    return webhooks[0].id


def _over_the_gateway(webhook: str, document: Document, count: int, rate: float | None) -> Iterator[Sent]:
    """Sends a few at a time, so that no request lasts long."""
    size = min(100, max(1, round(rate))) if rate else AT_A_TIME
    while count:
        part = min(size, count)
        count -= part
        began = time.monotonic()
        request = document | {"count": part} | ({"rate": rate} if rate else {})
        yield api.post(Sent, "webhooks", webhook, "test-calls", body=request)
        if rate and count:
            time.sleep(max(0.0, part / rate - (time.monotonic() - began)))


def _show(event: str, calls: list[SentCall]) -> None:
    if len(calls) == 1:
        (call,) = calls
        status = "no answer" if call.status is None else str(call.status)
        style: Style = "green" if call.status is not None and call.status < 400 else "red"
        what = "  ".join(filter(None, [plain(event), call.code, call.invocation_id or ""]))
        out.print(f"{out.styled(status, style)}  {what}  {call.ms:.0f} ms")
        if call.detail:
            out.print(plain(call.detail))
        if call.answer:
            out.print(plain(call.answer))
        return
    kinds = Counter((call.status, call.code) for call in calls)
    for (heard, code), times in kinds.most_common():
        out.print(f"{times}  {'no answer' if heard is None else heard}  {code}".rstrip())
    lasted = sorted(call.ms for call in calls)
    out.print(
        f"Half of them were answered within {lasted[len(lasted) // 2]:.0f} ms, all within {lasted[-1]:.0f} ms."
    )
