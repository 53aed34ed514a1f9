"""Asks the engine for its workflows, its runs and its health."""

from collections.abc import Awaitable, Iterable
from typing import TypeVar

from msgspec import Struct

from postern.core.access.accounts import Actor
from postern.core.deliveries.delivery import EngineHealth, EngineUnavailable, Workflow
from postern.core.problems import Refused
from postern.usecases.answers import page_size
from postern.usecases.operations import views
from postern.usecases.operations.readiness import own_engine
from postern.usecases.runtime.gateway import Gateway, require

T = TypeVar("T")


class EngineState(Struct, frozen=True):
    name: str
    health: EngineHealth | None
    """None if this process has no engine."""


async def state(gateway: Gateway, actor: Actor) -> EngineState:
    """Which engine runs the workflows, and how it is."""
    require(actor, "read")
    if gateway.engine is None:
        return EngineState("none", None)
    return EngineState(gateway.engine.name, await gateway.engine.health())


def runs_workflow_files(gateway: Gateway) -> bool:
    """Whether workflows are files here, and not kept by another engine."""
    return gateway.workflow_files.path is not None


async def workflows(gateway: Gateway, actor: Actor) -> views.Workflows:
    """The workflows that the engine knows, the Webhook IDs each one wants, and what keeps one from running."""
    require(actor, "read")
    if gateway.engine is None:
        known, broken = await _answer(gateway.workflow_files.known())
    else:
        known = await _answer(gateway.engine.workflows())
        broken = list((await own_engine(gateway)).problems)
    if known is None:
        raise Refused("conflict", "this engine cannot say which workflows it has")
    return views.Workflows(items=known, next_cursor=None, problems=broken + problems_of(gateway, known))


def problems_of(gateway: Gateway, known: Iterable[Workflow]) -> list[str]:
    """Workflows that want the calls of a webhook that is not there."""
    directory = gateway.runtime.directory
    by_name = {webhook.name: webhook.id for webhook in directory.listed()}
    problems = []
    for workflow in known:
        for webhook_id in workflow.webhook_ids:
            if directory.by_id(webhook_id) is None and webhook_id not in directory.not_served:
                meant = f": did you mean {by_name[webhook_id]}?" if webhook_id in by_name else ""
                place = f"{workflow.source}: " if workflow.source else ""
                problems.append(
                    f"{place}{workflow.name} wants calls of {webhook_id}, which is no webhook here{meant}"
                )
    return problems


async def runs(
    gateway: Gateway, actor: Actor, limit: int = 50, delivery_key: str | None = None
) -> list[views.Run]:
    """The newest runs, or those of one delivery."""
    require(actor, "read")
    listed = None
    if gateway.engine is not None:
        listed = await _answer(gateway.engine.runs(page_size(limit), delivery_key))
    if listed is None:
        raise Refused("conflict", "this engine cannot list its runs")
    return [views.run_of(run) for run in listed]


async def _answer(answer: Awaitable[T]) -> T:
    try:
        return await answer
    except EngineUnavailable as trouble:
        raise Refused("engine_unavailable", trouble.detail) from None
