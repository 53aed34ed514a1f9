"""Tools for what happened: searching, explaining, having it happen again."""

from postern.core.access.accounts import Actor
from postern.core.deliveries.delivery import FIELD_NAMES
from postern.surfaces.mcp import arguments as ask
from postern.surfaces.mcp import views
from postern.surfaces.mcp.table import tool
from postern.usecases.answers import Listing
from postern.usecases.calls import readmission
from postern.usecases.calls.views import Admitted, Recheck
from postern.usecases.deliveries import replays
from postern.usecases.deliveries.views import Replay
from postern.usecases.history import comparing, editing, fixtures, history, marks, volumes
from postern.usecases.history.views.calls import (
    Bookmark,
    Count,
    Invocation,
    InvocationSummary,
    Note,
    Replayed,
)
from postern.usecases.history.views.charts import Chart
from postern.usecases.history.views.comparing import Comparison
from postern.usecases.history.views.requests import Fixture
from postern.usecases.history.views.samples import Preview
from postern.usecases.operations import engine
from postern.usecases.operations.views import Run, Workflow
from postern.usecases.runtime.gateway import Gateway


@tool("Search the history", "read", ask.SearchHistory)
async def search_history(
    gateway: Gateway, actor: Actor, asked: ask.SearchHistory
) -> Listing[InvocationSummary]:
    """The recorded calls in short, newest first, rejected ones too: when, to which webhook, status, reason
    code, HTTP status, duration. nobodyListens means that it was started and no workflow wanted it. Payloads
    are shown by show_invocation."""
    return await history.listing(gateway, actor, asked.wanted(), asked.limit, asked.cursor)


@tool("Count calls", "read", ask.CountHistory)
async def count_history(gateway: Gateway, actor: Actor, asked: ask.CountHistory) -> Count:
    """How many recorded calls a filter finds, up to 10,000: orMore tells that there are more, lookedBackTo
    that only the calls since then were counted."""
    return await history.count(gateway, actor, asked.wanted())


@tool(
    "Show an invocation",
    "read",
    ask.OneInvocation,
    outside=("method", "path", "query", "body", "bodyTruncated", "headers"),
    without=("payload",),  # the body once more
)
async def show_invocation(gateway: Gateway, actor: Actor, asked: ask.OneInvocation) -> Invocation:
    """One call's whole story: the verdict with every step that led to it (trace), every delivery to the
    workflow engine with its attempts, and under untrustedInput what the caller sent, cut to a bounded size,
    with credentials masked."""
    return await history.show(gateway, actor, asked.invocation_id)


@tool("Show an invocation as code", "read", ask.AsCode, outside=("code",))
async def show_as_code(gateway: Gateway, actor: Actor, asked: ask.AsCode) -> views.Code:
    """The recorded call as a curl or HTTPie command or a Python program, with placeholders where its secrets
    were. It holds what the caller sent."""
    code = await history.as_code(gateway, actor, asked.invocation_id, asked.language)
    return views.Code(language=asked.language, code=code)


@tool("Save an invocation as a fixture", "read", ask.OneInvocation, outside=("name", "headers", "event"))
async def save_as_fixture(gateway: Gateway, actor: Actor, asked: ask.OneInvocation) -> Fixture:
    """The recorded call as a document for tests of workflow files: the event as a workflow gets it, and headers
    without credentials and signatures. Written to a file, `postern.workflows.testing.load_event` reads it; a long
    event is cut here, and `postern history save` writes it whole."""
    return await fixtures.fixture(gateway, actor, asked.invocation_id)


@tool("Try a field mapping", "read", ask.PreviewMapping, outside=FIELD_NAMES)
async def try_mapping(gateway: Gateway, actor: Actor, asked: ask.PreviewMapping) -> Preview:
    """What field paths would take out of a recorded call, before change_webhook saves them as its
    fieldMapping. Null: nothing there."""
    paths = {name: path for name, path in asked.field_mapping.model_dump(by_alias=True).items() if path}
    return await history.preview(gateway, actor, asked.invocation_id, paths)


@tool("Replay an invocation", "write", ask.ReplayInvocation, repeatable=False)
async def replay_invocation(gateway: Gateway, actor: Actor, asked: ask.ReplayInvocation) -> Replayed:
    """Start the workflow again with a recorded call's payload. The workflow really runs once more, with
    whatever it does outside; only calls that were accepted, or admitted later, can be replayed."""
    return await history.replay(gateway, actor, asked.invocation_id, asked.fields)


@tool("Replay a changed copy of an invocation", "write", ask.ReplayEdited, repeatable=False)
async def replay_edited_invocation(gateway: Gateway, actor: Actor, asked: ask.ReplayEdited) -> Replayed:
    """Start the workflow with another body or other values. The workflow really runs. The answer names the copy, an
    invocation of its own; the recorded call stays as it came."""
    return await editing.replay_edited(
        gateway, actor, asked.invocation_id, asked.body, asked.values, asked.fields
    )


@tool(
    "Compare two invocations",
    "read",
    ask.CompareInvocations,
    outside=("request", "query", "headers", "values", "body"),
)
async def compare_invocations(gateway: Gateway, actor: Actor, asked: ask.CompareInvocations) -> Comparison:
    """What differs between a call and another one, or the last one before it that went well: query, headers, mapped
    values and body, JSON by path. Good for finding why a call failed that used to work."""
    return await comparing.compared(gateway, actor, asked.invocation_id, asked.to)


@tool("Bookmark an invocation", "write", ask.OneInvocation)
async def bookmark_invocation(gateway: Gateway, actor: Actor, asked: ask.OneInvocation) -> Bookmark:
    """Bookmark a call for everybody; search_history finds bookmarked ones. It does not keep the call from retention."""
    return await marks.bookmark(gateway, actor, asked.invocation_id)


@tool("Take a bookmark away", "write", ask.OneInvocation)
async def remove_bookmark(gateway: Gateway, actor: Actor, asked: ask.OneInvocation) -> views.Deleted:
    """The call itself stays."""
    await marks.remove_bookmark(gateway, actor, asked.invocation_id)
    return views.Deleted(deleted=asked.invocation_id)


@tool("Write a note to an invocation", "write", ask.NoteInvocation, repeatable=False)
async def note_invocation(gateway: Gateway, actor: Actor, asked: ask.NoteInvocation) -> Note:
    """For everybody who looks at the call, with who wrote it and when."""
    return await marks.add_note(gateway, actor, asked.invocation_id, asked.text)


@tool("Delete a note", "write", ask.DeleteNote, destructive=True)
async def delete_note(gateway: Gateway, actor: Actor, asked: ask.DeleteNote) -> views.Deleted:
    """One's own, or, for an administrator, anybody's."""
    await marks.delete_note(gateway, actor, asked.invocation_id, asked.note_id)
    return views.Deleted(deleted=asked.note_id)


@tool("Plan a replay of many", "write", ask.PlanReplay, repeatable=False)
async def plan_replay(gateway: Gateway, actor: Actor, asked: ask.PlanReplay) -> Replay:
    """The first step of replaying many: counts the calls that a filter finds and starts nothing. Tell the
    count to whoever asked for it before run_replay; calls that come in later are not part of it."""
    return await replays.plan(gateway, actor, asked.wanted(), asked.include_completed)


@tool("Run a planned replay", "write", ask.RunReplay, repeatable=False)
async def run_replay(gateway: Gateway, actor: Actor, asked: ask.RunReplay) -> Replay:
    """The second step: start the workflow again for every call of a plan, the oldest first, in the
    background. Workflows really run. Follow it with show_replay; cancel_replay stops it."""
    return await replays.begin(gateway, actor, asked.replay_id, asked.fields)


@tool("Show a replay's progress", "read", ask.OneReplay)
async def show_replay(gateway: Gateway, actor: Actor, asked: ask.OneReplay) -> Replay:
    """How far a replay of many has come: state, how many of how many are done, how many were skipped."""
    return await replays.show(gateway, actor, asked.replay_id)


@tool("Cancel a replay", "write", ask.OneReplay)
async def cancel_replay(gateway: Gateway, actor: Actor, asked: ask.OneReplay) -> Replay:
    """Stop a replay of many. What was queued by then is still started."""
    return await replays.cancel(gateway, actor, asked.replay_id)


@tool("List replays of many", "read", ask.OnePage)
async def list_replays(gateway: Gateway, actor: Actor, asked: ask.OnePage) -> Listing[Replay]:
    """The replays of many, newest first, planned, running and ended ones."""
    return await replays.listing(gateway, actor, asked.limit, asked.cursor)


@tool("Show call volume", "read", ask.CallVolume, without=("points",))
async def show_call_volume(gateway: Gateway, actor: Actor, asked: ask.CallVolume) -> Chart:
    """How many calls came in the last hour, day, week or month, by reason code and outcome, and how long
    answering took."""
    return await volumes.chart(gateway, actor, asked.webhook_id, asked.span)


@tool("Find rejected calls that pass now", "read", ask.OneWebhook)
async def recheck_rejected(gateway: Gateway, actor: Actor, asked: ask.OneWebhook) -> Recheck:
    """After a webhook's settings were fixed: which of its recorded rejected calls would be accepted today.
    Nothing is started."""
    return await readmission.recheck(gateway, actor, asked.webhook_id)


@tool("Admit rejected calls", "write", ask.ManyInvocations)
async def admit_rejected(gateway: Gateway, actor: Actor, asked: ask.ManyInvocations) -> Admitted:
    """Start rejected calls that recheck_rejected has found to pass now. Each is judged again; what the sender
    has sent again meanwhile, or was admitted before, is left alone. Workflows really run."""
    return await readmission.admit(gateway, actor, asked.invocation_ids)


@tool("List workflows", "read", ask.Nothing)
async def list_workflows(gateway: Gateway, actor: Actor, asked: ask.Nothing) -> views.Items[Workflow]:
    """The workflows that the engine knows and which webhook ids each one wants; none named means every
    webhook's events."""
    return views.Items(items=await engine.workflows(gateway, actor))


@tool("List runs", "read", ask.ListRuns)
async def list_runs(gateway: Gateway, actor: Actor, asked: ask.ListRuns) -> views.Items[Run]:
    """The newest runs of workflows, or those of one delivery: state, steps done, error."""
    return views.Items(items=await engine.runs(gateway, actor, asked.limit, asked.delivery_key))
