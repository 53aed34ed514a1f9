"""One call with everything that is known about it, as the inspector and the history show it."""

from itertools import groupby

from postern.core.address import inside, names_another, read_address
from postern.core.calls import paths
from postern.core.deliveries.delivery import FIELD_NAMES
from postern.core.history.failures import alike
from postern.core.problems import PROBLEMS
from postern.surfaces.console import senders
from postern.surfaces.console.views.history import sent, sentences
from postern.surfaces.console.views.history.fixes import fix_for
from postern.surfaces.console.views.history.listing import row_of
from postern.surfaces.console.visit import PageValues, Visit, or_none
from postern.usecases.calls import readmission
from postern.usecases.history import history
from postern.usecases.history.views.calls import Delivery, Invocation
from postern.usecases.listeners import listeners
from postern.usecases.operations import retention
from postern.usecases.signatures import remedies, signatures
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.views import Webhook

AUTHENTICATION_CODES = frozenset(
    code for code in PROBLEMS if code.startswith(("credential_", "signature_", "timestamp_"))
)


async def context(visit: Visit, invocation_id: str) -> PageValues:
    item = await visit.ask(history.show, invocation_id)
    webhook = await or_none(visit.ask(webhooks.show, item.webhook_id))
    row = (await row_of(visit, item)).item
    return {
        **await sent.context(visit, item, webhook),
        "title": " · ".join([row.event or "Call", *row.other_values[:1]]),
        "pinned": item.deliveries[-1].fields if item.deliveries else row.fields,
        "within_story": True,
        "kept_until": await visit.ask(retention.kept_until, item.id),
        "reason": sentences.reason(item),
        "caller": sentences.caller(item),
        "help": PROBLEMS[item.code].help if item.code in PROBLEMS else "",
        "fix": fix_for(item, webhook),
        "missed": senders.asked_again(webhook) if item.status == "rejected" else None,
        "awaited": senders.awaited(webhook) if item.code == "signature_mismatch" else None,
        "starts": _starts(item),
        "started_by": lambda delivery: sentences.started_by(item, delivery),
        "is_authentication": item.code in AUTHENTICATION_CODES,
        **await _advice(visit, item),
        "unlisted_proxy": _unlisted_proxy(visit, item),
        "values": _values_to_choose(item, webhook),
        "replay_word": "Start it" if item.status == "filtered" else "Replay",
        "may_replay": webhook is not None and (bool(item.deliveries) or item.status == "filtered"),
        "action_problem": None,
        "listeners": await visit.ask(listeners.listing),
        "may_replay_locally": not item.body_truncated and (item.body is not None or not item.body_size),
        "under_way": _under_way(item, visit.gateway.clock()),
        "may_find": webhook is not None
        and webhook.authentication.method != "hmac"
        and any("signature" in name or "hmac" in name for name, _ in item.headers),
        "standing": (await visit.ask(readmission.standing, item.id))
        if item.status == "rejected"
        else ("", ""),
    }


def _starts(item: Invocation) -> list[list[Delivery]]:
    """Replays that failed alike, one after the other, stand together."""

    def kind(delivery: Delivery) -> str:
        is_failed_replay = delivery.emission > 1 and delivery.state == "failed"
        return alike(delivery.error or "") if is_failed_replay else delivery.key

    return [list(those) for _, those in groupby(item.deliveries, kind)]


def _values_to_choose(item: Invocation, webhook: Webhook | None) -> dict[str, tuple[str, str]] | None:
    """Each field whose recorded value differs from what the mapping finds now, where a replay could carry either."""
    if webhook is None or not item.deliveries:
        return None
    recorded = item.deliveries[0].fields
    members = paths.members(item.payload) if item.payload is not None else {}
    now = {
        name: paths.as_text(value)
        for name, path in webhook.field_mapping.paths().items()
        if (value := paths.walk_members(members, paths.parse_path(path))) is not None
    }
    both = {name: (recorded.get(name) or "", now.get(name) or "") for name in FIELD_NAMES}
    return {name: pair for name, pair in both.items() if pair[0] != pair[1]} or None


def _unlisted_proxy(visit: Visit, item: Invocation) -> str | None:
    """The header in which somebody, who is perhaps a proxy that nobody has listed, names the client. A client
    on the internet may write it by itself: that is worth a word only where its address was what rejected
    it."""
    address_counted = item.code in ("ip_not_allowed", "rate_limited")
    if not inside(item.address) and not (address_counted and read_address(item.address)):
        return None
    header = visit.gateway.site.client_header
    named = [value.encode("latin-1", "replace") for name, value in item.headers if name == header.lower()]
    return header if names_another(item.address, named, header.lower().encode()) else None


FOLLOWED_FOR = 120.0
"""Seconds for which a page asks how a start goes on: longer than any caller waits for an answer."""
RESTS = 3.0
"""Seconds after which a call that was replayed can be replayed by the same button again: nobody double-clicks that slowly."""


def _under_way(item: Invocation, now: float) -> bool:
    """The end is near and not yet there: a first start, or the answer to a caller who waits. Repeated
    tries may take days, and nobody watches it at a page's pace."""
    begun = [delivery for delivery in item.deliveries if now - delivery.created_at < FOLLOWED_FOR]
    if any(run.ended_at is None and now - run.at < FOLLOWED_FOR for run in item.local_runs):
        return True
    return any(
        (delivery.state == "queued" and not delivery.attempts)
        or delivery.answer == "waiting"
        or delivery.run_state == "running"
        or (delivery.emission > 1 and now - delivery.created_at < RESTS)
        for delivery in begun
    )


async def _advice(visit: Visit, item: Invocation) -> PageValues:
    """Tries changes that would make a rejected signature verify, and their effect on other calls."""
    if item.status != "rejected" or not item.code.startswith(("signature_", "timestamp_")):
        return {"advice": None, "effects": []}
    explanation = await visit.ask(signatures.explain, item.id)
    patches = [change.patch for change in explanation.would_verify_if]
    tried = await visit.ask(remedies.effects, item.webhook_id, patches) if any(patches) else []
    return {"advice": explanation, "effects": [_in_words(effect) for effect in tried]}


def _in_words(effect: remedies.Effect | None) -> str:
    if effect is None or not effect.of:
        return ""
    calls = f"the last {effect.of} accepted calls" if effect.of > 1 else "the last accepted call"
    return (
        f"Would reject {effect.rejected} of {calls}." if effect.rejected else f"Would still accept {calls}."
    )
