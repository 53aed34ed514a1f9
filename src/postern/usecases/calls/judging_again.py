"""Judges rejected calls again, with the current settings and at the time when each was received."""

import asyncio
from dataclasses import replace as changed
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from postern.core.admit import admit as judge
from postern.core.admit import admit_fetched, admit_head
from postern.core.history.invocation import Invocation
from postern.core.limits import Limits
from postern.core.problems import PROBLEMS
from postern.core.signatures.credential import Matched, Proven, TokenCredential
from postern.core.verdict import NEVER_READ, Verdict
from postern.core.webhooks.webhook import DuplicateKey, Webhook
from postern.usecases.calls import views
from postern.usecases.history.history import recorded
from postern.usecases.runtime.gateway import Gateway

FIRST_ELEMENTS = 20


class Judged(msgspec.Struct):
    """The verdict that a rejected call would get now, and the reason if it could not start."""

    invocation: Invocation
    standing: views.AdmissionStanding
    reason: str = ""
    code: str = ""
    verdict: Verdict | None = None
    event: list[bytes] = []
    """By one of these another attempt at the same event is recognized."""
    accepted_as: str = ""


async def judged_of(gateway: Gateway, invocation_id: str) -> tuple[Webhook | None, Judged]:
    story = await recorded(gateway, invocation_id)
    webhook = gateway.runtime.directory.by_id(story.invocation.webhook_id)
    if story.deliveries and story.invocation.outcome == "rejected":
        return webhook, Judged(story.invocation, "came_again", "it has been admitted before")
    (call,) = await judged_now(gateway, webhook, [story.invocation])
    return webhook, call


async def judged_now(
    gateway: Gateway, webhook: Webhook | None, invocations: list[Invocation]
) -> list[Judged]:
    """Judges calls of one webhook, the oldest first."""
    # Where nothing is protected, an event is recognized as protection does by default, or by its body.
    as_protected = changed(webhook, duplicates=webhook.duplicates or DuplicateKey(0)) if webhook else None
    protected = webhook is not None and webhook.duplicates is not None
    judged = []
    is_token = webhook is not None and webhook.method == "token"
    tokens = await gateway.store.history.masked_tokens([item.id for item in invocations]) if is_token else {}
    for invocation in invocations:
        await asyncio.sleep(0)  # callers are answered while many are judged
        judged.append(await _judge(gateway, as_protected, invocation, tokens.get(invocation.id, "")))
    starting = [call for call in judged if call.standing == "starts"]
    claimed: list[tuple[Invocation, list[bytes]]] = []
    for call in starting:
        own = [call.verdict.duplicate_key] if call.verdict and call.verdict.duplicate_key else []
        body = [] if protected and own else [sha256(call.invocation.body or b"").digest()]
        call.event = [sha256(b"admitted\0" + key).digest() for key in own + body]
        claimed.append((call.invocation, call.event + (own if protected else [])))
    again = await gateway.store.history.came_again([call.invocation for call in starting])
    before = await gateway.store.emissions.came_before(claimed)
    for call in starting:
        if accepted := again.get(call.invocation.id) or await _elements_again(gateway, call):
            _left_out(call, f"the sender sent it again, and it was accepted as {accepted}", accepted)
        elif first := before.get(call.invocation.id):
            _left_out(call, f"it is another attempt at the event of {first}, which came in", first)
    return judged


def _left_out(call: Judged, reason: str, accepted: str) -> None:
    call.standing, call.reason, call.accepted_as = "came_again", reason, accepted


async def _elements_again(gateway: Gateway, call: Judged) -> str:
    """The accepted call that brought an array's first element again, if its next ones came again too."""
    assert call.verdict is not None
    first = ""
    for part, _ in call.verdict.elements[:FIRST_ELEMENTS]:
        element = replace(call.invocation, body=part.body, body_size=len(part.body))
        accepted = (await gateway.store.history.came_again([element])).get(element.id, "")
        if not accepted:
            return ""
        first = first or accepted
    return first


async def _judge(
    gateway: Gateway, webhook: Webhook | None, invocation: Invocation, fingerprint: str
) -> Judged:
    """Judges a call with the current settings, at the time of its receipt. ``fingerprint``: of the token that it has shown."""

    def cannot(reason: str) -> Judged:
        return Judged(invocation, "cannot_be_admitted", reason)

    if webhook is None:
        return cannot("its webhook has been deleted")
    if not webhook.enabled:
        return Judged(invocation, "still_rejected", "its webhook is disabled and starts nothing")
    if reason := _cannot_be_judged(invocation):
        return cannot(reason)
    token = webhook.credential if isinstance(webhook.credential, TokenCredential) else None
    which = _token_shown(gateway, token, invocation, fingerprint) if token else None
    if which:
        step = f"the {which} token was sent: it was known by its fingerprint"
        webhook = changed(webhook, credential=Proven(step, which))
    verdict = await _verdict_now(gateway, webhook, invocation)
    match verdict.outcome:
        case "accepted":
            return Judged(invocation, "starts", verdict=verdict)
        case "filtered":
            return cannot("the conditions of what starts do not hold")
        case "handshake" | "preflight":
            return cannot("it is a set-up handshake of the sender, which starts no workflow")
        case "rejected" if (
            token
            and not which
            and PROBLEMS[verdict.code].status == 401
            and token.may_hide_token(invocation.as_call())
        ):  # masked, it looks like none or a wrong one, whatever it was
            if which is None:
                return cannot("its token was masked and cannot be checked again")
            return Judged(
                invocation, "still_rejected", "its token is not the right one", "credential_mismatch"
            )
        case "rejected":
            return Judged(invocation, "still_rejected", verdict.detail, verdict.code)


async def has_shown_token(gateway: Gateway, token: TokenCredential, invocation: Invocation) -> bool:
    """Whether the call was made with this credential's main or second token, which is masked in what was recorded."""
    fingerprint = (await gateway.store.history.masked_tokens([invocation.id])).get(invocation.id, "")
    return bool(_token_shown(gateway, token, invocation, fingerprint))


def _token_shown(
    gateway: Gateway, token: TokenCredential, invocation: Invocation, fingerprint: str
) -> Matched | None:
    """Which token the call has shown: an empty text if it is neither, None if that is not known."""
    vault, row = gateway.store.vault, invocation.id
    same = {name: vault.has_fingerprint(proof, row, fingerprint) for name, proof in token.proofs.items()}
    return None if None in same.values() else next((name for name, is_same in same.items() if is_same), "")


async def _verdict_now(gateway: Gateway, webhook: Webhook, invocation: Invocation) -> Verdict:
    call = invocation.as_call(gateway.site.base_url)
    step = invocation.steps[:1]
    if step and step[0][0] == "schedule":
        return admit_fetched(webhook, call, step[0])
    if turned_away := admit_head(webhook, call):
        return turned_away
    # With unused limits: the call has come already, and must not slow down others.
    key_sets, limits = gateway.runtime.key_sets, Limits(lambda: 0.0)
    if webhook.credential.fetches_keys:
        call.fetched = key_sets.look(webhook.credential.keys_at(call))
    verdict = judge(webhook, call, limits)
    if verdict.wanted and await key_sets.wait(verdict.wanted, webhook.id):
        call.fetched = key_sets.at_hand
        verdict = judge(webhook, call, limits)
    return verdict


def _cannot_be_judged(invocation: Invocation) -> str:
    """The reason, or an empty text if it can."""
    if invocation.outcome == "filtered":
        return "it was filtered, not rejected: a replay starts it"
    if invocation.outcome != "rejected":
        return "it was not rejected"
    if invocation.code == "fetch_failed":
        return "nobody sent it: a schedule could not fetch it"
    if invocation.code == "method_not_allowed":
        return "only POST starts a workflow"
    if invocation.body is None and invocation.code == "payload_too_large":
        return "its body was larger than the payload limit, so it was not kept"
    if invocation.body is None and invocation.code in NEVER_READ:
        return "its body was never read"
    if invocation.body is None:
        return "its body is not kept"
    return ""
