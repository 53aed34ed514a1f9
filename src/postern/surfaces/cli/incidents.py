"""`postern incidents` and `channels`: what alarms have found, proposals for a webhook's rhythm, and who is told."""

import click

from postern.surfaces.cli.files import read_or_ask
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.options import Group, limit_option
from postern.surfaces.cli.run import out, plain, report, show, show_page
from postern.usecases.alarms.views import Channel, Incident, IncidentStory, ProposedRhythm, TriedChannel
from postern.usecases.answers import Listing, as_json

commands = Group("incidents", help="Incidents that alarms have found, and rhythms of webhooks.")
channels = Group("channels", help="Who hears of incidents.")
incident_argument = click.argument("incident", metavar="INCIDENT", help="The incident's id (inc_…).")


@commands.command("list")
@click.option("--webhook", help="Only those of this webhook, by its id; `gateway`: its own alone.")
@click.option("--open", "only_open", is_flag=True, help="Only those that are not over.")
@limit_option(50)
def listing(*, webhook: str | None, only_open: bool, limit: int, cursor: str | None) -> None:
    """List the incidents, newest first."""
    page = api.get(
        Listing[Incident], "incidents", limit=limit, cursor=cursor, webhook_id=webhook, open=only_open or None
    )
    show_page(
        page,
        "No incident.",
        {
            "id": "id",
            "webhook": lambda incident: incident.webhook_name or incident.webhook_id or "-",
            "kind": "kind",
            "count": "count",
            "first": "firstAt",
            "last": "lastAt",
            "over": lambda incident: str(incident.closed_at or "open"),
            "what": "sentence",
        },
    )


@commands.command("show")
@incident_argument
def show_one(incident: str) -> None:
    """Show an incident with its newest calls, what would make them verify, and what can be done now."""
    show(api.get(IncidentStory, "incidents", incident))


@commands.command("acknowledge")
@incident_argument
@click.option("--note", default="", help="What you do about it.")
def acknowledge(incident: str, note: str) -> None:
    """Acknowledge an incident: nobody is reminded of it any more. It closes by itself when all is well."""
    done = api.post(Incident, "incidents", incident, "acknowledge", note=note or None)
    report(done, f"{done.id} is acknowledged by {plain(done.acknowledged_by)}.")


@commands.command("rhythm")
@click.option("--time-zone", help="In whose hours, like Europe/Berlin. Needed if the calls keep to hours.")
def rhythm(webhook: str, time_zone: str | None) -> None:
    """Propose the rhythm of a webhook: when its calls come, and how often it would have rung."""
    proposal = api.get(ProposedRhythm, "webhooks", webhook, "rhythm", time_zone=time_zone)
    report(proposal, proposal.evidence)
    if proposal.rows:
        setting = as_json({"rows": proposal.rows, "timeZone": proposal.time_zone})
        out.print(f"To be told of a silence, set alarms.rhythm to {setting.decode()}")


@channels.command("list")
def list_channels() -> None:
    """List the channels. Those without an id are in POSTERN_TELL, and are changed there."""
    page = api.get(Listing[Channel], "channels")
    show_page(
        page,
        "No channel yet: postern channels add --address env:NAME",
        {
            "id": lambda channel: channel.id or "-",
            "name": "name",
            "kind": "kind",
            "hears of": lambda channel: channel.webhook_name or channel.webhook_id or channel.folder or "all",
            "by": "createdBy",
        },
    )


@channels.command("add")
@click.option(
    "--address", help="env:NAME, file:PATH or -. Left out: asked for. It is like slack+https://… or mailto:…."
)
@click.option("--name", default="", help="How it is called in lists and in the log.")
@click.option("--webhook", help="It hears of this webhook alone, by its id.")
@click.option("--folder", help="It hears of the webhooks in this folder alone, and those inside it.")
def add_channel(address: str | None, name: str, webhook: str | None, folder: str | None) -> None:
    """Add a channel: Slack, Teams, Discord, ntfy, Telegram, mail or a webhook that hears of incidents.

    Example:

      OPS=slack+https://hooks.slack.com/services/… postern channels add --address env:OPS --name "Ops in Slack"
    """
    body = {"address": read_or_ask(address, "--address", "Address"), "name": name, "webhookId": webhook}
    made = api.post(Channel, "channels", body=body | {"folder": folder})
    report(made, f"{made.name} hears of incidents: {made.id}. Try it: postern channels test {made.id}")


@channels.command("delete")
@click.argument("channel", help="The channel's id (ch_…).")
def delete_channel(channel: str) -> None:
    """Delete a channel. It hears of nothing any more."""
    api.delete("channels", channel)
    report({"deleted": channel}, "Deleted.")


@channels.command("test")
@click.argument("channel", required=False, help="Only this one, by its id (ch_…).")
def test(channel: str | None) -> None:
    """Send a test message to every channel, or to one."""
    page = api.post(Listing[TriedChannel], "channel-tests", channel_id=channel)
    report(page, "; ".join(plain(f"{tried.channel}: {tried.detail or 'taken'}") for tried in page.items))
