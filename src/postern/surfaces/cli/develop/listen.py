"""`postern listen`: calls of a gateway on one's own machine, as they come in."""

import re
import time
from base64 import b64decode
from datetime import UTC, datetime
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

import typer

from postern.core.calls.redact import MASK
from postern.core.deliveries.delivery import FIELD_NAMES
from postern.surfaces.cli.develop.keeping import Keeper
from postern.surfaces.cli.develop.listening import Calls
from postern.surfaces.cli.develop.senders import webhooks_of
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.gateway.source import Away
from postern.surfaces.cli.run import NOT_FOUND, USAGE, Json, end, err, out, plain, show_json_line
from postern.surfaces.cli.terminal import Style
from postern.surfaces.cli.webhooks.webhooks import read_secret
from postern.usecases.access.views import Me
from postern.usecases.answers import UNSET, Time, UnsetType, View
from postern.usecases.history.views import InvocationSummary, RecordedRequest
from postern.usecases.webhooks.views import Webhook

OUTCOMES = ("accepted", "duplicate", "handshake", "rejected")
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
ASK_AGAIN = 1.0

# What belongs to the connection that the call came over, or is made anew for the one to the local program.
_OWN = {
    *(
        "host",
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ),
    *("content-length", "expect"),
}


class LocalAnswer(NamedTuple):
    status: int | None
    error: str
    milliseconds: float


class Heard(View):
    """A line of ``--json``."""

    id: str
    webhook_id: str
    received_at: Time
    outcome: str
    code: str
    method: str
    local_status: int | UnsetType | None = UNSET
    local_ms: float | UnsetType = UNSET
    error: str | UnsetType = UNSET
    request: RecordedRequest | UnsetType = UNSET


def listen(
    webhooks: Annotated[
        list[str] | None, typer.Argument(metavar="[WEBHOOK]...", help="Only these webhooks (wh_…).")
    ] = None,
    to: Annotated[str | None, typer.Option(help="Where calls are sent: http://localhost:3000/path.")] = None,
    only_print: Annotated[
        bool, typer.Option("--print", help="Show each call with its headers and body; send it nowhere.")
    ] = False,
    since: Annotated[
        str | None, typer.Option(help="First what came in since then: 1h, 30m, or 2026-11-21T09:00:00Z.")
    ] = None,
    last: Annotated[int, typer.Option(min=0, max=100_000, help="First the last so many calls.")] = 0,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Go on where the last listening of this name ended, and remember how far this one comes.",
        ),
    ] = None,
    sender: Annotated[str | None, typer.Option(help="Only webhooks of this sender, like stripe.")] = None,
    outcome: Annotated[
        list[str] | None,
        typer.Option(help=f"Which calls: {', '.join(OUTCOMES)}; may be given again. Default: accepted."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD=VALUE", help="Only calls with this value, like fieldOne=1001."),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            help="What to send where a credential was masked: env:NAME, file:PATH or -. Default: leave it out."
        ),
    ] = None,
    retry: Annotated[
        bool,
        typer.Option(
            "--retry", help="Send a call again until the local program answers it; the next ones wait."
        ),
    ] = False,
    timeout: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds for each local answer.")] = 30,
    as_json: Json = False,
) -> None:
    """Let calls of a gateway arrive at a program on this machine, as they come in: method, query, headers and body as
    they were sent, signatures included, and X-Postern-Invocation beside them. Nothing has to be reachable from outside.

    Each call arrives once and in order. When the connection to the gateway is lost, it goes on where it was. Ctrl-C ends
    it.

    Examples:

      postern listen --to http://localhost:3000/hooks

      postern listen wh_… --print --last 5
    """
    if (to is None) != only_print:
        end("say --to URL, or --print", USAGE)
    wanted = _wanted(outcome, where)
    masked = read_secret(token) if token else None
    begin = None if since is None else _moment(since)
    target = None if to is None else Target(checked(to), masked, timeout)
    api.get(Me, "me")  # what cannot work at all is not waited for
    if sender is not None:
        webhooks = _of_sender(webhooks, sender)
    for webhook in webhooks or ():
        api.get(Webhook, "webhooks", webhook)
    kept = None if keep is None else _keeper(keep, since, last)
    calls = Calls(
        webhooks or [],
        lambda why: err.print(f"{why} It goes on as soon as it can.", "yellow"),
        kept.place if kept else None,
    )
    if not as_json:
        err.print("Waiting for calls. Ctrl-C ends it.")
    count = 0
    try:
        for call in calls.follow(begin, last):
            if kept is not None and not retry:
                kept.write(calls.place)  # before it is sent: once is the rule
            if _outcome(call) not in wanted.outcomes:
                continue
            request = _request(call.id)
            if any(request.fields.get(name) != value for name, value in wanted.fields.items()):
                continue
            count += 1
            if target is None:
                _print(call, request, as_json)
            else:
                _show(call, target.send(request, retry), as_json)
            if kept is not None and retry:
                kept.write(calls.place)
    except KeyboardInterrupt:
        pass
    finally:
        if kept is not None and calls.begun and not retry:
            kept.write(calls.place)
        if target is not None:
            target.close()
    if not as_json:
        err.print(f"{count} calls.")


def _of_sender(webhooks: list[str] | None, sender: str) -> list[str]:
    found = [one.id for one in webhooks_of(sender) if not webhooks or one.id in webhooks]
    return found or end(f"--sender: no such webhook here is set up for {plain(sender)}", NOT_FOUND)


def _keeper(name: str, since: str | None, last: int) -> Keeper:
    if since is not None or last:
        end("--keep goes on where it was, so --since and --last say nothing", USAGE)
    login = api.login()
    return Keeper(name, login.url if login else "the database of this machine")


class Wanted(NamedTuple):
    outcomes: set[str]
    fields: dict[str, str]


def _wanted(outcomes: list[str] | None, where: list[str] | None) -> Wanted:
    if unknown := set(outcomes or ()) - set(OUTCOMES):
        end(f"--outcome: {min(unknown)} is none of {', '.join(OUTCOMES)}", USAGE)
    fields = dict(pair.partition("=")[::2] for pair in where or ())
    if unknown := fields.keys() - set(FIELD_NAMES):
        end(
            f"--where: {min(unknown)!r} is no field; write {FIELD_NAMES[0]}=VALUE, to {FIELD_NAMES[-1]}",
            USAGE,
        )
    return Wanted(set(outcomes or ["accepted"]), fields)


def _outcome(call: InvocationSummary) -> str:
    """What was decided, whatever has become of it since."""
    return call.status if call.status in ("duplicate", "handshake", "rejected") else "accepted"


def _moment(text: str) -> float:
    if found := re.fullmatch(r"(\d{1,6})([smhd])", text):
        return time.time() - int(found[1]) * UNITS[found[2]]
    try:
        given = datetime.fromisoformat(text)
        return max(0.0, (given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        end("--since: write 1h, 30m, 45s, 2d, or a time like 2026-11-21T09:00:00Z", USAGE)


def checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        end("--to: write the URL of a program, like http://localhost:3000/path", USAGE)
    return url


def _request(invocation: str) -> RecordedRequest:
    while True:
        try:
            return api.get(RecordedRequest, "invocations", invocation, "request")
        except Away:
            time.sleep(ASK_AGAIN)


class Target:
    """The program on this machine."""

    def __init__(self, url: str, masked: str | None, timeout: float) -> None:
        import httpx2

        self._url = url
        self._masked = masked
        self._http = httpx2.Client(trust_env=False, timeout=timeout)

    def send(self, call: RecordedRequest, retry: bool) -> LocalAnswer:
        if call.body_base64 is None or call.body_truncated:
            return LocalAnswer(None, "not sent: its body is not kept whole", 0.0)
        told = False
        while True:
            answer = self._once(call)
            if answer.status is not None or not retry:
                return answer
            if not told:
                err.print(
                    f"{call.invocation_id}: {answer.error}. It is sent again until there is an answer.",
                    "yellow",
                )
                told = True
            time.sleep(ASK_AGAIN)

    def _once(self, call: RecordedRequest) -> LocalAnswer:
        import httpx2

        url = self._url
        if query := self._open(call.query):
            url += ("&" if "?" in url else "?") + query
        headers = [
            (name.encode("latin-1"), self._open(value).encode("latin-1"))
            for name, value in call.headers
            if name.lower() not in _OWN and (value != MASK or self._masked is not None)
        ]
        headers.append((b"X-Postern-Invocation", call.invocation_id.encode()))
        began = time.perf_counter()
        try:
            response = self._http.send(
                httpx2.Request(call.method, url, headers=headers, content=b64decode(call.body_base64 or ""))
            )
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            why = "no answer in time" if isinstance(error, httpx2.TimeoutException) else str(error)
            return LocalAnswer(None, plain(why), (time.perf_counter() - began) * 1000)
        return LocalAnswer(response.status_code, "", (time.perf_counter() - began) * 1000)

    def _open(self, text: str) -> str:
        """With the token where the credential was masked; in a query a parameter cannot be left out."""
        return text if self._masked is None else text.replace(MASK, self._masked)

    def close(self) -> None:
        self._http.close()


def _show(call: InvocationSummary, answer: LocalAnswer, as_json: bool) -> None:
    if as_json:
        show_json_line(
            _line(
                call,
                local_status=answer.status,
                local_ms=round(answer.milliseconds, 1),
                error=answer.error or UNSET,
            )
        )
        return
    status = answer.error if answer.status is None else str(answer.status)
    style: Style = "green" if answer.status is not None and answer.status < 400 else "red"
    what = f"{call.received_at}  {call.id}  {call.webhook_id}  {plain(call.method)}"
    out.print(f"{what}  {out.styled(status, style)}  {answer.milliseconds:.0f} ms")
    out.stream.flush()


def _print(call: InvocationSummary, request: RecordedRequest, as_json: bool) -> None:
    if as_json:
        show_json_line(_line(call, request=request))
        return
    out.print(
        f"{call.received_at}  {call.id}  {call.webhook_id}  {_outcome(call)}  {plain(call.detail)}".rstrip(),
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


def _line(call: InvocationSummary, **more: object) -> Heard:
    return Heard(
        id=call.id,
        webhook_id=call.webhook_id,
        received_at=call.received_at,
        outcome=_outcome(call),
        code=call.code,
        method=call.method,
        **more,  # type: ignore[arg-type]
    )
