"""Incidents over HTTP, the rhythm of a webhook, and the channels that hear of incidents."""

from pydantic import Field

from postern.core.access.accounts import Actor
from postern.surfaces.rest.framework.operation import OnePage, Rows, ShortText
from postern.usecases.alarms import channels, incidents, telling
from postern.usecases.alarms.views import Incident
from postern.usecases.answers import Listing
from postern.usecases.history.marks import NoteText
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import Shape

row = Rows("Incidents")


class ChannelRequest(Shape):
    address: str = Field(
        min_length=1,
        max_length=channels.LONGEST_ADDRESS,
        repr=False,
        description="As in POSTERN_TELL, like slack+https://… or mailto:…. No answer holds it again.",
    )
    name: channels.ChannelName = Field(default="", description="Left out: the kind and the host.")
    webhook_id: ShortText | None = Field(default=None, description="It hears of this webhook alone.")
    folder: ShortText | None = Field(
        default=None, description="It hears of the webhooks in this folder and those inside it."
    )


class ChannelTestQuery(Shape):
    channel_id: ShortText | None = Field(default=None, description="Only to the channel with this id.")


class IncidentQuery(OnePage):
    webhook_id: ShortText | None = Field(
        default=None, description="Only of the webhook with this id; gateway: only the gateway's own."
    )
    open: bool = Field(default=False, description="Only open ones.")


class RhythmQuery(Shape):
    time_zone: ShortText = Field(
        default="", description="Like Europe/Berlin. Needed if the calls keep to hours."
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
row.of(channels.listing, "list_channels", "GET", "/channels", "List channels")
row.of(
    channels.add, "add_channel", "POST", "/channels", "Add a channel",
    body=ChannelRequest, status=201, place="channels", idempotent=True, refuses=("conflict",),
)  # fmt: skip
row.of(
    channels.delete, "delete_channel", "DELETE", "/channels/{channel_id}", "Delete a channel", status=204,
)  # fmt: skip
row.of(
    telling.test, "test_channels", "POST", "/channel-tests", "Send a test to channels",
    query=ChannelTestQuery, refuses=("conflict", "not_found"),
)  # fmt: skip
