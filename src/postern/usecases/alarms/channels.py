"""Channels, which hear of incidents: those of POSTERN_TELL, and those that somebody added."""

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from postern.core.access.accounts import Actor
from postern.core.moment import Time
from postern.core.problems import FieldError, Refused, refuse_wrong
from postern.core.visible import on_one_line
from postern.core.watch.channels import AN_ADDRESS, AddedChannel, Channel, read_channel
from postern.core.webhooks.grouping import is_inside
from postern.identity import new_id
from postern.usecases.access.audit import noted
from postern.usecases.alarms import views
from postern.usecases.answers import Listing, whole
from postern.usecases.runtime.gateway import Gateway, require

MOST_CHANNELS = 50
LONGEST_NAME = 80
LONGEST_ADDRESS = 2_000

ChannelName = Annotated[str, Field(max_length=LONGEST_NAME)]


async def known(gateway: Gateway) -> list[Channel]:
    added = await gateway.store.channels.all()
    return [*gateway.alarms.channels, *(_with_address(*pair) for pair in added)]


def _with_address(channel: AddedChannel, address: str) -> Channel:
    try:
        return replace(read_channel(address), added=channel)
    except ValueError:
        return Channel(channel.kind, "", "", added=channel)


def hears_of(gateway: Gateway, channel: Channel, webhook_id: str) -> bool:
    """``webhook_id``: empty for an incident of the gateway itself."""
    stored = channel.added
    if stored is None or not (stored.webhook_id or stored.folder):
        return True
    if stored.webhook_id:
        return stored.webhook_id == webhook_id
    listed = gateway.runtime.directory.listed_by_id(webhook_id)
    return listed is not None and is_inside(listed.folder, stored.folder or "")


async def listing(gateway: Gateway, actor: Actor) -> Listing[views.Channel]:
    """Every channel, without its address, which is a secret. Those of POSTERN_TELL have no id, and are changed there."""
    require(actor, "read")
    return whole(_view(gateway, channel) for channel in await known(gateway))


async def add(
    gateway: Gateway,
    actor: Actor,
    address: str,
    name: str = "",
    webhook_id: str | None = None,
    folder: str | None = None,
) -> views.Channel:
    """Add a channel. It hears of one webhook, of the webhooks in one folder and those inside it, or, where neither is named, of
    every incident. ``address``: as in POSTERN_TELL; no answer holds it again."""
    require(actor, "write")
    name, webhook_id, folder = " ".join(name.split()), webhook_id or None, (folder or "").strip("/ ") or None
    directory = gateway.runtime.directory
    wrong = []
    if name and (len(name) > LONGEST_NAME or not on_one_line(name)):
        wrong.append(FieldError("name", f"a name is at most {LONGEST_NAME} characters on one line"))
    if webhook_id and directory.listed_by_id(webhook_id) is None:
        wrong.append(FieldError("webhookId", "there is no webhook with this id"))
    if folder and not any(is_inside(other, folder) for other in directory.groups().folders):
        wrong.append(FieldError("folder", "no webhook is in this folder"))
    if webhook_id and folder:
        wrong.append(FieldError("folder", "name a webhook or a folder, not both"))
    try:
        read: Channel | None = _read(address)
    except ValueError:
        read = None
        wrong.append(FieldError("address", AN_ADDRESS))
    if read and read.kind == "mailto" and not gateway.alarms.mails:
        wrong.append(FieldError("address", "there is no mail server: set POSTERN_SMTP_URL"))
    refuse_wrong(wrong)
    assert read is not None
    added = AddedChannel(
        new_id("ch"), name or read.name, read.kind, webhook_id, folder, Time(gateway.clock()), actor.name
    )
    note = noted(gateway, actor, "channel added", added.id, name=added.name, kind=added.kind)
    if not await gateway.store.channels.add(added, address.strip(), MOST_CHANNELS, note):
        raise Refused("conflict", f"there are {MOST_CHANNELS} channels; delete one first")
    return _view(gateway, replace(read, added=added))


def _read(address: str) -> Channel:
    text = address.strip()
    if len(text) > LONGEST_ADDRESS or len(text.split()) != 1:
        raise ValueError
    return read_channel(text)


async def delete(gateway: Gateway, actor: Actor, channel_id: str) -> None:
    """Delete a channel. It hears of nothing any more, not even of the end of what it was told."""
    require(actor, "write")
    note = noted(gateway, actor, "channel deleted", channel_id)
    if not await gateway.store.channels.delete(channel_id, note):
        raise Refused("not_found", "there is no channel with this id")


def _view(gateway: Gateway, channel: Channel) -> views.Channel:
    added = channel.added
    listed = gateway.runtime.directory.listed_by_id(added.webhook_id or "") if added else None
    return views.Channel(
        id=added.id if added else None,
        name=channel.name,
        kind=channel.kind,
        webhook_id=added.webhook_id if added else None,
        webhook_name=listed.name if listed else None,
        folder=added.folder if added else None,
        created_at=added.created_at if added else None,
        created_by=added.created_by if added else "POSTERN_TELL",
    )
