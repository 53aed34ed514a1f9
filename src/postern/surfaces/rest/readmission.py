"""Rejected calls that would pass now, over HTTP."""

from postern.core.access.accounts import Actor
from postern.surfaces.rest.framework.table import Rows
from postern.usecases.calls import readmission
from postern.usecases.calls.views import Recheck
from postern.usecases.runtime.gateway import Gateway

row = Rows("Webhooks")


@row("GET", "/webhooks/{webhook_id}/readmissible", "List rejected calls that would pass now", level="read")
async def list_readmissible(gateway: Gateway, actor: Actor, webhook_id: str) -> Recheck:
    """Judged by the webhook's present settings, at the time they were received. Nothing is started."""
    return await readmission.recheck(gateway, actor, webhook_id)
