"""One call with everything that is known about it, as the inspector and the history show it."""

from msgspec import Struct

from postern.core.address import inside, names_another, read_address
from postern.core.calls import paths
from postern.core.deliveries.delivery import FIELD_NAMES
from postern.core.documents import Patch
from postern.core.problems import PROBLEMS, Refused
from postern.core.webhooks.webhook import LARGEST_PAYLOAD_LIMIT
from postern.surfaces.console import senders, words
from postern.surfaces.console.views.history import life, sent
from postern.surfaces.console.views.history.sent import webhook_or_none
from postern.surfaces.console.visit import Context, Visit
from postern.usecases.calls import readmission
from postern.usecases.history import history
from postern.usecases.history.views import Delivery, Invocation, InvocationSummary
from postern.usecases.listeners import listeners
from postern.usecases.operations import retention
from postern.usecases.signatures import remedies, signatures
from postern.usecases.webhooks.views import Webhook

AUTHENTICATION_CODES = frozenset(
    code for code in PROBLEMS if code.startswith(("credential_", "signature_", "timestamp_"))
)


async def context(visit: Visit, invocation_id: str) -> Context:
    """The context of the story's templates."""
    item = await history.show(visit.gateway, visit.actor, invocation_id)
    webhook = await webhook_or_none(visit, item.webhook_id)
    return {
        **await sent.context(visit, item, webhook),
        "within_story": True,
        "lives": life.lives(item, visit.gateway.clock()),
        "kept_until": await retention.kept_until(visit.gateway, visit.actor, item.id),
        "errors": {},
        "reason": reason(item),
        "caller": _caller(item),
        "help": PROBLEMS[item.code].help if item.code in PROBLEMS else "",
        "steps": _steps(item),
        "fixes": _fixes(item, webhook),
        "awaited": senders.awaited(webhook) if item.code == "signature_mismatch" else None,
        "started_by": lambda delivery: _started_by(item, delivery),
        "is_authentication": item.code in AUTHENTICATION_CODES,
        **await _advice(visit, item),
        "unlisted_proxy": _unlisted_proxy(visit, item),
        "values": _values_to_choose(item, webhook),
        "may_replay": webhook is not None and bool(item.deliveries),
        "action_problem": None,
        "listeners": await listeners.listing(visit.gateway, visit.actor),
        "may_replay_locally": not item.body_truncated and (item.body is not None or not item.body_size),
        "under_way": _under_way(item, visit.gateway.clock()),
        "may_find": webhook is not None and webhook.authentication.method != "hmac" and _looks_signed(item),
        "may_admit": item.status == "rejected"
        and await readmission.may_pass(visit.gateway, visit.actor, item.id),
    }


def _values_to_choose(item: Invocation, webhook: Webhook | None) -> dict[str, tuple[str, str]] | None:
    """By field: what was recorded and what the mapping finds now, where a replay could carry either."""
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


def _under_way(item: Invocation, now: float) -> bool:
    """The end is near and not yet there: a first start, or the answer to a caller who waits. What is tried
    again and again may take days, and nobody watches it at a page's pace."""
    begun = [one for one in item.deliveries if now - one.created_at < FOLLOWED_FOR]
    if any(one.ended_at is None and now - one.at < FOLLOWED_FOR for one in item.local_runs):
        return True
    return any(
        (one.state == "queued" and not one.attempts) or one.answer == "waiting" or one.run_state == "running"
        for one in begun
    )


def _looks_signed(item: Invocation) -> bool:
    return any("signature" in name or "hmac" in name for name, _ in item.headers)


async def _advice(visit: Visit, item: Invocation) -> Context:
    """What would make a rejected signature verify, tried out one by one, and what each change would do to other
    calls."""
    if item.status != "rejected" or not item.code.startswith(("signature_", "timestamp_")):
        return {"advice": None, "effects": []}
    found = await signatures.explain(visit.gateway, visit.actor, item.id)
    patches = [change.patch for change in found.would_verify_if]
    tried = (
        await remedies.effects(visit.gateway, visit.actor, item.webhook_id, patches) if any(patches) else []
    )
    return {"advice": found, "effects": [_in_words(effect) for effect in tried]}


def _in_words(effect: remedies.Effect | None) -> str:
    if effect is None or not effect.of:
        return ""
    calls = f"the last {effect.of} accepted calls" if effect.of > 1 else "the last accepted call"
    return (
        f"Would reject {effect.rejected} of {calls}." if effect.rejected else f"Would still accept {calls}."
    )


def reason(item: InvocationSummary) -> str:
    """One sentence for the whole story."""
    if item.status == "rejected":
        why = item.detail or words.code(item.code)
        return f"{why[:1].upper()}{why[1:]}."
    if item.status == "started" and item.nobody_listens:
        return "Accepted, and no workflow was started: none in the engine listens to this webhook."
    if item.listener:
        return f"{_at_listener(item, item.listener)}."
    if item.status == "failed" and item.run_state != "failed":
        why = (item.error or "no reason was given").rstrip(".")
        return f"Accepted, but its workflow could not be started: {why}{_answered(item)}."
    if item.status == "accepted" and item.error:
        why = item.error.rstrip(".")
        return f"Stored; its workflow could not be started yet, and is tried again: {why}{_answered(item)}."
    if item.runs:
        return f"{_ran(item)}{_answered(item)}."
    return words.STATUS_HELP.get(item.status, "")


def _at_listener(item: InvocationSummary, listener: str) -> str:
    """In the place of the workflow."""
    if item.run_state == "failed":
        return f"{listener}, in the place of the workflow, failed: {(item.error or '').rstrip('.')}{_answered(item)}"
    if item.status == "responded":
        return f"{listener} answered, in the place of the workflow{_answered(item)}"
    if item.run_state == "completed":
        return f"{listener}, in the place of the workflow, answered too late{_answered(item)}"
    return f"It was handed to {listener}, in the place of the workflow{_answered(item)}"


def _ran(item: InvocationSummary) -> str:
    """How far its workflows have come."""
    names = words.listed(item.workflows) if item.workflows else words.plural(item.runs or 0, "workflow")
    several = (item.runs or 0) > 1
    match item.run_state:
        case "completed":
            return f"{names} completed"
        case "failed":
            # Engines that run several workflows for a call say which of them it was.
            why = (item.error or "no reason was given").removeprefix(f"{names}: ").rstrip(".")
            return f"{names} failed: {why}"
        case "running":
            return f"{names} {'are' if several else 'is'} running"
    return f"{names} {'were' if several else 'was'} started; how {'they' if several else 'it'} ended, this engine does not tell"


def _caller(item: Invocation) -> str:
    """What it heard and when, as far as that is known."""
    first = item.deliveries[0] if item.deliveries and item.deliveries[0].emission == 1 else None
    if item.caller_gone:
        return (
            f"had closed the connection before its answer ({item.http_status}) was sent, "
            f"{words.milliseconds(item.duration_ms)} after its call"
        )
    if item.answered_at is not None:
        return f"heard {item.http_status} after {words.milliseconds(item.duration_ms)}"
    if first is not None and first.answer == "waiting":
        return f"waits for the answer of {first.listener or 'the workflow'}"
    if first is not None and first.answer is not None:
        return f"was answered {item.http_status}; whether it was still connected is not known"
    return f"heard {item.http_status} at once" if item.http_status else "what it heard is not known"


def _started_by(item: Invocation, delivery: Delivery) -> str:
    """What a delivery is called in the call's trace, and who asked for it, where somebody did."""
    by = f", by {delivery.asked_by}" if delivery.asked_by else ""
    if delivery.emission > 1:
        return f"Replay {delivery.emission - 1}{by}"
    if delivery.listener:
        return f"{delivery.listener}, in the place of the workflow"
    return (
        f"Workflow engine{by}" if item.code in ("accepted", "edited") else f"Checked again and admitted{by}"
    )


def _answered(item: InvocationSummary) -> str:
    """What the caller heard, where it waited for it."""
    if item.caller_gone:
        return "; the caller had left before its answer"
    if item.status == "responded":
        return "; the caller heard its answer" if item.answered_at else ""
    if item.answered_at and item.http_status and item.http_status >= 500:
        return f"; the caller heard {item.http_status}"
    return ""


class ShownStep(Struct, frozen=True):
    title: str
    ok: bool
    detail: str
    is_short: bool = False
    """It rejects no call, and did not find all that it looked for."""


_STEP_TITLES = {
    "edited": "Made by editing",
    "content": "content is a JSON object",
    "duplicate key": "duplicate protection",
}


def _steps(item: Invocation) -> list[ShownStep]:
    return [
        ShownStep(
            _STEP_TITLES.get(one.step, one.step),
            one.ok,
            one.detail,
            is_short=one.step == "field mapping" and ": nothing at " in one.detail,
        )
        for one in item.trace
    ]


def _fixes(item: Invocation, webhook: Webhook | None) -> list[dict[str, str]]:
    """What one click can put right, by the reason of the rejection."""
    if webhook is None or item.status != "rejected":
        return []
    match item.code:
        case "webhook_disabled" if not webhook.enabled:
            return [{"kind": "enable", "label": "Enable the webhook", "help": "It is disabled."}]
        case "ip_not_allowed" if item.address not in webhook.ip_allowlist:
            return [
                {
                    "kind": "allow-address",
                    "label": f"Allow {item.address}",
                    "help": "Adds this address to the allowlist.",
                }
            ]
        case "origin_not_allowed":
            origin = next((value for name, value in item.headers if name == "origin"), "")
            return (
                [
                    {
                        "kind": "allow-origin",
                        "label": f"Allow {origin}",
                        "help": "Adds this site to the CORS list.",
                    }
                ]
                if origin
                else []
            )
        case "payload_too_large" if webhook.payload_limit_bytes < LARGEST_PAYLOAD_LIMIT:
            return [
                {
                    "kind": "raise-limit",
                    "label": "Double the payload limit",
                    "help": f"Up to {LARGEST_PAYLOAD_LIMIT // 1024**2} MiB can be accepted.",
                }
            ]
    return []


def patch_of(kind: str, item: Invocation, webhook: Webhook) -> Patch:
    """The change to the webhook that a fix stands for."""
    match kind:
        case "enable":
            return {"enabled": True}
        case "allow-address":
            return {"ipAllowlist": [*webhook.ip_allowlist, item.address]}
        case "allow-origin":
            origin = next((value for name, value in item.headers if name == "origin"), "")
            return {"cors": {"enabled": True, "origins": [*webhook.cors.origins, origin]}}
        case "raise-limit":
            return {"payloadLimitBytes": min(webhook.payload_limit_bytes * 2, LARGEST_PAYLOAD_LIMIT)}
    raise Refused("not_found", "There is no such fix.")
