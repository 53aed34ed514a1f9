"""Asking a webhook's sender to send again what it did not deliver."""

from typing import Annotated

from pydantic import Field

from postern import presets
from postern.core.access.accounts import Actor
from postern.core.moment import moment
from postern.core.problems import FetchTrouble, Refused, invalid
from postern.usecases.access.audit import note_down
from postern.usecases.answers import Time
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.sending_again import senders
from postern.usecases.sending_again.senders import SenderApi, SentEvent, SlowDown
from postern.usecases.sending_again.views import SentAgain, UndeliveredEvent
from postern.usecases.shapes import Shape
from postern.usecases.stored_webhook import check_secrets, stored
from postern.usecases.webhooks.requests import SEND_AGAIN


class SendAgainRequest(Shape):
    since: Annotated[str, Field(max_length=40)] = Field(
        description="The time since when to look: ISO 8601, or how long ago: 30m, 2h, 3d."
    )
    dry_run: bool = Field(default=False, description="Only list what would be sent again.")


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
        return SentAgain(
            sender=preset.title, listed=False, asked=[], by_itself=0, left=0, retry_after_seconds=None,
            by_hand=how.by_hand, note=None,
        )  # fmt: skip
    setting = webhook.settings.send_again
    if setting is None or SEND_AGAIN not in webhook.secrets:
        raise Refused("conflict", f"sendAgain is not set: {preset.title} is asked with a token. {how.token}")
    if gateway.outbound.fetch is None:
        raise Refused("conflict", "this process makes no requests: ask the gateway that serves")
    token = webhook.secrets[SEND_AGAIN].value.decode()
    base = (setting.api or how.api).rstrip("/")
    headers = senders.headers_of(how.kind, setting, token, gateway.clock())
    api = SenderApi(gateway.outbound.fetch, base, headers, gateway.clock)
    url = f"{gateway.site.base_url}/webhook/{webhook.short_code}"
    try:
        found = await senders.undelivered(how.kind, api, setting, url, since)
        wanted = [one for one in found if not one.comes]
        pressed, wait = wanted, None
        if not request.dry_run and how.by_hand is None:
            pressed, wait = await _press(api, wanted[: senders.MOST_PRESSED])
            await note_down(gateway, actor, "sender asked to send again", webhook.id, calls=len(pressed))
    except SlowDown as slow:
        raise Refused("conflict", str(slow)) from None
    except FetchTrouble as trouble:
        raise Refused("conflict", trouble.detail) from None
    return SentAgain(
        sender=preset.title,
        listed=True,
        asked=[UndeliveredEvent(one.event, one.what, Time.maybe(one.at)) for one in pressed],
        by_itself=len(found) - len(wanted),
        left=len(wanted) - len(pressed),
        retry_after_seconds=wait,
        by_hand=how.by_hand,
        note=None
        if webhook.settings.duplicate_protection.enabled
        else "Duplicate protection is off: what had arrived after all starts its workflow once more.",
    )


async def _press(api: SenderApi, wanted: list[SentEvent]) -> tuple[list[SentEvent], float | None]:
    """Asks for the oldest first, until the sender's limit of requests."""
    done: list[SentEvent] = []
    oldest_first = wanted[::-1]  # events without a time have only this order
    oldest_first.sort(key=lambda one: one.at or 0.0)
    for one in oldest_first:
        try:
            await api.press(one.press)
        except SlowDown as slow:
            return done, slow.seconds
        done.append(one)
    return done, None
