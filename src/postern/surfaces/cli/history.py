"""`postern history …` and `postern replay`."""

from typing import Annotated, Any

import typer

from postern.core.deliveries.delivery import FIELD_NAMES
from postern.core.history.invocation import STATUSES
from postern.surfaces.cli.run import (
    ACTOR,
    USAGE,
    Cursor,
    Json,
    Limit,
    end,
    report,
    session,
    show_json,
    show_page,
    show_table,
)
from postern.surfaces.cli.run import show as show_found
from postern.usecases.answers import as_plain
from postern.usecases.history import history
from postern.usecases.history.views import InvocationSummary

commands = typer.Typer(no_args_is_help=True, help="Look at what was called, and at what became of it.")

InvocationId = Annotated[str, typer.Argument(metavar="INVOCATION", help="The invocation's id (inv_…).")]


@commands.command("list")
def listing(
    webhook: Annotated[str | None, typer.Option(help="Only calls to this webhook (wh_…).")] = None,
    status: Annotated[str | None, typer.Option(help=f"Only these: {', '.join(STATUSES)}.")] = None,
    code: Annotated[
        str | None, typer.Option(help="Only calls with this reason, like signature_mismatch.")
    ] = None,
    since: Annotated[str | None, typer.Option(help="Not before this time (2026-11-21T09:00:00Z).")] = None,
    until: Annotated[str | None, typer.Option(help="Before this time.")] = None,
    search: Annotated[
        str | None, typer.Option(help="Only calls whose headers, query or body hold this text.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: Json = False,
) -> None:
    """The calls, newest first, rejected ones too."""

    async def use_case(gateway: Any) -> Any:
        wanted = history.filter_of(
            webhook_id=webhook, status=status, code=code, since=since, until=until, search=search
        )
        return await history.listing(gateway, ACTOR, wanted, limit, cursor)

    show_page(
        session.run(use_case),
        as_json,
        ["received", "id", "status", "reason", "http", "ms", "from"],
        "No call yet.",
        _row,
    )


@commands.command("show")
def show(invocation: InvocationId, as_json: Json = False) -> None:
    """One call's whole story: what came, what was decided and why, what was started."""
    show_found(session.run(lambda gateway: history.show(gateway, ACTOR, invocation)), as_json)


@commands.command("curl")
def as_curl(invocation: InvocationId, as_json: Json = False) -> None:
    """A recorded call as a curl command to paste, with placeholders where its secrets were."""
    command = session.run(lambda gateway: history.as_curl(gateway, ACTOR, invocation))
    if as_json:
        show_json({"curl": command})
    else:
        print(command)


@commands.command("preview")
def preview(
    invocation: InvocationId,
    paths: Annotated[list[str], typer.Argument(metavar="FIELD=PATH...", help="Like fieldOne=order.number.")],
    as_json: Json = False,
) -> None:
    """What field paths would take out of a recorded call, before you save them as its webhook's mapping.

    Example:

      postern history preview inv_… fieldOne=order.number 'fieldTwo=items[0].sku'
    """
    given = dict(path.partition("=")[::2] for path in paths)
    if unknown := given.keys() - set(FIELD_NAMES):
        end(f"{min(unknown)!r} is no field; write {FIELD_NAMES[0]}=PATH, to {FIELD_NAMES[-1]}", USAGE)
    found = session.run(lambda gateway: history.preview(gateway, ACTOR, invocation, given))
    if as_json:
        show_json(found)
    else:
        values = as_plain(found)
        show_table(
            ["field", "path", "value"],
            [
                [name, given[name], "(nothing there)" if value is None else value]
                for name, value in values.items()
            ],
            "",
        )


def replay(
    invocation: InvocationId,
    recorded: Annotated[
        bool,
        typer.Option(
            "--recorded",
            help="With the four values as they were recorded, not as the mapping finds them now.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Start the workflow again with a recorded call's payload and the field mapping as it is now."""
    values: history.Values = "recorded" if recorded else "current"
    done = session.run(lambda gateway: history.replay(gateway, ACTOR, invocation, values))
    report(done, f"Replay {done.delivery.emission} of {invocation} is queued.", as_json)


def _row(one: InvocationSummary) -> list[Any]:
    reason = one.detail or one.code
    return [
        one.received_at,
        one.id,
        _status(one),
        reason,
        one.http_status,
        one.duration_ms,
        one.address,
    ]


def _status(one: InvocationSummary) -> str:
    return f"{one.status} (no workflow listens)" if one.nobody_listens else str(one.status)
