"""`postern history` and `postern replay`."""

import sys
import time
from pathlib import Path

import click
from msgspec.structs import replace

from postern.core.deliveries.delivery import FIELD_NAMES
from postern.core.history.marks import Bookmark, Note
from postern.core.problems import PROBLEMS
from postern.surfaces.cli.develop.listeners import named
from postern.surfaces.cli.develop.target import LocalTarget, checked, token_for_header
from postern.surfaces.cli.files import in_words, read_text, written_whole
from postern.surfaces.cli.filters import which_calls
from postern.surfaces.cli.gateway.api import PLACE, api
from postern.surfaces.cli.history.story import show_story
from postern.surfaces.cli.options import PATH, Choice, Given, Group, command, fields_option, limit_option
from postern.surfaces.cli.run import (
    CONFLICT,
    FAILED,
    NOT_FOUND,
    UNAVAILABLE,
    counted,
    end,
    for_programs,
    out,
    plain,
    report,
    show_page,
    show_table,
)
from postern.usecases.answers import Listing, as_plain
from postern.usecases.calls.views import Admitted, Recheck
from postern.usecases.history.code import LANGUAGES, Language
from postern.usecases.history.views.calls import Comparison, Count, Failures, Invocation, LocalRun, Replayed
from postern.usecases.history.views.requests import Fixture, Preview, RecordedRequest, as_file, file_name
from postern.usecases.signatures.views import ConfirmedSubscription
from postern.usecases.summary import InvocationSummary

LOCAL_ANSWER_WITHIN = 30.0
CHECK_RUN_EVERY = 0.3

commands = Group("history", help="Look at what was called, and at what became of it.")


@commands.command("list")
@which_calls
@limit_option(50)
def listing(wanted: Given, limit: int, cursor: str | None) -> None:
    """List the calls, newest first, rejected ones too."""
    page = api.get(Listing[InvocationSummary], "invocations", **wanted, limit=limit, cursor=cursor)
    show_page(
        page,
        "No call matches." if wanted or cursor else "No call yet.",
        {
            "received": "receivedAt",
            "id": "id",
            "webhook": lambda call: call.webhook_name or call.webhook_id,
            "what": _what,
            "status": lambda call: (
                f"{call.status} (no workflow wants it)" if call.nobody_listens else call.status
            ),
            "reason": lambda call: call.detail or call.code,
            "http": "httpStatus",
            "ms": "durationMs",
            "from": "address",
        },
    )


@commands.command("count")
@which_calls
def count(wanted: Given) -> None:
    """Count the calls that a filter finds, up to 10,000. Where no index helps, only the newest calls are
    counted."""
    result = api.get(Count, "invocations", "count", **wanted)
    among = f" among those since {result.looked_back_to}" if result.looked_back_to is not None else ""
    more = "more than " if result.or_more and not among else ""
    report(result, f"{more}{counted(result.calls, 'call')}{among}")


@commands.command("failures")
@which_calls
def failures(wanted: Given) -> None:
    """Group the newest 500 failed calls by their errors, numbers and ids in them left out."""
    result = api.get(Failures, "invocations", "failures", **wanted)
    more = "+" if result.or_more else ""
    for_programs(result)
    rows = [
        [f"{group.count:,}{more}", group.since, len(group.webhook_ids), group.error] for group in result.items
    ]
    show_table(["calls", "since", "webhooks", "error"], rows, "No calls failed alike.")


@commands.command("show")
def show(invocation: str) -> None:
    """Show one call's whole story: what came, what was decided and why, what was started."""
    if invocation in ("count", "failures"):  # the API has other operations at these paths
        end(PROBLEMS["not_found"].help, NOT_FOUND, "not_found")
    call = api.get(Invocation, "invocations", invocation)
    for_programs(call)
    show_story(call)


@commands.command("code")
@click.option(
    "--language",
    type=Choice(LANGUAGES),
    default="curl",
    help=f"What it is to be pasted into: {', '.join(LANGUAGES)}.",
)
def as_code(invocation: str, language: Language) -> None:
    """Print a recorded call as curl or Python, with placeholders for its secrets."""
    text = api.text("invocations", invocation, "code", language=language)
    for_programs({"language": language, "code": text})
    out.print(text)


@commands.command("compare")
@click.argument(
    "other",
    required=False,
    metavar="OTHER",
    help="The other call; left out, the last one before it that went well.",
)
def compare(invocation: str, other: str | None) -> None:
    """Compare a call with another one: query, headers, values and body, JSON by path."""
    comparison = api.get(Comparison, "invocations", invocation, "comparison", to=other)
    for_programs(comparison)
    parts = (
        ("request", comparison.request), ("query", comparison.query), ("header", comparison.headers),
        ("value", comparison.values), ("body", comparison.body),
    )  # fmt: skip
    rows = [
        [part, difference.place, difference.kind, difference.before, difference.after]
        for part, it in parts
        for difference in it.items
    ]
    show_table(["part", "place", "", "before", "now"], rows, "Nothing differs that is recorded.")
    if not comparison.body.items and comparison.body.compared not in ("same", "json"):
        out.print(f"Bodies: {comparison.body.compared}.")
    out.print(f"Compared with {comparison.compared_with}.")


@commands.command("bookmark")
def bookmark(invocation: str) -> None:
    """Bookmark a call, for everybody. Retention deletes it all the same."""
    report(api.put(Bookmark, "invocations", invocation, "bookmark"), "Bookmarked.")


@commands.command("forget-bookmark")
def forget_bookmark(invocation: str) -> None:
    """Remove a call's bookmark. The call stays."""
    api.delete("invocations", invocation, "bookmark")
    report({"forgotten": invocation}, "No longer bookmarked.")


@commands.command("note")
@click.argument("text", help="What to write.")
def note(invocation: str, text: str) -> None:
    """Write a note beside a call, for everybody who looks at it."""
    written = api.post(Note, "invocations", invocation, "notes", body={"text": text})
    report(written, f"Noted: {written.id}")


@commands.command("delete-note")
@click.argument("note_id", metavar="NOTE", help="The note's id (note_…).")
def delete_note(invocation: str, note_id: str) -> None:
    """Delete a note of a call: your own, or as an administrator anybody's."""
    api.delete("invocations", invocation, "notes", note_id)
    report({"deleted": note_id}, "Deleted.")


@commands.command("confirm-subscription")
def confirm_subscription(invocation: str) -> None:
    """Agree to the subscription that a call of Amazon SNS asks for, so that the topic's messages are sent to its webhook.

    Anybody can subscribe a URL to a topic of their own: do it only if you subscribed this webhook just then.
    """
    done = api.post(ConfirmedSubscription, "invocations", invocation, "confirm-subscription")
    report(
        done, f"The subscription to {done.topic} is confirmed: its messages come to {done.webhook_id} now."
    )


@commands.command("replay-edited")
@click.option(
    "--body", type=PATH, metavar="FILE", help="A file with the body in the place of the recorded one."
)
@click.option(
    "--value",
    "values",
    multiple=True,
    metavar="FIELD=VALUE",
    help="A field to be set by hand, like fieldOne=1002.",
)
@fields_option("current")
def replay_edited(*, invocation: str, body: Path | None, values: tuple[str, ...], fields: str) -> None:
    """Start the workflow with a changed copy of a recorded call. The call itself stays as it came.

    Example:

      postern history replay-edited inv_… --body changed.json --value fieldOne=1002
    """
    request = {
        "body": read_text(body) if body else None,
        "values": dict(pair.partition("=")[::2] for pair in values) if values else None,
        "fields": fields,
    }
    done = api.post(Replayed, "invocations", invocation, "edited-replays", body=request)
    report(done, f"{done.invocation_id} was made of {invocation}, and its workflow is {done.delivery.state}.")


@commands.command("start-now")
def start_now(*, invocation: str) -> None:
    """Start a call that waits for its turn, whatever is at work.

    Example:

      postern history start-now inv_…
    """
    report(
        api.post(Replayed, "invocations", invocation, "start-now"),
        f"{invocation} starts now, out of its turn.",
    )


@commands.command("preview")
@click.argument("paths", nargs=-1, required=True, metavar="FIELD=PATH...", help="Like fieldOne=order.number.")
def preview(invocation: str, paths: tuple[str, ...]) -> None:
    """Try field paths on a recorded call, before you save them as its webhook's mapping.

    Example:

      postern history preview inv_… fieldOne=order.number 'fieldTwo=items[0].sku'
    """
    given: Given = dict(path.partition("=")[::2] for path in paths)
    if unknown := given.keys() - set(FIELD_NAMES):
        end(f"{min(unknown)!r} is no field; write {FIELD_NAMES[0]}=PATH, to {FIELD_NAMES[-1]}")
    result = api.get(Preview, "invocations", invocation, "preview", **given)
    for_programs(result)
    rows = [
        [name, given[name], "(nothing there)" if value is None else value]
        for name, value in as_plain(result).items()
    ]
    show_table(["field", "path", "value"], rows, "")


@command()
@fields_option("recorded")
@click.option(
    "--to",
    metavar="URL",
    help="Send the call to this program instead, as it was sent: http://localhost:3000/path. No workflow is started.",
)
@click.option(
    "--listener",
    metavar="NAME",
    help="Send the call to the program of this `postern listen` instead: `postern listeners list` tells the names.",
)
@click.option(
    "--token", help="With --to: what to send where a credential was masked: env:NAME, file:PATH or -."
)
def replay(*, invocation: str, fields: str, to: str | None, listener: str | None, token: str | None) -> None:
    """Start the workflow again with a recorded call's payload, or send the call to a program on this machine or
    to a listener."""
    if listener is not None:
        if to is not None:
            end("say --to URL or --listener NAME, one of them")
        _send_to_listener(invocation, listener)
        return
    if to is not None:
        _send_here(invocation, to, token)
        return
    done = api.post(Replayed, "invocations", invocation, "replay", fields=fields)
    text = f"Replay {done.delivery.emission} of {invocation} is {done.delivery.state}. The workflow begins at its first step again."
    if done.delivery.emission == 1:
        text = f"{invocation} was filtered. Its first start is {done.delivery.state}."
    report(done, text)


def _send_here(invocation: str, to: str, token: str | None) -> None:
    target = LocalTarget(checked(to), token_for_header(token) if token else None, LOCAL_ANSWER_WITHIN)
    try:
        answer = target.send(api.get(RecordedRequest, "invocations", invocation, "request"), is_replay=True)
    finally:
        target.close()
    if answer.status is None:
        end(f"{to}: {answer.error}", UNAVAILABLE)
    text = f"{invocation} was answered {answer.status} in {answer.milliseconds:.0f} ms."
    report({"id": invocation, "localStatus": answer.status, "localMs": answer.milliseconds}, text)
    if answer.status >= 400:
        sys.exit(FAILED)


def _send_to_listener(invocation: str, name: str) -> None:
    listener = named(name)
    begun = api.post(LocalRun, "listeners", listener.id, "replays", body={"invocationId": invocation})
    until = time.monotonic() + LOCAL_ANSWER_WITHIN
    while begun.ended_at is None and time.monotonic() < until:
        time.sleep(CHECK_RUN_EVERY)
        runs = api.get(Invocation, "invocations", invocation).local_runs
        begun = next((run for run in runs if run.id == begun.id), begun)
    if begun.status is None or begun.error:
        end(
            f"{listener.name}: {begun.error or 'no answer yet; the call shows it when it comes'}", UNAVAILABLE
        )
    report(begun, f"{listener.name} answered {begun.status} in {begun.ms or 0:.0f} ms.")
    if begun.status >= 400:
        sys.exit(FAILED)


def _what(call: InvocationSummary) -> str:
    return " ".join(filter(None, [call.event or "", *call.other_values])) or "-"


@commands.command("recheck")
@click.option("--admit", is_flag=True, help="Start those that pass.")
def recheck(webhook: str, admit: bool) -> None:
    """Find the rejected calls that would pass with the present settings. --admit starts them, each only once."""
    result = api.get(Recheck, "webhooks", webhook, "readmissible")
    started: Admitted | None = None
    while admit and (started is None or started.more):
        # Those that came in meanwhile are among the next ones.
        done = api.post(Admitted, "webhooks", webhook, "readmissible", body={})
        going_on = done.more and done.admitted > 0
        items, before = (started.items, started.admitted) if started else ([], 0)
        started = replace(done, items=items + done.items, admitted=before + done.admitted, more=going_on)
    for_programs(as_plain(result) | (as_plain(started) or {}))
    for sentence in result.in_words:
        out.print(plain(sentence))
    if started is not None:
        out.print(f"{started.admitted} of {max(result.events, started.admitted)} admitted.")
        rows = [[call.invocation_id, "started" if call.admitted else call.reason] for call in started.items]
        show_table(["invocation", "result"], rows, "")


@commands.command("save")
@click.argument("folder", type=PATH, help="Where the file is written, like tests/events.")
@click.option("--as", "name", metavar="NAME", help="What the file is called. Default: after its event.")
@click.option("--replace", is_flag=True, help="Write over a file that is there.")
def save(*, invocation: str, folder: Path, name: str | None, replace: bool) -> None:
    """Save a recorded call as a fixture: a JSON file on which tests of workflows run. It holds the event as a workflow
    gets it, and the headers without credentials and signatures. The payload is in it as it is, with all that it holds.

    Example:

      postern history save inv_… tests/events --as paid
    """
    if name is not None and not PLACE.fullmatch(name):
        end("--as: a name has up to 80 letters, digits, dots, dashes and underscores")
    fixture = api.get(Fixture, "invocations", invocation, "fixture")
    stem = name.removesuffix(".json") if name else file_name(fixture, invocation)
    text, file = as_file(fixture).encode(), folder / f"{stem}.json"
    with in_words(folder, "written"):
        folder.mkdir(parents=True, exist_ok=True)
        there = file.read_bytes() if file.exists() and not replace else None
        if there is None:
            with written_whole(file) as opened:
                opened.write(text)
    if there not in (None, text):
        end(f"{file} exists already and says something else; --replace writes over it", CONFLICT, "conflict")
    report({"written": str(file)}, f"Written: {file}" if there is None else f"It is there already: {file}")
