"""Answers about the engine and the gateway's state."""

from postern.core.deliveries import delivery
from postern.usecases.answers import Listing, Time, View, shown


class Workflows(Listing[delivery.Workflow]):
    """``problems``: what keeps workflows from running, in a sentence each."""

    problems: list[str]


class StepOfRun(View):
    """``seconds``: how long the step took with all its tries; of a sleep, how long it was to be."""

    name: str
    seconds: float | None
    error: str | None


class Run(View):
    """``steps``: those that are recorded, where one delivery's runs are asked for and the engine knows them."""

    id: str
    workflow: str
    state: str
    delivery_key: str
    started_at: Time
    ended_at: Time | None
    error: str | None
    steps: list[StepOfRun]


def run_of(run: delivery.Run) -> Run:
    steps = [shown(StepOfRun, step, error=step.error or None) for step in run.steps]
    return shown(Run, run, error=run.error or None, steps=steps)


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
