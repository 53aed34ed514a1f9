"""The text of `postern history show`."""

import json
from collections.abc import Iterable

from postern.surfaces.cli.run import counted, out, plain
from postern.usecases.history.views.calls import Delivery, Invocation, LocalRun


def show_story(call: Invocation) -> None:
    """Prints the call. Text from outside stays on one line, whatever it holds."""
    out.print(plain(f"{call.method} {call.path}{'?' if call.query else ''}{call.query}"), "bold")
    out.print(
        f"{call.received_at}  from {call.address or 'nobody'}  {call.id}  to {call.webhook_id}, version {call.config_version}"
    )
    admitted = bool(call.deliveries) and call.code not in ("accepted", "edited", "duplicate", "handshake")
    was = "started after it was filtered" if call.code == "filtered" else "admitted after it was rejected"
    status = f"{call.status}, {was}" if admitted else call.status
    out.print(f"{status}: {call.code}{plain(f', {call.detail}' if call.detail else '')}")
    out.print(_heard(call))
    if call.duplicate_of:
        out.print(f"It is a duplicate of {call.duplicate_of}.")
    if call.edited is not None:
        out.print(
            plain(
                f"{call.edited.by} made it of {call.edited.invocation_id}: {', '.join(call.edited.changed)}"
            )
        )
    for other in call.edited_replays:
        out.print(f"{other} was made of it.")
    _section(
        "Decided", (f"{'ok' if entry.ok else 'no'}  {entry.step}: {entry.detail}" for entry in call.trace)
    )
    _section("Headers", (f"{name}: {value}" for name, value in call.headers))
    _section(f"Body, {counted(call.body_size, 'byte')}", _body(call))
    for delivery in call.deliveries:
        _section(_title(delivery), _delivery(delivery))
    _section("Listeners", map(_local_run, call.local_runs))
    notes = [f"{note.at}  {note.by}: {note.text}" for note in call.notes]
    bookmark = [f"{call.bookmark.at}  {call.bookmark.by} bookmarked it"] if call.bookmark else []
    _section("Notes", bookmark + notes)


def _section(title: str, lines: Iterable[str]) -> None:
    lines = list(lines)
    if lines:
        out.print()
        out.print(plain(title), "bold")
    for line in lines:
        out.print(f"  {plain(line)}".rstrip())


def _heard(call: Invocation) -> str:
    if call.uncalled:
        return f"{call.uncalled[:1].upper()}{call.uncalled[1:]}."
    if call.http_status is None:
        return "The caller waits for its answer."
    left = " The caller had left by then." if call.caller_gone else ""
    return f"It was answered {call.http_status} after {call.duration_ms:g} ms.{left}"


def _body(call: Invocation) -> list[str]:
    if call.body is None:
        return ["never read, or not kept any more"]
    if call.body_truncated or not call.body.lstrip().startswith(("{", "[")):
        return [*call.body.splitlines(), *(["… and more, which is not kept"] if call.body_truncated else [])]
    try:
        return json.dumps(json.loads(call.body), ensure_ascii=False, indent=2).splitlines()
    except (ValueError, RecursionError):
        return call.body.splitlines()


def _title(delivery: Delivery) -> str:
    what = "Start" if delivery.emission == 1 else f"Replay {delivery.emission}"
    return f"{what}{f', asked by {delivery.asked_by}' if delivery.asked_by else ''}: {delivery.state}"


def _delivery(delivery: Delivery) -> Iterable[str]:
    yield from (f"{name} = {value}" for name, value in delivery.fields.items())
    for tried in delivery.log:
        workflows = f" {', '.join(tried.workflows)}" if tried.workflows else ""
        yield f"{tried.at}  {tried.outcome}{workflows}{f': {tried.detail}' if tried.detail else ''}"
    if delivery.nobody_listens:
        yield "no workflow wants it"
    if delivery.waits_for is not None:
        yield f"waits for {delivery.waits_for}"
    if delivery.superseded_by is not None:
        yield f"in its place {delivery.superseded_by} was started"
    if delivery.next_attempt_at is not None:
        yield f"{delivery.next_attempt_at}  the next try"
    if delivery.response is not None:
        late = ", too late" if delivery.late else ""
        yield f"{delivery.responded_at}  answered {delivery.response.status}{late}: {delivery.response.body}"
    if delivery.ended_at is not None:
        yield f"{delivery.ended_at}  ended{f': {delivery.error}' if delivery.error else ''}"


def _local_run(run: LocalRun) -> str:
    ended = run.error or (f"answered {run.status} in {run.ms or 0:.0f} ms" if run.status else "no answer yet")
    return f"{run.at}  replay at {run.listener}: {ended}"
