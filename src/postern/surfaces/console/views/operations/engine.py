"""The workflow engine: how it is, which workflows it knows, what ran, and recording a sample to write a
workflow with."""

from collections.abc import Awaitable, Callable

from starlette.responses import Response

from postern.core.access.accounts import Actor
from postern.surfaces.console.views import picker
from postern.surfaces.console.visit import ViewFunction, Visit, or_none
from postern.usecases.history import samples
from postern.usecases.operations import engine
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.webhooks import picking

KINDS = {"python": "Python", "n8n": "n8n", "nodeRed": "Node-RED", "liquid": "Shopify Flow"}


async def show(visit: Visit) -> Response:
    requested = await visit.ask(picking.meant, visit.query.get("webhook", ""))
    picked = await picker.picked(visit, requested)
    chosen = requested or next((choice.id for choice in picked.choices), "")
    known = await or_none(visit.ask(engine.workflows))
    workflows = known and known.items
    runs = await or_none(visit.ask(engine.runs, 20))
    shown = {chosen, *(webhook_id for workflow in workflows or () for webhook_id in workflow.webhook_ids)}
    names = await visit.ask(picking.names, sorted(shown))
    return visit.page(
        "workflows.html",
        engine=await visit.ask(engine.state),
        workflows=workflows,
        problems=known.problems if known else [],
        runs=runs,
        names=names,
        picked=await picker.picked(visit, chosen) if chosen != requested else picked,
        chosen=chosen,
        sample=await visit.ask(samples.sample, chosen) if chosen in names else None,
        kinds=KINDS,
        kind=visit.query.get("kind", "python"),
    )


def _with_recording(deed: Callable[[Gateway, Actor, str], Awaitable[object]]) -> ViewFunction:
    async def act(visit: Visit) -> Response:
        webhook_id = (await visit.form()).text("webhook")
        await visit.ask(deed, webhook_id)
        return visit.to(f"/workflows?webhook={webhook_id}#record")

    return act


record = _with_recording(samples.arm)
stop_recording = _with_recording(samples.disarm)
forget = _with_recording(samples.forget)


async def beginning(visit: Visit) -> Response:
    """A workflow's first lines, made from the recorded event."""
    webhook_id = visit.query.get("webhook", "")
    source = await visit.ask(samples.new_workflow, visit.query.get("name", "") or "my workflow", webhook_id)
    return visit.page("workflow_source.html", source=source, webhook_id=webhook_id)
