"""Telling incidents to channels, by one process at a time: when one opens, for each reason that comes later, daily, and at its end."""

import asyncio
import json
import re
import tomllib
from html import escape
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from postern.core.access.accounts import Actor
from postern.core.choices import complete
from postern.core.documents import Document
from postern.core.moment import to_the_minute
from postern.core.problems import FetchTrouble, Refused
from postern.core.signatures.outgoing import signature, signing_key
from postern.core.watch.alarms import Incident, reasons_to_tell
from postern.core.watch.channels import Channel, ChannelKind, ChannelState
from postern.identity import new_id
from postern.observe.logs import log
from postern.observe.metrics import Numbers
from postern.usecases.alarms import channels, incidents, views
from postern.usecases.answers import Listing, Time, whole
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.runtime.loop import Loop

TELL_EVERY = 5.0
MESSAGES_AT_ONCE = 20
FIRST_WAIT, LONGEST_WAIT = 10.0, 3600.0
MOST_TRIES = 32
"""They take a little more than a day."""
A_DAY = 86_400.0
"""Seconds after its last message until a channel is reminded of what is open and not acknowledged."""
TIMEOUT = 10.0
LARGEST_ANSWER = 64 * 1024
LONGEST_TEXT = 1_500
"""Characters: Discord takes 2,000."""

FORMS = complete(
    tomllib.loads(Path(__file__).with_name("channels.toml").read_text("utf-8")),
    ChannelKind,
    besides=("webhook", "mailto"),
)
IncidentMoment = Literal["opened", "updated", "reminded", "closed"]


class Notice(Struct, frozen=True):
    """A message, as a text and, for programs, as a ``document``. Its key stays the same when it is sent again."""

    key: str
    said: str
    link: str
    document: Document


class TellLoop:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        loop = Loop("telling", self.round, TELL_EVERY)
        self.run, self.stop = loop.run, loop.stop

    async def round(self) -> bool:
        gateway = self._gateway
        all_of_them = await channels.known(gateway)
        if not all_of_them:
            return False
        mine = await gateway.store.incidents.claim_to_tell(gateway.clock(), MESSAGES_AT_ONCE)
        await asyncio.gather(*(self._tell(incident, all_of_them) for incident in mine))
        return len(mine) == MESSAGES_AT_ONCE

    async def _tell(self, incident: Incident, all_of_them: list[Channel]) -> None:
        gateway = self._gateway
        # One that was told goes on, also where the webhook is deleted or in another folder since.
        hearing = [
            channel
            for channel in all_of_them
            if channel.key in incident.told or channels.hears_of(gateway, channel, incident.webhook_id)
        ]
        known = {
            channel.key: incident.told.get(channel.key, ChannelState(channel.name)) for channel in hearing
        }
        done = await asyncio.gather(
            *(self._tell_one(channel, known[channel.key], incident) for channel in hearing)
        )
        told = incident.told | dict(zip(known, done, strict=True))
        waits = [state.next_at for state in done if _to_tell(incident, state) is not None]
        await gateway.store.incidents.have_told(incident, told, min(waits, default=None), gateway.clock())

    async def _tell_one(self, channel: Channel, told: ChannelState, incident: Incident) -> ChannelState:
        gateway, moment, now = self._gateway, _to_tell(incident, told), self._gateway.clock()
        if told.next_at - now > (LONGEST_WAIT if told.tries else A_DAY):  # set by a clock that was ahead
            told = replace(told, next_at=now if told.tries else now + A_DAY)
        # A reminder that waits keeps no news back.
        if moment is None or (now < told.next_at and (told.tries or moment == "reminded")):
            return told
        reasons = tuple(dict.fromkeys([*told.reasons, *reasons_to_tell(incident)]))
        error, wait = await _sent(gateway, channel, await _notice(gateway, incident, moment, len(reasons)))
        if not error:
            Numbers.told.labels(channel.kind, "told").inc()
            opened_at, closed_at = told.opened_at or now, now if moment == "closed" else 0.0
            told = replace(told, tries=0, next_at=now + A_DAY, error="", reasons=reasons)
            return replace(told, opened_at=opened_at, closed_at=closed_at)
        tries = told.tries + 1
        outcome = "given up" if tries == MOST_TRIES else "failed"
        Numbers.told.labels(channel.kind, outcome).inc()
        about = {"incident": incident.id, "channel": channel.name, "tries": tries}
        log.warning("an incident could not be told", error=error, **about)
        if moment in ("updated", "reminded") and tries == MOST_TRIES:
            return replace(told, tries=0, next_at=now + A_DAY, error=error)
        pause = min(max(FIRST_WAIT * 2 ** (tries - 1), wait), LONGEST_WAIT)
        return replace(told, tries=tries, next_at=now + pause, error=error)


async def test(gateway: Gateway, actor: Actor, channel_id: str | None = None) -> Listing[views.TriedChannel]:
    """Send a test message to every channel, or to one, and say which of them took it."""
    require(actor, "write")
    tried = [channel for channel in await channels.known(gateway) if channel_id in (None, channel.key)]
    if not tried and channel_id is not None:
        raise Refused("not_found", "there is no channel with this id")
    if not tried:
        raise Refused("conflict", "there is no channel: add one, or set POSTERN_TELL")
    link = f"{gateway.site.base_url}/incidents"
    said = (
        "Postern: a test. Incidents are told here when they open, for each other reason, each day until somebody"
        " acknowledges them, and when they close."
    )
    at = str(Time(gateway.clock()))
    document = {"type": "test", "timestamp": at, "data": {"sentence": said, "url": link}}
    notice = Notice(new_id("msg"), said, link, document)
    results = await asyncio.gather(*(_sent(gateway, channel, notice) for channel in tried))
    return whole(
        views.TriedChannel(channel.name, not error, error)
        for channel, (error, _) in zip(tried, results, strict=True)
    )


def _to_tell(incident: Incident, told: ChannelState) -> IncidentMoment | None:
    """The message that the channel still has to get, if anything. The end is told only to a channel that was told the opening."""
    if told.tries >= MOST_TRIES:
        return None
    if incident.closed_at is not None:
        return "closed" if told.opened_at and not told.closed_at else None
    if incident.acknowledged_at is not None:
        return None
    if not told.opened_at:
        return "opened"
    return "updated" if set(reasons_to_tell(incident)) - set(told.reasons) else "reminded"


async def _notice(gateway: Gateway, incident: Incident, moment: IncidentMoment, reasons: int) -> Notice:
    """The message. It holds nothing that a caller sent, except the mapped values where the setting asks for them. ``reasons``: how
    many the channel has heard of then."""
    shown = incidents.view_of(gateway, incident)
    link = f"{gateway.site.base_url}/incidents/{incident.id}"
    name = shown.webhook_name or ("a deleted webhook" if shown.webhook_id else "the gateway")
    parts = [f"{name}: {shown.sentence}", shown.sender_clock or ""]
    data = {**msgspec.to_builtins(shown, enc_hook=str), "url": link}
    for ours in ("told", "acknowledgedAt", "acknowledgedBy", "acknowledgedNote"):
        del data[ours]
    at, key = incident.opened_at, f"{incident.id}.{moment}"
    if moment == "updated":
        parts, at, key = ["Another reason.", *parts], incident.last_at, f"{key}.{reasons}"
    if moment == "reminded":
        days = (gateway.clock() - at) // A_DAY
        still = f"A reminder: this is open since {to_the_minute(at)}, and nobody has acknowledged it."
        parts, at, key = [still, *parts], at + days * A_DAY, f"{key}.{days:.0f}"
    if incident.closed_at is not None and moment == "closed":
        at = incident.closed_at
        parts = [f"Over: {parts[0]}", f"Closed because {incident.closed_because}."]
    elif gateway.alarms.tells_values:
        data["values"] = await incidents.values_of(gateway, incident)
        pairs = [", ".join(f"{name} {value}" for name, value in fields.items()) for fields in data["values"]]
        parts.append(f"Newest calls: {'; '.join(pairs)}." if pairs else "")
    said = " ".join(" ".join(filter(None, parts)).split())[:LONGEST_TEXT]
    document = {"type": f"incident.{moment}", "timestamp": str(Time(at)), "data": data}
    return Notice(key, said, link, document)


def _request(channel: Channel, notice: Notice, now: float) -> tuple[dict[str, str], bytes]:
    if channel.kind == "webhook":
        body, at = msgspec.json.encode(notice.document), int(now)
        signed = signature(signing_key(channel.after), notice.key, at, body)
        own = {"webhook-id": notice.key, "webhook-timestamp": str(at), "webhook-signature": signed}
        return {"Content-Type": "application/json", **own}, body
    form = FORMS[channel.kind]
    words = {"said": notice.said, "link": notice.link, "text": f"{notice.said}\n{notice.link}"}
    words |= {"escaped": escape(notice.said, quote=False), "after": channel.after}

    def filled(form: str, is_json: bool = False) -> str:
        # All at once: the name of a webhook may be {after}.
        return re.sub(
            r"\{(\w+)\}", lambda name: json.dumps(words[name[1]])[1:-1] if is_json else words[name[1]], form
        )

    is_json = form["body"].lstrip().startswith('{"')
    headers = {"Content-Type": "application/json" if is_json else "text/plain; charset=utf-8"}
    for name, value in form.get("headers", {}).items():
        if channel.after or "{after}" not in value:
            headers[name] = filled(value)
    return headers, filled(form["body"], is_json).encode()


async def _sent(gateway: Gateway, channel: Channel, notice: Notice) -> tuple[str, float]:
    """The reason why the message was not taken, empty if it was; and the seconds to wait that the answer asks for."""
    if not channel.url:
        return "its address cannot be read: delete it and add it again", 0.0
    outbound = gateway.outbound
    assert outbound.fetch is not None and outbound.mail is not None
    try:
        if channel.kind == "mailto":
            await outbound.mail(
                channel.url, f"[Postern] {notice.said[:100]}", f"{notice.said}\n{notice.link}", notice.key
            )
            return "", 0.0
        headers, body = _request(channel, notice, gateway.clock())
        answer = await outbound.fetch(
            channel.url, method="POST", headers=headers, content=body, timeout=TIMEOUT,
            max_bytes=LARGEST_ANSWER, max_redirects=None,
        )  # fmt: skip
    except FetchTrouble as trouble:
        if (
            trouble.status is not None and 200 <= trouble.status < 300
        ):  # it was taken, and the answer's body is bad
            return "", 0.0
        return channel.without_secrets(trouble.detail), 0.0
    except Exception:  # raised, it would have the other channels told again and again
        log.exception("a message about an incident could not be made", channel=channel.name)
        return "the message could not be made; the log has the error", 0.0
    if 200 <= answer.status < 300:
        return "", 0.0
    redirect = ", a redirect, which is not followed" if 300 <= answer.status < 400 else ""
    return f"it answered {answer.status}{redirect}", answer.retry_after(gateway.clock()) or 0.0
