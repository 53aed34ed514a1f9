"""Incidents over HTTP, the rhythm of a webhook, and a test of the channels."""

from pydantic import Field

from postern.core.access.accounts import Actor
from postern.surfaces.rest.framework.operation import OnePage, Rows, ShortText
from postern.usecases.alarms import incidents, telling
from postern.usecases.alarms.views import Incident
from postern.usecases.answers import Listing
from postern.usecases.history.marks import NoteText
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import Shape

row = Rows("Incidents")


class IncidentQuery(OnePage):
    webhook_id: ShortText | None = Field(
        default=None, description="Only of the webhook with this id; gateway: only the gateway's own."
    )
    open: bool = Field(default=False, description="Only open ones.")


class RhythmQuery(Shape):
    time_zone: ShortText = Field(
        default="",
        description="Like Europe/Berlin. Needed if the calls keep to hours.",
    )


@row("GET", "/incidents", "List incidents")
async def list_incidents(gateway: Gateway, actor: Actor, query: IncidentQuery) -> Listing[Incident]:
    """Incidents, newest first."""
    return await incidents.listing(gateway, actor, query.limit, query.cursor, query.webhook_id, query.open)


class AcknowledgeQuery(Shape):
    note: NoteText = Field(default="", description="What you do about it.")


row.of(incidents.show, "show_incident", "GET", "/incidents/{incident_id}", "Show an incident")
row.of(
    incidents.acknowledge, "acknowledge_incident", "POST", "/incidents/{incident_id}/acknowledge",
    "Acknowledge an incident", query=AcknowledgeQuery, refuses=("conflict",),
)  # fmt: skip
row.of(
    incidents.rhythm, "propose_rhythm", "GET", "/webhooks/{webhook_id}/rhythm", "Propose a webhook's rhythm",
    query=RhythmQuery,
)  # fmt: skip
row.of(
    telling.test, "test_channels", "POST", "/channel-tests", "Send a test to every channel", refuses=("conflict",),
)  # fmt: skip
