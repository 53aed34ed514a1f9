"""A call on its way in:

head    find the webhook, ask what can be asked without the body
piece   keep the body, untouched, and never more of it than the webhook takes
end     judge the call, record the verdict, answer
"""

import time

from postern.core import answer as answers
from postern.core.address import ClientAddresses, limit_key, networks_of
from postern.core.admit import admit, admit_head, too_large
from postern.core.calls.arriving import ArrivingBytes, Body
from postern.core.calls.call import Call, Headers
from postern.core.verdict import NEVER_READ, Verdict
from postern.core.webhooks.webhook import Webhook
from postern.observe.logs import log
from postern.observe.metrics import Numbers
from postern.usecases.calls.receive import OnAnswer, receive
from postern.usecases.runtime.gateway import Gateway

PREFIX = b"/webhook/"
GUESSING = "guessing"
READ_ANYWAY = frozenset({"webhook_disabled", "ip_not_allowed", "origin_not_allowed"})
LARGEST_WAITING = 256 * 1024
"""Bytes of a body that is kept while the sender's keys are fetched. A larger one has to be sent again."""
LOG_EVERY = 10.0
"""Seconds between two log lines about the same shortage."""


class Intake:
    """Everything that all incoming calls share."""

    def __init__(self, gateway: Gateway, addresses: ClientAddresses) -> None:
        self.gateway = gateway
        self.addresses = addresses
        self.arriving = ArrivingBytes()
        self._turned_away = 0
        self._logged_at = -LOG_EVERY

    def log_shortage(self, webhook: Webhook, address: str) -> None:
        self._turned_away += 1
        now = time.monotonic()
        if now - self._logged_at >= LOG_EVERY:
            log.warning(
                "bodies that are still coming in take all the memory that is left to them",
                calls=self._turned_away, webhook=webhook.id, address=address, bytes=self.arriving.held,
            )  # fmt: skip
            self._logged_at, self._turned_away = now, 0


class IncomingCall:
    """One call. It is answered once: after its head, a piece of its body or its end."""

    __slots__ = (
        *("_answer", "_body", "_call", "_intake", "_pieces", "_promised", "_turned_away", "_webhook"),
        *("settled", "unread"),
    )

    def __init__(self, intake: Intake, on_answer: OnAnswer) -> None:
        self._intake = intake
        self._answer = on_answer
        self._pieces: list[bytes] = []
        self._body: Body | None = None
        """Its part of the memory that all bodies share."""
        self._promised = -1
        self._turned_away: Verdict | None = None
        """Decided by the head alone. The body is read all the same."""
        self._webhook: Webhook
        self._call: Call
        self.settled = False
        """Nothing more is wanted: the call is answered, or will be after the commit."""
        self.unread = False
        """It is answered without its body."""

    def head(
        self,
        method: str,
        path: bytes,
        query: bytes,
        headers: Headers,
        *,
        peer: str | None,
        by_name: dict[bytes, bytes] | None = None,
    ) -> None:
        """``by_name``: the headers once more, if the reader of the request has them by name already."""
        gateway = self._intake.gateway
        directory = gateway.runtime.directory
        address = path[len(PREFIX) :].removesuffix(b"/").decode("latin-1")
        webhook = directory.by_address(address)
        if webhook is None:
            if not directory.knows(address):
                Numbers.unknown_codes.inc()
            self._turn_away("temporarily_unavailable" if directory.knows(address) else "webhook_not_found")
            return
        if gateway.runtime.ending and webhook.answer_timeout is not None:
            self._turn_away("temporarily_unavailable")
            return
        caller = self._intake.addresses.client(peer, headers)
        call = Call(
            method,
            path,
            query,
            headers,
            b"",
            caller,
            gateway.clock(),
            gateway.site.base_url,
            _by_name=by_name,
        )
        if call.first_header(b"traceparent") is not None:
            call.from_proxy = self._intake.addresses.is_proxy(peer)
        self._webhook, self._call = webhook, call
        verdict = admit_head(webhook, call)
        if verdict is not None and verdict.code in READ_ANYWAY and call.first_header(b"expect") is None:
            # It can be admitted after the setting is corrected, so it is read: within the limits of a call that may come in.
            self._turned_away, verdict = verdict, None
        if verdict is None:
            # A promised length proves nothing, but there is no need to wait for one that is too large.
            promised = call.first_header(b"content-length")
            if promised is not None and promised.isdigit():
                self._promised = int(promised[:19])
                if self._promised > webhook.payload_limit:
                    verdict = self._turned_away or too_large(webhook)
        if verdict is not None:
            self.unread = True
            self._settle(verdict)

    def piece(self, piece: bytes) -> bool:
        """Takes a piece of the body. Returns False if it is not wanted: one byte too many is enough."""
        size, body = len(piece), self._body
        if size + (body.size if body else 0) > self._webhook.payload_limit:
            self.unread = True
            self._settle(self._turned_away or too_large(self._webhook))
            return False
        if size == self._promised:  # the whole body, which waits for nothing
            self._pieces.append(piece)
            return True
        if body is None:
            body = self._body = Body(self._webhook.id, self._share_holder(), self._give_way)
        if not self._intake.arriving.take(body, size):
            return False
        self._pieces.append(piece)
        return True

    def end(self) -> None:
        pieces = self._pieces
        self._call.body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if self._turned_away is not None:
            self._settle(self._turned_away)
            return
        webhook, runtime = self._webhook, self._intake.gateway.runtime
        address = webhook.credential.keys_at(self._call) if webhook.credential.fetches_keys else ""
        if address:
            self._call.fetched = runtime.key_sets.look(address)
        verdict = admit(webhook, self._call, runtime.limits)
        if address and verdict.matched:
            runtime.key_sets.prove(address)
        if (
            verdict.wanted
            and len(self._call.body) <= LARGEST_WAITING
            and runtime.key_sets.may_wait(verdict.wanted, self._network())
        ):
            self.settled = True
            self.drop()
            runtime.background(self._judge_again(verdict))
        else:
            self._settle(verdict)

    async def _judge_again(self, verdict: Verdict) -> None:
        """Judges the call with the sender's keys, if they come."""
        runtime = self._intake.gateway.runtime
        try:
            address = verdict.wanted
            if await runtime.key_sets.wait(address, self._network()):
                self._call.fetched = runtime.key_sets.at_hand
                verdict = admit(self._webhook, self._call, runtime.limits)
                if verdict.matched:
                    runtime.key_sets.prove(address)
        finally:
            self._settle(verdict)

    def _network(self) -> str:
        """The network whose share of fetches it takes, if it names itself what is fetched."""
        return networks_of(self._call.address)[-1] if self._webhook.credential.names_keys else ""

    def drop(self) -> None:
        """Frees the body. No more of it will come, or is wanted."""
        if self._body is not None:
            self._intake.arriving.give_back(self._body)
            self._body = None
        self._pieces = []  # this object may be freed late, and strangers send more than the memory holds

    def _share_holder(self) -> str:
        """Whose share of the memory it takes. All callers who guess too often share one, and turn only each other away."""
        caller = limit_key(self._call.address)
        limits = self._intake.gateway.runtime.limits
        return GUESSING if limits.over(self._webhook.id, caller) else caller

    def _give_way(self) -> None:
        self._intake.log_shortage(self._webhook, self._call.address)
        if self._turned_away is not None:
            self.unread = True
            self._settle(self._turned_away)
        else:
            self._turn_away("temporarily_unavailable")

    def _settle(self, verdict: Verdict) -> None:
        self.settled = True
        self.drop()
        call = self._call
        if self.unread and verdict.code in NEVER_READ:
            # Not by its promised size, which a stranger may invent.
            call.unread = call.first_header(b"content-length") not in (None, b"0") or bool(
                call.header(b"transfer-encoding")
            )
        del self._call  # frees it: only what is recorded is needed from now on
        receive(self._intake.gateway, self._webhook, call, verdict, self._answer)

    def _turn_away(self, code: str) -> None:
        self.settled = self.unread = True
        self.drop()
        self._answer(answers.problem(code))
