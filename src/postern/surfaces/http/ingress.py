"""Where calls arrive: find the webhook, read at most N bytes, keep them untouched, ask, record, answer. No
framework is on this path."""

import structlog

from postern.core import answer as say
from postern.core.address import Allowlist, client_address, limit_key
from postern.core.admit import Verdict, admit, admit_head, too_large
from postern.core.answer import Answer
from postern.core.calls.arriving import ArrivingBytes
from postern.core.calls.call import Call, Headers
from postern.core.webhooks.webhook import Webhook
from postern.observe import unknown_codes
from postern.usecases.calls.receive import receive
from postern.usecases.runtime.gateway import Gateway

PREFIX = b"/webhook/"

GUESSING = "guessing"

log = structlog.get_logger("postern.ingress")


class Ingress:
    """What all calls have in common: the gateway, and whom to believe about where they come from."""

    def __init__(self, gateway: Gateway, trusted_proxies: Allowlist, client_header: str) -> None:
        self.gateway = gateway
        self._trusted = trusted_proxies
        self._client_header = client_header.lower().encode()
        self.arriving = ArrivingBytes()

    def address_of(self, peer: str | None, headers: Headers) -> str:
        """Who is calling: the peer, or behind trusted proxies whom they name."""
        if self._trusted or peer is None or ":" in peer:
            forwarded = [value for name, value in headers if name == self._client_header]
            return client_address(peer, forwarded, self._trusted, self._client_header)
        return peer


class Arrival:
    """One call while it arrives: its head, then its body piece by piece, then its end. It is answered once,
    at any of these."""

    __slots__ = (
        "_call",
        "_caller",
        "_ingress",
        "_pieces",
        "_promised",
        "_size",
        "_webhook",
        "settled",
        "unread",
    )

    def __init__(self, ingress: Ingress) -> None:
        self._ingress = ingress
        self._pieces: list[bytes] = []
        self._size = 0
        self._promised = -1
        self._webhook: Webhook
        self._caller: str
        self._call: Call
        self.settled = False
        """Nothing more of it is wanted: the answer is there, or waits for the commit."""
        self.unread = False
        """It is answered without its body."""

    def answer(self, answer: Answer) -> None:
        """To be said by whoever holds the connection."""
        raise NotImplementedError

    def head(self, method: str, path: bytes, query: bytes, headers: Headers, peer: str | None) -> None:
        gateway = self._ingress.gateway
        code = path[len(PREFIX) :].removesuffix(b"/").decode("latin-1")
        webhook = gateway.runtime.directory.by_code(code)
        if webhook is None:
            if gateway.runtime.directory.knows(code):
                self._refuse("temporarily_unavailable")
                return
            unknown_codes.inc()
            self._refuse("webhook_not_found")
            return
        if gateway.runtime.ending and webhook.answer_timeout is not None:
            self._refuse("temporarily_unavailable")
            return
        address = self._ingress.address_of(peer, headers)
        call = Call(method, path, query, headers, b"", address, gateway.clock(), gateway.site.base_url)
        caller = limit_key(address)
        # All that guess too often are one caller together, and turn only each other away.
        self._caller = GUESSING if gateway.runtime.limits.over(webhook.id, caller) else caller
        self._webhook, self._call = webhook, call
        verdict = admit_head(webhook, call)
        if verdict is None:
            # A length that was promised proves nothing, but one that is too large need not be waited for.
            promised = call.first_header(b"content-length")
            if promised is not None and promised.isdigit():
                self._promised = int(promised[:19])
                if self._promised > webhook.payload_limit:
                    verdict = too_large(webhook)
        if verdict is not None:
            self.unread = True
            self._settle(verdict)

    def body(self, piece: bytes) -> None:
        """Counted while streaming: one byte too many is enough."""
        size = len(piece)
        if self._size + size > self._webhook.payload_limit:
            self.unread = True
            self._settle(too_large(self._webhook))
        elif size == self._promised:
            self._pieces.append(piece)  # all of it, so it takes no room while somebody waits for the rest
        elif self._ingress.arriving.take(size, self._webhook.id, self._caller):
            self._size += size
            self._pieces.append(piece)
        else:
            self._refuse("temporarily_unavailable")

    def end(self) -> None:
        pieces = self._pieces
        self._call.body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._settle(admit(self._webhook, self._call, self._ingress.gateway.runtime.limits))

    def abandon(self) -> None:
        """No more of it will come, or is wanted."""
        if self._size:
            self._ingress.arriving.give_back(self._size, self._webhook.id, self._caller)
            self._size = 0
        self._pieces = []  # not with the call: collections are rare, and strangers send more than there is

    def _settle(self, verdict: Verdict) -> None:
        self.settled = True
        self.abandon()
        receive(self._ingress.gateway, self._webhook, self._call, verdict, self.answer)

    def _refuse(self, code: str) -> None:
        self.settled = self.unread = True
        self.abandon()
        self.answer(say.refusal(code))

    def failed(self) -> None:
        """Something is wrong with us: called while an exception is being handled."""
        log.exception("a call could not be answered")
        self._refuse("internal_error")
