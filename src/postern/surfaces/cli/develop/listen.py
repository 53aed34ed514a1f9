"""`postern listen`: a gateway's calls arrive at a program on this machine, as they come in."""

import time
from base64 import b64decode
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import NamedTuple

import click
from msgspec import Raw

from postern.core.calls.call import Call
from postern.core.calls.content import RECORDED, UnreadableContent, read_object
from postern.core.calls.paths import InvalidPath, as_text, parse_path, walk_members
from postern.core.deliveries.delivery import FIELD_NAMES
from postern.core.history.volume import OUTCOMES, outcome_of
from postern.surfaces.cli.develop.new_calls import ANSWER_WITHIN, Calls, KeptPlace
from postern.surfaces.cli.develop.presence import Lines, Presence, listened, own_name
from postern.surfaces.cli.develop.senders import complete_sender, webhooks_of
from postern.surfaces.cli.develop.target import ASK_AGAIN, LocalTarget, checked, token_for_header
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.gateway.source import Away
from postern.surfaces.cli.options import Choice, command
from postern.surfaces.cli.run import NOT_FOUND, counted, end, note, out, plain, show_json_line, time_of
from postern.usecases.access.views import Me
from postern.usecases.history.views.requests import RecordedRequest
from postern.usecases.summary import InvocationSummary
from postern.usecases.webhooks.views import Webhook


@command()
@click.argument("webhooks", nargs=-1, metavar="[WEBHOOK]...", help="Only these webhooks (wh_…).")
@click.option("--to", help="Where calls are sent: http://localhost:3000/path.")
@click.option(
    "--print", "only_print", is_flag=True, help="Show each call with its headers and body; send it nowhere."
)
@click.option("--since", help="First what came in since then: 1h, 30m, or 2026-11-21T09:00:00Z.")
@click.option("--last", type=click.IntRange(0, 100_000), default=0, help="First the last so many calls.")
@click.option(
    "--keep",
    metavar="NAME",
    help="Go on where the last listening of this name ended, and remember how far this one comes.",
)
@click.option("--sender", shell_complete=complete_sender, help="Only webhooks of this sender, like stripe.")
@click.option(
    "--outcome",
    type=Choice(OUTCOMES),
    multiple=True,
    help=f"Which calls: {', '.join(OUTCOMES)}; may be given again. Default: accepted.",
)
@click.option(
    "--where",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Only calls with this value: of a mapped field, like fieldOne=1001, or in the body, like data.type=invoice.paid.",
)
@click.option(
    "--token",
    help="What to send where a credential was masked: env:NAME, file:PATH or -. Default: leave it out.",
)
@click.option(
    "--retry", is_flag=True, help="Send a call again until the local program answers it; the next ones wait."
)
@click.option(
    "--timeout", type=click.FloatRange(0.1, 3600), default=30, help="Seconds for each local answer."
)
@click.option("--name", help="What others see of this listener. Default: who and where, like ada@thinkpad.")
def listen(
    *,
    webhooks: tuple[str, ...],
    to: str | None,
    only_print: bool,
    since: str | None,
    last: int,
    keep: str | None,
    sender: str | None,
    outcome: tuple[str, ...],
    where: tuple[str, ...],
    token: str | None,
    retry: bool,
    timeout: float,
    name: str | None,
) -> None:
    """Let calls of a gateway arrive at a program on this machine, as they come in: method, query, headers and body as
    they were sent, signatures included, and X-Postern-Invocation beside them. Nothing has to be reachable from outside.

    Each call arrives once and in order. When the connection to the gateway is lost, it goes on where it was. Ctrl-C ends
    it. While it listens, recorded calls can be replayed to it from the console, by its name.

    Examples:

      postern listen --to http://localhost:3000/hooks

      postern listen wh_… --print --last 5
    """
    if (to is None) != only_print:
        end("say --to URL, or --print")
    criteria = _wanted(outcome, where)
    masked = token_for_header(token) if token else None
    begin = None if since is None else time_of(since, "--since")
    target = None if to is None else LocalTarget(checked(to), masked, timeout)
    api.get(Me, "me")  # what cannot work at all is not waited for
    if sender is not None:
        webhooks = _of_sender(webhooks, sender)
    for webhook in webhooks:
        api.get(Webhook, "webhooks", webhook)
    announced = name or own_name()
    kept = None if keep is None else _kept_place(keep, since, last)
    shown = Lines()
    calls = Calls(
        webhooks, lambda why: shown.say(f"{why} It goes on as soon as it can."), kept.place if kept else None
    )
    presence = Presence(announced, target, shown) if target else None
    if not out.as_json:
        to_whom = f"Listening for {announced}, to {to}" if to else "Waiting for calls"
        shown.say(f"{to_whom}. Ctrl-C ends it.", "")
    if presence is not None:
        api.patient = True
        presence.in_background()
    count = 0
    try:
        with closing(_each_kept(calls.follow(begin, last), calls, kept, retry)) as summaries:
            for call in summaries:
                request = _request(call.id) if outcome_of(call.status) in criteria.outcomes else None
                if request is None or not criteria.has(request):
                    continue
                count += 1
                if target is None:
                    _print(call, request)
                else:
                    line = listened(request, outcome=outcome_of(call.status), code=call.code)
                    shown.show(request, line, target.send(request, retry))
    except KeyboardInterrupt:
        pass
    finally:
        if presence is not None:
            presence.close()
            count += presence.count
        if target is not None:
            target.close()
    note(f"{counted(count, 'call')}.")


def _each_kept(
    summaries: Iterator[InvocationSummary], calls: Calls, kept: KeptPlace | None, retry: bool
) -> Generator[InvocationSummary, None, None]:
    """Yields the calls, and keeps the place before each one is sent: once is the rule. With ``retry`` it is kept afterwards."""
    if kept is None:
        yield from summaries
        return
    try:
        for call in summaries:
            if not retry:
                kept.write(calls.place)
            yield call
            if retry:
                kept.write(calls.place)
    finally:
        if calls.begun and not retry:
            kept.write(calls.place)


def _of_sender(webhooks: tuple[str, ...], sender: str) -> tuple[str, ...]:
    ids = tuple(webhook.id for webhook in webhooks_of(sender) if not webhooks or webhook.id in webhooks)
    return ids or end(f"--sender: no such webhook here is set up for {plain(sender)}", NOT_FOUND)


def _kept_place(name: str, since: str | None, last: int) -> KeptPlace:
    if since is not None or last:
        end("--keep goes on where it was, so --since and --last say nothing")
    login = api.login()
    return KeptPlace(name, login.url if login else "the database of this machine")


class Wanted(NamedTuple):
    outcomes: set[str]
    values: dict[str, str]

    def has(self, call: RecordedRequest) -> bool:
        if not self.values:
            return True
        members: dict[str, Raw] | None = None
        for name, value in self.values.items():
            if name in FIELD_NAMES:
                actual = call.fields.get(name)
            else:
                members = _members(call) if members is None else members
                there = walk_members(members, parse_path(name))
                actual = None if there is None else as_text(there)
            if actual != value:
                return False
        return True


def _members(call: RecordedRequest) -> dict[str, Raw]:
    """Returns the members of the JSON object or form that a call carries, and none for any other body."""
    headers = tuple((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in call.headers)
    body = b64decode(call.body_base64 or "")
    payload = read_object(Call(call.method, b"", b"", headers, body, "", 0.0), RECORDED)
    return {} if isinstance(payload, UnreadableContent) else payload.members


def _wanted(outcomes: tuple[str, ...], where: tuple[str, ...]) -> Wanted:
    values = dict(pair.partition("=")[::2] for pair in where)
    for name in values:
        try:
            parse_path(name)
        except InvalidPath as error:
            end(
                f"--where: {name!r}: write {FIELD_NAMES[0]}=VALUE, to {FIELD_NAMES[-1]}, or a path into the body, like "
                f"data.type=invoice.paid ({error})"
            )
    return Wanted(set(outcomes or ("accepted",)), values)


def _request(invocation: str) -> RecordedRequest:
    while True:
        try:
            return api.get(RecordedRequest, "invocations", invocation, "request", within=ANSWER_WITHIN)
        except Away:
            time.sleep(ASK_AGAIN)


def _print(call: InvocationSummary, request: RecordedRequest) -> None:
    if out.as_json:
        kind = outcome_of(call.status)
        show_json_line(listened(request, outcome=kind, code=call.code, request=request))
        return
    out.print(
        f"{call.received_at}  {call.id}  {call.webhook_id}  {outcome_of(call.status)}  {plain(call.detail)}".rstrip(),
        "bold",
    )
    target = request.path + (f"?{request.query}" if request.query else "")
    out.print(f"{plain(request.method)} {plain(target)}")
    for name, value in request.headers:
        out.print(f"{plain(name)}: {plain(value)}")
    out.print()
    body = (
        "(not kept any more)"
        if request.body_base64 is None
        else b64decode(request.body_base64).decode("utf-8", "replace")
    )
    for line in body.splitlines():
        out.print(plain(line))
    out.print()
    out.stream.flush()
