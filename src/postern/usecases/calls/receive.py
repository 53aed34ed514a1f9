"""A judged call: it is recorded once, and only then answered."""

from collections.abc import Callable, Coroutine
from itertools import chain
from typing import Any, Literal

import msgspec

from postern.core import answer as answers
from postern.core.address import limit_key
from postern.core.answer import CallerAnswer, HeaderPair
from postern.core.calls.call import Call
from postern.core.deliveries.delivery import delivery_key
from postern.core.history.invocation import (
    AnswerHeard,
    Delivery,
    Entry,
    Invocation,
    Receipt,
    StoreUnavailable,
)
from postern.core.history.sample import sample_of
from postern.core.operations.retention import ROW_SIZE
from postern.core.problems import PROBLEMS
from postern.core.signatures.handshake import wants_empty_answers
from postern.core.signatures.redact import TEST_CALL
from postern.core.verdict import Verdict
from postern.core.webhooks.announced import Announcement
from postern.core.webhooks.webhook import Webhook
from postern.identity import new_id
from postern.observe.calls import CallLine, call_counts
from postern.observe.logs import log
from postern.observe.metrics import Numbers
from postern.usecases.calls.waiting import await_answer, await_first_answer
from postern.usecases.deliveries.dispatch import LEASE
from postern.usecases.runtime.gateway import Gateway

LONGEST_HANDSHAKE_BODY = 64 * 1024

_encode = msgspec.json.Encoder().encode

LATE = 0.1
"""Seconds from the verdict to the answer. After longer ones the history notes when the caller was answered."""

CallerState = Literal["there", "hung up", "gone"]
"""``hung up``: the caller has closed its side of the connection, because it gave up or has nothing more to send."""

OnAnswer = Callable[[CallerAnswer], CallerState]
"""Sends an answer, and says whether the caller is there."""


def receive(gateway: Gateway, webhook: Webhook, call: Call, verdict: Verdict, on_answer: OnAnswer) -> None:
    """Records the verdict, then answers, once. Every 2xx is on disk before.

    Not a coroutine: whoever reports the commit answers an ordinary call, because a task for each would cost as much as
    judging it. Only a caller who has to wait for something else gets a task.
    """
    if verdict.outcome == "preflight":
        assert webhook.cors is not None
        on_answer(CallerAnswer(204, webhook.cors.preflight(call)))
        return
    if verdict.outcome == "rejected" and not _is_recorded(gateway, webhook, call, verdict):
        gateway.runtime.rejections.count(webhook.id, verdict.code, call.received_at)
        seconds = gateway.clock() - call.received_at
        call_counts.add(webhook.id, verdict.outcome, verdict.code, seconds, waited=False)
        answer = _for_sender(webhook, _answer_of(webhook, verdict, None), _cors_headers(webhook, call))
        on_answer(answer)
        gateway.runtime.endings.count(webhook.id, answer.status, seconds)
        return
    reception = Reception(gateway, webhook, call, verdict, on_answer)
    gateway.store.record(reception.entry, reception.recorded)


def _is_recorded(gateway: Gateway, webhook: Webhook, call: Call, verdict: Verdict) -> bool:
    size = (
        ROW_SIZE
        + len(call.body)
        + len(call.path)
        + len(call.query)
        + sum(map(len, chain.from_iterable(call.headers)))
    )
    network, runtime = limit_key(call.address), gateway.runtime
    fits = runtime.limits.records(webhook.id, network, size, bool(verdict.matched))
    return fits and runtime.rejections.find_room(webhook.id, size)


class Reception:
    """One call between its verdict and its answer. It does not keep the verdict, so that what judging made is freed at once,
    and not by the writer's thread for all calls of a commit together."""

    __slots__ = ("_announced", "_at_once", "_cors", "_gateway", "_on_answer", "_payload", "_webhook", "entry")

    def __init__(
        self, gateway: Gateway, webhook: Webhook, call: Call, verdict: Verdict, on_answer: OnAnswer
    ) -> None:
        self._gateway = gateway
        self._webhook = webhook
        self._on_answer = on_answer
        if verdict.elements:
            entries = [entry_of(gateway, webhook, part, judged) for part, judged in verdict.elements]
            # The answer names the first element that started something.
            entry = next((element for element in entries if element.delivery is not None), None) or next(
                (element for element in entries if element.invocation.outcome == "filtered"), entries[0]
            )
            entry.others = [element for element in entries if element is not entry]
            for element in entry.others:
                # The caller was answered once, and so did not hear that an element was rejected.
                element.invocation.status = entry.invocation.status
        else:  # without a list, which for every call would take a tenth of the time
            entry = entry_of(gateway, webhook, call, verdict)
        self.entry = entry
        self._cors = _cors_headers(webhook, call)
        self._payload = verdict.payload
        self._at_once: CallerAnswer | None = None
        """The answer to a call that starts nothing: a rejected or filtered one, or a handshake."""
        self._announced: bytes | None = None
        if entry.invocation.outcome == "filtered":
            self._at_once = self._at_rest("accepted", entry.invocation.id)
        elif entry.delivery is None:
            self._at_once = _answer_of(webhook, verdict, entry.invocation.id)
            self._announced = verdict.handshake.announced if verdict.handshake is not None else None

    def recorded(self, result: Receipt | StoreUnavailable) -> None:
        """Called by the store: it is on disk, or it is not."""
        try:
            if isinstance(result, StoreUnavailable):
                self._not_stored()
            else:
                self._stored(result)
        except Exception:
            log.exception("a recorded call could not be answered", invocation=self.entry.invocation.id)
            self._send(answers.problem("internal_error"))

    def _stored(self, receipt: Receipt) -> None:
        gateway, webhook, entry = self._gateway, self._webhook, self.entry
        invocation, delivery = entry.invocation, entry.delivery
        if entry.sample is not None and receipt.first is None:
            webhook.recording_until = 0.0  # the next call need not prepare another sample
        gateway.runtime.live.touch(invocation.id)
        for other in entry.others:
            gateway.runtime.live.touch(other.invocation.id)
        if receipt.first is not None:
            invocation.outcome = invocation.code = "duplicate"
            if webhook.answer_timeout is None:
                self._answer(self._at_rest("duplicate", receipt.first))
            else:
                self._wait_for(await_first_answer(gateway, webhook, receipt.first))
        elif delivery is None:
            assert self._at_once is not None
            if self._announced:
                self._wait_for(self._keep(self._announced, self._at_once), waited=False)
            else:
                self._answer(self._at_once)
        elif delivery.deadline is None or delivery.state == "held":
            gateway.runtime.starts_due(delivery.lane)
            self._answer(self._at_rest("accepted", invocation.id))
        else:
            self._wait_for(await_answer(gateway, delivery, self._payload))

    def _at_rest(self, status: Literal["accepted", "duplicate"], invocation_id: str) -> CallerAnswer:
        """The answer to a caller who waits for no workflow."""
        own = self._webhook.accepted_answer
        if own is None:
            return answers.stored(status, invocation_id)
        return answers.as_set(own.status, own.content_type, own.body, invocation_id)

    def _wait_for(self, coming: Coroutine[Any, Any, CallerAnswer], waited: bool = True) -> None:
        async def answered() -> None:
            try:
                answer = await coming
            except StoreUnavailable:
                self._log(self.entry.invocation.outcome, "temporarily_unavailable", 503, waited=False)
                self._send(answers.problem("temporarily_unavailable"), differs=True)
            except Exception:
                log.exception("a waiting caller could not be answered", invocation=self.entry.invocation.id)
                self._send(answers.problem("internal_error"), differs=True)
            else:
                self._answer(answer, waited)

        self._gateway.runtime.background(answered())

    async def _keep(self, secret: bytes, answer: CallerAnswer) -> CallerAnswer:
        """Keeps an announced secret, and only then gives the answer, which confirms that it is kept."""
        gateway, call = self._gateway, self.entry.invocation
        announcement = Announcement(call.id, call.received_at, call.address, secret)
        if not await gateway.store.webhooks.announce(self._webhook.id, announcement):
            return answers.problem("conflict", call.id)
        await gateway.runtime.directory.refresh()
        return answer

    def _not_stored(self) -> None:
        Numbers.not_stored.inc()
        answer = answers.problem("temporarily_unavailable")
        self._log("not stored", "temporarily_unavailable", 503, waited=False)
        self._on_answer(_for_sender(self._webhook, answer, self._cors))
        gateway = self._gateway
        gateway.runtime.endings.count(
            self._webhook.id, 503, max(0.0, gateway.clock() - self.entry.invocation.received_at)
        )

    def _answer(self, answer: CallerAnswer, waited: bool = False) -> None:
        invocation = self.entry.invocation
        self._log(invocation.outcome, invocation.code, answer.status, waited)
        self._send(answer, waited or answer.status != invocation.status)

    def _send(self, answer: CallerAnswer, differs: bool = False) -> None:
        """``differs``: the recorded invocation has another answer, or another time for it."""
        caller = self._on_answer(_for_sender(self._webhook, answer, self._cors))
        reached = caller == "there" or (caller == "hung up" and not differs)
        gateway, invocation = self._gateway, self.entry.invocation
        now = gateway.clock()
        lasted = max(0.0, now - invocation.received_at)
        gateway.runtime.endings.count(invocation.webhook_id, answer.status, lasted)
        if differs or not reached or lasted > invocation.duration_us / 1_000_000 + LATE:
            gateway.runtime.endings.answered(AnswerHeard(invocation.id, answer.status, now, reached))

    def _log(self, outcome: str, code: str, status: int, waited: bool) -> None:
        gateway, invocation = self._gateway, self.entry.invocation
        seconds = gateway.clock() - invocation.received_at
        call_counts.add(invocation.webhook_id, outcome, code, seconds, waited)
        gateway.runtime.call_log.call(
            CallLine(
                invocation.webhook_id,
                invocation.id,
                outcome,
                code,
                status,
                invocation.matched,
                invocation.address,
                invocation.body_size,
                invocation.config_version,
                # It holds a value of the call.
                "" if outcome == "filtered" else invocation.detail,
                round(seconds * 100_000) / 100,  # two places; `round(…, 2)` takes longer
            )
        )


def entry_of(gateway: Gateway, webhook: Webhook, call: Call, verdict: Verdict) -> Entry:
    """The store's record of a call and its verdict."""
    now = gateway.clock()
    body = None if call.unread else webhook.credential.body_without_token(call)
    assert verdict.outcome != "preflight", "no preflight is recorded"
    accepted = verdict.outcome == "accepted"
    if verdict.handshake is not None and verdict.handshake.announced:
        body = None  # it is a secret: the vault has it
    elif verdict.handshake is not None:
        body = call.body[:LONGEST_HANDSHAKE_BODY]
    waits = accepted and webhook.answer_timeout is not None and not webhook.held
    is_test = call.first_header(TEST_CALL) is not None
    invocation = Invocation(
        id=new_id("inv"),
        webhook_id=webhook.id,
        received_at=call.received_at,
        outcome=verdict.outcome,
        code=verdict.code,
        status=_status_of(webhook, verdict, waits),
        config_version=webhook.version,
        method=call.method[:20],
        path=call.path,
        query=webhook.mask.query(call.query, is_test),
        headers=webhook.mask.headers(call.headers, call.untrusted, is_test),
        body=body,
        body_size=len(call.body),
        address=call.address[:80],
        duration_us=max(0, int((now - call.received_at) * 1_000_000)),
        matched=verdict.matched,
        detail=verdict.detail,
        trace=_encode(verdict.trace),
    )
    entry = Entry(invocation, secret_id=webhook.secret_ids.get(verdict.matched))
    if verdict.outcome == "rejected" and (shown := webhook.credential.presented(call)):
        entry.token_fingerprint = gateway.store.vault.fingerprint(shown, invocation.id)
    if accepted:
        entry.delivery = Delivery(
            key=delivery_key(invocation.id, 1),
            invocation_id=invocation.id,
            webhook_id=webhook.id,
            emission=1,
            state=webhook.first_state,
            attempts=0,
            # If a caller waits, this process starts the workflow itself, at once, under its own lease.
            next_at=now + LEASE if waits else now,
            fields=verdict.fields,
            created_at=now,
            deadline=call.received_at + webhook.answer_timeout if waits and webhook.answer_timeout else None,
            traceparent=call.traceparent,
            lane=webhook.lane,
            turn=verdict.turn,
        )
        if webhook.recording_until > now:
            entry.sample = sample_of(webhook.id, invocation.id, verdict.fields, verdict.payload)
        if webhook.duplicates is not None:
            entry.duplicate_key = verdict.duplicate_key
            entry.duplicate_until = call.received_at + webhook.duplicates.window_seconds
    return entry


def _status_of(webhook: Webhook, verdict: Verdict, waits: bool) -> int:
    if verdict.handshake is not None:
        return verdict.handshake.answer.status
    if verdict.outcome == "rejected":
        return PROBLEMS[verdict.code].status
    if waits:
        return 0
    return webhook.accepted_answer.status if webhook.accepted_answer is not None else 200


def _answer_of(webhook: Webhook, verdict: Verdict, invocation_id: str | None) -> CallerAnswer:
    """The answer to a call that starts nothing."""
    if verdict.handshake is not None:
        return verdict.handshake.answer
    allow = ", ".join(sorted(webhook.allowed_methods)) if verdict.code == "method_not_allowed" else None
    return answers.problem(
        verdict.code,
        invocation_id,
        challenge=webhook.credential.challenge,
        retry_after=verdict.retry_after,
        allow=allow.encode() if allow else None,
    )


def _cors_headers(webhook: Webhook, call: Call) -> list[HeaderPair]:
    return [] if webhook.cors is None else webhook.cors.headers(call)


def _for_sender(webhook: Webhook, answer: CallerAnswer, cors: list[HeaderPair]) -> CallerAnswer:
    """Makes an answer readable for pages of other origins, and takes the body away for Xero."""
    if webhook.handshake is not None and wants_empty_answers(webhook.handshake.kind):
        kept = [header for header in answer.headers if header[0] != b"content-type"]
        answer = CallerAnswer(answer.status, kept)
    if cors:
        answer.headers = [*answer.headers, *cors]
    return answer
