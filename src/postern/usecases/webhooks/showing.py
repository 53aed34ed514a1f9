"""Webhooks as every surface shows them. Secrets show whether they are set, how often each matched, and when last."""

from collections.abc import Mapping

from msgspec.structs import asdict, replace

from postern.core.schedules import ScheduleState, explain
from postern.core.webhooks.announced import announced
from postern.core.webhooks.settings import (
    NoAuthentication,
    ScheduleSetting,
    SignatureAuthentication,
    TokenAuthentication,
)
from postern.core.webhooks.stored import StoredSecret, StoredWebhook, Tally, UnreadableWebhook
from postern.usecases.answers import UNSET, Time, UnsetType, shown
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.webhooks import views
from postern.usecases.webhooks.compiling import answer_timeout
from postern.usecases.webhooks.resolving import preset_update, scheme_of
from postern.usecases.webhooks.warnings import awaits_secret, warnings

QUIET = 3600.0
"""Seconds without a call that used the main secret, after which it counts as unused: a sender changes over server by server,
and calls that it sends again were signed before."""


async def presented(gateway: Gateway, webhooks: list[StoredWebhook]) -> list[views.Webhook]:
    tallies = await gateway.store.webhooks.tallies([webhook.id for webhook in webhooks])
    scheduled = [webhook.id for webhook in webhooks if webhook.settings.schedule]
    states = await gateway.store.schedules.states(scheduled) if scheduled else {}
    return [_presented(gateway, webhook, tallies[webhook.id], states.get(webhook.id)) for webhook in webhooks]


def _presented(
    gateway: Gateway, webhook: StoredWebhook, tallies: dict[str, Tally], state: ScheduleState | None
) -> views.Webhook:
    settings, calls = webhook.settings, tallies.get("calls")
    is_recording = webhook.armed_until is not None and webhook.armed_until > gateway.clock()
    schedule = _schedule_state(settings.schedule, state)
    waits = answer_timeout(settings, webhook.resolved) or settings.synchronous_response.timeout_seconds
    return shown(
        views.Webhook,
        settings,
        authentication=_authentication(webhook, tallies, gateway.clock()),
        synchronous_response=replace(settings.synchronous_response, timeout_seconds=waits),
        id=webhook.id,
        url=gateway.site.webhook_url(webhook.address),
        also_url=next(map(gateway.site.webhook_url, webhook.addresses[1:]), None),
        enabled=webhook.enabled,
        held=webhook.held,
        recording_until=Time.maybe(webhook.armed_until) if is_recording else None,
        version=webhook.version,
        created_at=Time(webhook.created_at),
        updated_at=Time(webhook.updated_at),
        call_count=calls.count if calls else 0,
        last_call_at=Time(calls.last_at) if calls else None,
        schedule_state=schedule,
        warnings=warnings(webhook, schedule, gateway.retention.history_days),
    )


def _schedule_state(
    setting: ScheduleSetting | None, state: ScheduleState | None
) -> views.ScheduleState | None:
    if setting is None or state is None:
        return None
    return shown(
        views.ScheduleState,
        state,
        in_words=explain(setting.times(state.anchor)),
        last_run_at=Time.maybe(state.last_at),
        last_result=state.last_result or None,
        last_reason=state.last_reason or None,
        paused_reason=state.paused_reason or None,
    )


def _authentication(
    webhook: StoredWebhook, tallies: dict[str, Tally], now: float
) -> views.ShownAuthentication:
    def is_set(field: str) -> bool:
        return field in webhook.secret_fields

    def use(field: str) -> views.SecretUse | UnsetType:
        secret = webhook.secrets.get(field)
        if secret is None:
            return UNSET
        tally = tallies.get(f"secret:{secret.id}")
        return views.SecretUse(
            match_count=tally.count if tally else 0,
            last_matched_at=Time(tally.last_at) if tally else None,
            set_at=Time(secret.created_at),
        )

    how, judged_by = webhook.settings.authentication, webhook.resolved
    match how:
        case TokenAuthentication():
            return views.WithToken(
                **asdict(how),
                token_set=is_set("main"),
                token_use=use("main"),
                second_token_set=is_set("second"),
                second_token_use=use("second"),
                rotation=rotation(webhook.secrets, tallies, now),
            )
        case SignatureAuthentication():
            there = announced(webhook.secrets)
            return views.WithSignature(
                **asdict(how) | {"scheme": scheme_of(judged_by).to_document()},
                secret_set=is_set("main"),
                secret_use=use("main"),
                second_secret_set=is_set("second"),
                second_secret_use=use("second"),
                verify_token_set=is_set("verifyToken"),
                rotation=rotation(webhook.secrets, tallies, now),
                secret_awaited=awaits_secret(webhook),
                announced=[
                    views.AnnouncedSecret(
                        announcement.invocation_id, Time(announcement.at), announcement.address
                    )
                    for announcement in there.kept
                ],
                announced_not_kept=there.not_kept,
                preset_version=judged_by.preset_version,
                preset_update=preset_update(how.provider, judged_by),
            )
        case NoAuthentication():
            return views.WithoutAuthentication()


def unreadable(gateway: Gateway, webhook: UnreadableWebhook) -> views.Unreadable:
    url = gateway.site.webhook_url(webhook.addresses[0])
    return shown(views.Unreadable, webhook, url=url, detail=webhook.explanation)


def rotation(
    secrets: Mapping[str, StoredSecret], tallies: Mapping[str, Tally], now: float
) -> views.Rotation | None:
    """Whether the sender has changed over to the second secret. None if there is only one that can be read. ``safe_from``
    moves on with each call that uses the main secret; None once the hour is over."""
    if "main" not in secrets or "second" not in secrets:
        return None
    main, second = (tallies.get(f"secret:{secrets[name].id}") for name in ("main", "second"))
    unused_since = max(main.last_at if main else 0.0, secrets["main"].created_at)
    changed_over = second is not None and second.last_at > unused_since
    is_quiet = now >= unused_since + QUIET
    return views.Rotation(
        safe_to_promote=changed_over and is_quiet,
        main_unused_since=Time(unused_since),
        safe_from=None if is_quiet else Time(unused_since + QUIET),
    )
