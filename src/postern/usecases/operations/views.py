"""Answers about the engine and the gateway's state."""

from postern.core.deliveries import delivery
from postern.usecases.answers import Listing, Time, View, shown


class Workflows(Listing[delivery.Workflow]):
    """``problems``: what keeps workflows from running, in a sentence each."""

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


def run_of(run: delivery.Run) -> Run:
    return shown(Run, run, error=run.error or None, steps=list(run.steps))


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
