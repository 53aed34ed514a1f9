"""A call, from what arrived to what the caller hears: judge it, record it once, and only then answer."""

import msgspec

from postern.core import answer as say
from postern.core.admit import Verdict
from postern.core.answer import Answer
from postern.core.call import Call
from postern.core.delivery import Trigger, delivery_key
from postern.core.handshake import wants_empty_answers
from postern.core.invocation import Delivery, Entry, Invocation, StoreUnavailable
from postern.core.problems import PROBLEMS
from postern.core.sample import recorded
from postern.core.webhook import Webhook
from postern.identity import new_id
from postern.observe import call_counts, refused_storage
from postern.usecases.dispatch import LEASE
from postern.usecases.gateway import Gateway
from postern.usecases.respond import await_answer, await_first_answer

LONGEST_REJECTED_BODY = 64 * 1024

_encode = msgspec.json.Encoder().encode


async def receive(gateway: Gateway, webhook: Webhook, call: Call, verdict: Verdict) -> Answer:
    """Record the verdict and answer. Every 2xx that leaves here is on disk."""
    if verdict.outcome == "preflight":
        assert webhook.cors is not None
        return Answer(204, webhook.cors.preflight(call))
    entry = entry_of(gateway, webhook, call, verdict)
    try:
        receipt = await gateway.store.record(entry)
        if verdict.handshake is not None and verdict.handshake.captured:
            await gateway.store.webhooks.capture(webhook.id, verdict.handshake.captured, call.received_at)
    except StoreUnavailable:
        refused_storage.inc()
        _log(gateway, webhook, call, entry.invocation, "temporarily_unavailable", 503)
        return _with_cors(webhook, call, say.refusal("temporarily_unavailable"))

    invocation, delivery = entry.invocation, entry.delivery
    if entry.sample is not None and receipt.first is None:
        webhook.recording_until = 0.0  # it is taken: the next call need not prepare another
    gateway.live.touch(invocation.id)
    waited = False
    if receipt.first is not None:
        invocation.outcome = invocation.code = "duplicate"
        waited = webhook.answer_timeout is not None
        answer = await await_first_answer(gateway, webhook, receipt.first) if waited else say.duplicate(receipt.first)
    elif delivery is None:
        gateway.rejections.noticed(webhook.id)
        answer = _answer_of(webhook, verdict, invocation.id)
    elif delivery.deadline is None or delivery.state != "queued":
        gateway.due.set()
        answer = say.accepted(invocation.id)
    else:
        waited = True
        answer = await await_answer(gateway, delivery, verdict.payload)
    _log(gateway, webhook, call, invocation, invocation.code, answer.status, waited)
    return _with_cors(webhook, call, answer)


def entry_of(gateway: Gateway, webhook: Webhook, call: Call, verdict: Verdict) -> Entry:
    """What is to be recorded of a call and its verdict."""
    now = gateway.clock()
    body: bytes | None = call.body
    accepted = verdict.outcome == "accepted"
    if verdict.handshake is not None and verdict.handshake.captured:
        body = None  # it is a secret: the vault has it
    elif not accepted:
        body = call.body[:LONGEST_REJECTED_BODY]
    waits = accepted and webhook.answer_timeout is not None and not webhook.held
    invocation = Invocation(
        id=new_id("inv"),
        webhook_id=webhook.id,
        received_at=call.received_at,
        outcome=verdict.outcome,
        code=verdict.code,
        status=_status_of(verdict, waits),
        config_version=webhook.version,
        method=call.method[:20],
        path=call.path,
        query=webhook.mask.query(call.query),
        headers=webhook.mask.headers(call.headers),
        body=body,
        body_size=len(call.body),
        address=call.address[:80],
        duration_us=max(0, int((now - call.received_at) * 1_000_000)),
        matched=verdict.matched,
        detail=verdict.detail,
        trace=_encode(verdict.trace),
    )
    entry = Entry(invocation, secret_id=webhook.secret_ids.get(verdict.matched))
    if accepted:
        entry.delivery = Delivery(
            key=delivery_key(invocation.id, 1),
            invocation_id=invocation.id,
            webhook_id=webhook.id,
            emission=1,
            state="held" if webhook.held else "queued",
            attempts=0,
            # A caller that waits is not left to the loop: this process starts the workflow itself, under its own lease.
            next_at=now + LEASE if waits else now,
            fields=verdict.fields,
            created_at=now,
            deadline=call.received_at + webhook.answer_timeout if waits and webhook.answer_timeout else None,
        )
        if webhook.recording_until > now:
            entry.sample = recorded(Trigger(entry.delivery.key, webhook.id, invocation.id, verdict.fields, verdict.payload))
        if webhook.duplicates is not None:
            entry.duplicate_key = verdict.duplicate_key
            entry.duplicate_until = call.received_at + webhook.duplicates.window_seconds
    return entry


def _status_of(verdict: Verdict, waits: bool) -> int:
    if verdict.outcome == "accepted":
        return 0 if waits else 200
    if verdict.handshake is not None:
        return verdict.handshake.answer.status
    return PROBLEMS[verdict.code].status


def _answer_of(webhook: Webhook, verdict: Verdict, invocation_id: str) -> Answer:
    if verdict.handshake is not None:
        return verdict.handshake.answer
    answer = _refusal(webhook, verdict, invocation_id)
    if webhook.handshake is not None and wants_empty_answers(webhook.handshake.kind):
        return Answer(answer.status, [header for header in answer.headers if header[0] != b"content-type"])
    return answer


def _refusal(webhook: Webhook, verdict: Verdict, invocation_id: str) -> Answer:
    return say.refusal(
        verdict.code,
        invocation_id,
        challenge=webhook.credential.challenge,
        retry_after=verdict.retry_after,
        allow=", ".join(sorted(webhook.allowed_methods)).encode() if verdict.code == "method_not_allowed" else None,
    )


def _with_cors(webhook: Webhook, call: Call, answer: Answer) -> Answer:
    if webhook.cors is not None:
        answer.headers = [*answer.headers, *webhook.cors.headers(call)]
    return answer


def _log(gateway: Gateway, webhook: Webhook, call: Call, invocation: Invocation, code: str, status: int, waited: bool = False) -> None:
    outcome = invocation.outcome if status != 503 else "not stored"
    seconds = gateway.clock() - call.received_at
    call_counts.add(webhook.id, outcome, code, seconds, waited)
    gateway.call_log.call(
        seconds,
        webhook=webhook.id,
        invocation=invocation.id,
        outcome=outcome,
        code=code,
        status=status,
        matched=invocation.matched,
        address=invocation.address,
        bytes=invocation.body_size,
        version=invocation.config_version,
        detail=invocation.detail,
    )
