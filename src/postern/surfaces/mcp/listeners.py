"""Tools for whoever listens to calls at their own machine."""

from postern.core.access.accounts import Actor
from postern.surfaces.mcp import arguments as ask
from postern.surfaces.mcp import views
from postern.surfaces.mcp.table import tool
from postern.usecases.history.views.calls import LocalRun
from postern.usecases.listeners import listeners
from postern.usecases.listeners.views import Listener
from postern.usecases.runtime.gateway import Gateway


@tool("List who listens", "read", ask.Nothing)
async def list_listeners(gateway: Gateway, actor: Actor, asked: ask.Nothing) -> views.Items[Listener]:
    """Each `postern listen` that is connected now, by its name. answers names the webhook whose calls it answers in the
    place of the workflow, which is not started meanwhile."""
    return views.Items(items=await listeners.listing(gateway, actor))


@tool("Replay a call to a listener", "write", ask.ReplayToListener, repeatable=False)
async def replay_to_listener(gateway: Gateway, actor: Actor, asked: ask.ReplayToListener) -> LocalRun:
    """Send one recorded call to the program of somebody who listens, as it came. No workflow is started. What the program
    answered stands under localRuns of show_invocation, a moment later."""
    return await listeners.replay(gateway, actor, asked.listener_id, asked.invocation_id)


@tool("End a listener", "write", ask.OneListener, destructive=True)
async def end_listener(gateway: Gateway, actor: Actor, asked: ask.OneListener) -> views.Ended:
    """The webhook that it answers is the workflow's again, and callers that wait for its answer hear a failure. Somebody
    works with it: ask first."""
    await listeners.end(gateway, actor, asked.listener_id)
    return views.Ended(ended=asked.listener_id)
