"""`postern webhooks …`, for what is done with one that is in use: record an event, hold it, run its
schedule."""

from typing import Annotated

import typer

from postern.surfaces.cli.run import ACTOR, FAILED, USAGE, Json, end, report, session, show_json, show_table
from postern.surfaces.cli.webhooks import WebhookId
from postern.surfaces.cli.webhooks import commands as commands
from postern.usecases.deliveries import holds
from postern.usecases.history import samples
from postern.usecases.history.views import NotRecording, Recording
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.schedules import schedules


@commands.command("run")
def run(webhook: WebhookId, as_json: Json = False) -> None:
    """Fetch a schedule's source once, now, and take in what comes."""
    done = session.run(lambda gateway: schedules.run_now(gateway, ACTOR, webhook))
    started = ", ".join(done.invocation_ids) or "nothing started"
    report(
        done,
        f"{done.result} in {done.duration_ms} ms{': ' + done.reason if done.reason else ''} ({started})",
        as_json,
    )
    if done.result == "failed":
        raise typer.Exit(FAILED)


@commands.command("resume")
def resume(webhook: WebhookId, as_json: Json = False) -> None:
    """Let a schedule go on that has paused itself."""
    done = session.run(lambda gateway: schedules.resume(gateway, ACTOR, webhook))
    report(done, f"It goes on at {done.schedule_state and done.schedule_state.next_run_at}.", as_json)


@commands.command("hold")
def hold(webhook: WebhookId, as_json: Json = False) -> None:
    """Accept and record calls as ever, and start nothing until `release`: for maintenance without loss."""
    done = session.run(lambda gateway: holds.hold(gateway, ACTOR, webhook))
    report(done, "On hold: calls are recorded, and wait.", as_json)


@commands.command("release")
def release(webhook: WebhookId, as_json: Json = False) -> None:
    """End the hold and start what waited, the oldest first."""
    done = session.run(lambda gateway: holds.release(gateway, ACTOR, webhook))
    report(done, f"Released: {done.released} deliveries are due now.", as_json)


@commands.command("drop")
def drop(
    webhook: WebhookId,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Give up what waits behind a hold. Each call stays in the history and can be replayed. The hold goes
    on."""
    if not yes and not as_json:
        typer.confirm("What waits now will not be started. Drop it?", abort=True)
    done = session.run(lambda gateway: holds.drop(gateway, ACTOR, webhook))
    report(done, f"Dropped {done.dropped} deliveries.", as_json)


@commands.command("record")
def record(
    webhook: Annotated[
        str | None,
        typer.Argument(metavar="[WEBHOOK]", help="The webhook's id (wh_…), or leave it out and say --all."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every webhook, each until its own next event.")
    ] = False,
    minutes: Annotated[float, typer.Option(help="How long to wait for it.")] = 10,
    off: Annotated[bool, typer.Option("--off", help="Stop waiting for it.")] = False,
    as_json: Json = False,
) -> None:
    """Record Events: keep the next accepted call or replay as the webhook's sample."""
    if (webhook is None) != every:
        end("name one webhook, or say --all", USAGE)

    async def use_case(gateway: Gateway) -> Recording | NotRecording:
        return await (
            samples.disarm(gateway, ACTOR, webhook)
            if off
            else samples.arm(gateway, ACTOR, webhook, minutes * 60)
        )

    done = session.run(use_case)
    which = "every webhook" if every else webhook
    report(
        done,
        f"Not recording {which}."
        if off
        else f"Recording the next event of {which}, until {done.recording_until}.",
        as_json,
    )


@commands.command("sample")
def sample(
    webhook: WebhookId,
    language: Annotated[
        str, typer.Option("--for", help="Whose expressions to show: python, n8n, nodeRed or liquid.")
    ] = "python",
    forget: Annotated[bool, typer.Option("--forget", help="Delete what was recorded.")] = False,
    as_json: Json = False,
) -> None:
    """The recorded event: its variables, an example of each, and what to write to use it."""
    if forget:
        session.run(lambda gateway: samples.forget(gateway, ACTOR, webhook))
        report({"forgotten": webhook}, "Forgotten.", as_json)
        return
    found = session.run(lambda gateway: samples.sample(gateway, ACTOR, webhook))
    if as_json:
        show_json(found)
        return
    rows = [[one.path, one.type, one.example, one.expressions.get(language, "")] for one in found.variables]
    show_table(
        ["variable", "type", "example", "expression"],
        rows,
        f"Nothing recorded yet: postern webhooks record {webhook}",
    )
