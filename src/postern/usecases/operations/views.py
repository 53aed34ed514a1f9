"""What is answered about the engine: its workflows and their runs."""

from postern.core.deliveries import delivery
from postern.usecases.answers import Listing, Time, View


class Workflow(View):
    name: str
    webhook_ids: list[str]
    help: str
    source: str


class Workflows(Listing[Workflow]):
    """``problems``: what keeps a workflow from running, in a sentence each."""

    problems: list[str]


class Run(View):
    id: str
    workflow: str
    state: str
    delivery_key: str
    started_at: Time
    ended_at: Time | None
    error: str | None
    steps: list[str]


def workflow_of(workflow: delivery.Workflow) -> Workflow:
    return Workflow(
        name=workflow.name,
        webhook_ids=list(workflow.webhook_ids),
        help=workflow.help,
        source=workflow.source,
    )


def run_of(run: delivery.Run) -> Run:
    return Run(
        id=run.id,
        workflow=run.workflow,
        state=run.state,
        delivery_key=run.delivery_key,
        started_at=Time(run.started_at),
        ended_at=Time.maybe(run.ended_at),
        error=run.error or None,
        steps=list(run.steps),
    )


class Part(View):
    ok: bool
    detail: str


class Status(View):
    """``ready``: as `/readyz` says it."""

    version: str
    base_url: str
    ready: bool
    store: Part
    webhooks: Part
    engine: Part

    def parts(self) -> dict[str, Part]:
        return {"store": self.store, "webhooks": self.webhooks, "engine": self.engine}
