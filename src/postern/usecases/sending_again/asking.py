"""Asking a webhook's sender to send again what it did not deliver.

Each attempt is noted before it is asked for, and is not asked for again. If the sender's answer is lost, nobody knows whether it
was; then the sender's list decides: what shows no newer attempt after ``SETTLED`` seconds was not.
"""

import asyncio
from hashlib import sha256
from typing import Annotated

from msgspec import Struct
from pydantic import Field

from postern import presets
from postern.core.access.accounts import Actor
from postern.core.history.invocation import StoreUnavailable
from postern.core.moment import moment
from postern.core.problems import FetchTrouble, Refused, invalid
from postern.core.webhooks.stored import StoredWebhook
from postern.usecases.access.audit import note_down
from postern.usecases.answers import Time
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.sending_again import senders
from postern.usecases.sending_again.senders import SenderApi, SentEvent, SlowDown
from postern.usecases.sending_again.views import SentAgain, UndeliveredEvent
from postern.usecases.shapes import Shape
from postern.usecases.stored_webhook import check_secrets, stored
from postern.usecases.webhooks.requests import SEND_AGAIN

MOST_PRESSED = 500
MOST_NAMED = 100
LONGEST_TURN = 90.0
"""Seconds; the command waits for two minutes."""
SETTLED = 30.0
"""Seconds after which a new attempt is in the sender's list; the longest time-out of a sender is 15."""
LOOK_AGAIN = 5.0
KEPT = 24 * 3600.0
ASKED, REFUSED = b"asked", b"refused"
MOST_TROUBLES = 3
"""One after the other. Then the sender's API is left in peace."""


class SendAgainRequest(Shape):
    since: Annotated[str, Field(max_length=40)] = Field(
        description="The time since when to look: ISO 8601, or how long ago: 30m, 2h, 3d."
    )
    dry_run: bool = Field(default=False, description="Only list what would be sent again.")


class Turn(Struct):
    """The result for the events in one request."""

    asked: list[SentEvent] = []
    under_way: int = 0
    refused: int = 0
    unsure: int = 0
    """Asked for without an answer."""
    trouble: str | None = None
    wait: float | None = None
    """Until the sender takes the next request."""
    is_over: bool = False
    """It takes none with this token."""
    heard: bool = False
    """Whether it answered that it sends an event again, or does not: its list may have changed."""


async def send_again(gateway: Gateway, actor: Actor, webhook_id: str, request: SendAgainRequest) -> SentAgain:
    """Ask the sender to send again what it did not deliver to this webhook's URL."""
    require(actor, "write")
    webhook = await stored(gateway, webhook_id)
    check_secrets(webhook)
    authentication = webhook.settings.authentication
    preset = presets.load().get(authentication.provider) if authentication.method == "hmac" else None
    if preset is None or preset.send_again is None:
        raise Refused(
            "conflict", "Postern cannot ask this webhook's sender: send the missing calls again there"
        )
    how = preset.send_again
    try:
        since = moment(request.since, gateway.clock())
    except ValueError as error:
        raise invalid("since", str(error)) from None
    if how.kind is None:
        return SentAgain(preset.title, False, [], by_hand=how.by_hand)
    setting = webhook.settings.send_again
    if setting is None or SEND_AGAIN not in webhook.secrets:
        raise Refused("conflict", f"sendAgain is not set: {preset.title} is asked with a token. {how.token}")
    if gateway.outbound.fetch is None:
        raise Refused("conflict", "this process makes no requests: ask the gateway that serves")
    token = webhook.secrets[SEND_AGAIN].value.decode()
    headers = senders.headers_of(how.kind, setting, token, gateway.clock())
    base, until = (
        (setting.api or how.api).rstrip("/"),
        asyncio.get_running_loop().time() + senders.LONGEST_LIST,
    )
    api = SenderApi(gateway.outbound.fetch, base, headers, gateway.clock, until)
    urls = [gateway.site.webhook_url(address) for address in webhook.addresses]
    turn, events = Turn(), list[SentEvent]()
    try:
        events = await senders.undelivered(how.kind, api, setting, urls, since)
    except SlowDown as slow:
        turn.wait, turn.trouble = slow.seconds, str(slow)
    except FetchTrouble as trouble:
        raise Refused("conflict", trouble.detail) from None
    missing = [sent for sent in events if not sent.will_retry]
    noted = await gateway.store.idempotency.kept(_journal(webhook), gateway.clock())
    new = [sent for sent in missing if _key(sent) not in noted]
    for sent in events:
        if _key(sent) in noted:
            _count(turn, noted[_key(sent)])
    by_itself = sum(sent.will_retry and _key(sent) not in noted for sent in events)
    if request.dry_run or how.by_hand is not None:
        turn.asked = new if how.by_hand is None else missing
    elif new:
        oldest_first = new[::-1]  # events without a time have only this order
        oldest_first.sort(key=lambda sent: sent.at or 0.0)
        chosen = oldest_first[:MOST_PRESSED]
        names = [sent.event for sent in chosen[:MOST_NAMED]]
        note = {"since": request.since, "calls": len(chosen), "events": names}
        await note_down(gateway, actor, "sender is asked to send again", webhook.id, **note)
        api.until += LONGEST_TURN - senders.LONGEST_LIST
        try:
            await _redeliver(gateway, webhook, api, chosen, turn)
            note = {"calls": len(turn.asked), "trouble": turn.trouble}
            await note_down(gateway, actor, "sender was asked to send again", webhook.id, **note)
        except StoreUnavailable:  # what was asked for is told
            turn.trouble = "the database cannot be used now"
            turn.wait = turn.wait or LOOK_AGAIN
    left = len(events) - by_itself - len(turn.asked) - turn.under_way - turn.refused
    notes = []
    if not webhook.settings.duplicate_protection.enabled:
        notes = ["Duplicate protection is off: what had arrived after all starts its workflow once more."]
    if api.cut:
        notes.append("The sender lists more than can be read at once: what is older is not among these.")
    return SentAgain(
        preset.title,
        True,
        [UndeliveredEvent(sent.event, sent.type, Time.maybe(sent.at)) for sent in turn.asked],
        under_way=turn.under_way,
        by_itself=by_itself,
        refused=turn.refused,
        left=left,
        trouble=turn.trouble,
        retry_after_seconds=None if request.dry_run or how.by_hand else _next_look(turn, left),
        by_hand=how.by_hand,
        note=" ".join(notes) or None,
    )


def _journal(webhook: StoredWebhook) -> str:
    return f"{webhook.id} send again"


def _key(sent: SentEvent) -> str:
    return sha256(f"{sent.event}\n{sent.attempt}".encode("utf-8", "surrogatepass")).hexdigest()


def _count(turn: Turn, answer: bytes | None) -> None:
    turn.under_way += answer == ASKED
    turn.refused += answer == REFUSED
    turn.unsure += answer is None


def _next_look(turn: Turn, left: int) -> float | None:
    if turn.is_over:
        return None
    if turn.wait is not None or left > turn.unsure:
        return turn.wait or 1.0
    if turn.unsure:
        return SETTLED
    return LOOK_AGAIN if turn.heard or turn.under_way else None


async def _redeliver(
    gateway: Gateway, webhook: StoredWebhook, api: SenderApi, chosen: list[SentEvent], turn: Turn
) -> None:
    """Asks for one after the other, until the sender's limit or the end of the time."""
    store, journal, troubles = gateway.store.idempotency, _journal(webhook), 0
    for sent in chosen:
        if not api.in_time() or troubles == MOST_TROUBLES:
            return
        key, now = _key(sent), gateway.clock()
        if (seen := await store.begin(journal, key, b"", now, now + SETTLED)) is not None:
            _count(turn, seen.answer)  # another request asks for it
            continue
        # Where only events are listed, their state is what shows a new attempt.
        until = now + (KEPT if sent.attempt else SETTLED)
        try:
            await api.redeliver(sent.redeliver_path)
        except SlowDown as slow:
            turn.wait, turn.trouble = slow.seconds, str(slow)
            await store.forget(journal, key)
            return
        except FetchTrouble as trouble:
            turn.trouble = trouble.detail
            if senders.is_passing(trouble):
                turn.unsure += 1
                troubles += 1
                continue
            if trouble.status in (401, 403):
                turn.is_over = True
                await store.forget(journal, key)
                return
            turn.heard, turn.refused = True, turn.refused + 1
            await store.finish(journal, key, REFUSED, until)
        else:
            turn.heard = True
            turn.asked.append(sent)
            await store.finish(journal, key, ASKED, until)
            troubles = 0
