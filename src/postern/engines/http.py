"""Any engine that takes an HTTP request: n8n, Node-RED, Windmill, Kestra, one's own program.

A start is one signed POST. The answer to a synchronous call comes back in the response itself (``inline``) or
later, by the response action's POST to the slot's URL. Whichever comes first counts.
"""

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import msgspec

from postern.core.address import Allowlist
from postern.core.answer import LARGEST_RESPONSE, InvalidResponse, WorkflowResponse, response_of_http
from postern.core.deliveries.delivery import (
    End,
    EngineHealth,
    EngineRejected,
    EngineUnavailable,
    Started,
    Trigger,
)
from postern.core.fetched import Fetched
from postern.core.names import is_header_name
from postern.core.signatures.outgoing import signature, signing_key
from postern.core.signatures.redact import MASK
from postern.engines.handover import NEAR, EngineOverHttp, document
from postern.outbound.fetch import parse_url
from postern.outbound.guard import FetchFailed, Heard, Reason

LONGEST_HOLD = 15.0
"""How long ``start`` itself waits for an inline answer. Longer would outlast the delivery's lease, and start it
twice."""
SHORTEST_WAIT = 0.2
STATUS_HEADER = "x-postern-status"

SHORTEST_SECRET = 8
"""Characters. Shorter values, like the word Basic, stand in many sentences."""

_NEVER_REACHED: set[Reason] = {
    "address_not_allowed",
    "bad_request",
    "connection_failed",
    "name_not_found",
    "tls",
}
_TRY_AGAIN = {408, 425, 429, *range(500, 600)} - {501}
"""Whatever stands before a receiver that is away has numbers of its own for that, like 521 and 530."""
_NOT_TAKEN = b"n8n is starting up. Please wait"
"""Said by n8n to everybody, with 200, until its database is ready."""


class HttpEngine(EngineOverHttp):
    """``inline``: the engine's HTTP response is the workflow's answer to a synchronous call."""

    name = "http"
    whom = "the engine"
    answers_later: int | None = 202
    """The status that says that the answer comes later, through the slot."""
    has_it: int | None = 409
    """The status that says that it has this Idempotency-Key already."""

    def __init__(
        self,
        url: str,
        *,
        secret: str | None = None,
        headers: Mapping[str, str] | None = None,
        inline: bool = False,
        timeout: float = 10.0,
        allowed_ranges: Allowlist = NEAR,
    ) -> None:
        """Raises ``FetchFailed`` or ``ValueError`` for settings that cannot work, so that the start says
        so."""
        super().__init__(url, timeout, allowed_ranges)
        query = parse_url(url).raw_query_string
        self._key = signing_key(secret) if secret else None
        self._headers = dict(headers or {})
        self._inline = inline
        self._exchanges: dict[str, asyncio.Task[Started]] = {}
        self._secrets = [word for value in (*self._headers.values(), query) for word in value.split()]
        self._secrets += [part.partition("=")[2] for part in query.split("&")]

    async def start(self, trigger: Trigger) -> Started:
        asked_at = time.time()
        left = trigger.response.deadline - asked_at if self._inline and trigger.response is not None else 0.0
        waits = left >= SHORTEST_WAIT
        heard, timeout = Heard(), left if waits else self._timeout
        exchange = asyncio.create_task(self._exchange(trigger, timeout, waits, heard))
        try:
            await asyncio.wait({exchange}, timeout=min(left * 0.8, LONGEST_HOLD) if waits else None)
            # Connecting takes at most half of what is left; a program that had no turn finds both over at once.
            while not (exchange.done() or heard.connected):
                await asyncio.wait({exchange}, timeout=SHORTEST_WAIT)
        except asyncio.CancelledError:
            exchange.cancel()
            raise
        if not exchange.done():
            self._keep(trigger.key, exchange)
            return Started(1, at=asked_at)
        try:
            return replace(exchange.result(), at=asked_at)
        except FetchFailed as failed:
            raise _unavailable(failed, self._secrets, self.whom) from failed

    async def _exchange(self, trigger: Trigger, timeout: float, waits: bool, heard: Heard) -> Started:
        """Raises ``FetchFailed`` where not even a status came back."""
        try:
            fetched, unread = await self._post(trigger, timeout, heard), ""
        except FetchFailed as failed:
            if failed.reason_code == "timeout" and waits:
                # The request went out and the workflow took longer than its caller waits. Sent again, it would
                # run again.
                return Started(1)
            if failed.status is None:
                raise
            # Its status says whether it has started the workflow, and it must not start it again for the rest.
            fetched, unread = Fetched(failed.status, (), b""), failed.detail
        return self._settled(fetched, unread, trigger, waits)

    async def _post(self, trigger: Trigger, timeout: float, heard: Heard) -> Fetched:
        end = None if trigger.end is None else {"url": trigger.end.url, "token": trigger.end.token}
        body = msgspec.json.encode({**document(trigger), "end": end})
        headers = self._request_headers(trigger, body, int(time.time())) | trigger.tracing
        return await self._fetch(body, headers, LARGEST_RESPONSE, timeout=timeout, heard=heard)

    def _keep(self, key: str, exchange: asyncio.Task[Started]) -> None:
        """Keeps the exchange for ``ended``, which is asked right after ``start``, and drops it soon after it is
        over."""
        self._exchanges[key] = exchange

        def over(done: asyncio.Task[Started]) -> None:
            if not done.cancelled():
                done.exception()  # looked at, or asyncio would complain about it
            asyncio.get_running_loop().call_later(5.0, self._exchanges.pop, key, None)

        exchange.add_done_callback(over)

    def _own_headers(self, trigger: Trigger) -> dict[str, str]:
        return self._headers

    def _request_headers(self, trigger: Trigger, body: bytes, now: int) -> dict[str, str]:
        key = trigger.key
        headers = {
            **self._own_headers(trigger),
            "Content-Type": "application/json",
            "Idempotency-Key": key,
            "webhook-id": key,
            "webhook-timestamp": str(now),
        }
        if self._key is not None:
            headers["webhook-signature"] = signature(self._key, key, now, body)
        return headers

    def _settled(self, fetched: Fetched, unread: str, trigger: Trigger, waits: bool) -> Started:
        """``unread``: why there is no more of the answer than its status."""
        if 200 <= fetched.status < 300 and fetched.body != _NOT_TAKEN:
            if not waits or fetched.status == self.answers_later:
                return Started(1)
            if unread:
                return Started(1, failed=f"the workflow's answer cannot be sent: {unread}")
            try:
                return Started(1, answer=inline_answer(fetched))
            except InvalidResponse as error:
                return Started(1, failed=f"the workflow's answer cannot be sent: {error}")
        if fetched.status == self.has_it:
            return Started(1)
        slots = [slot for slot in (trigger.response, trigger.end) if slot is not None]
        secrets = [*self._secrets, *(slot.token for slot in slots)]
        said = f"; {_masked(unread, secrets)}" if unread else _excerpt(fetched, secrets)
        answered = f"{self.whom} answered {fetched.status}"
        detail = answered + said
        refusal = self._refusal(fetched) if waits and not unread else None
        if fetched.status == 500 and waits:
            return Started(1, failed=detail, answer=refusal)
        if fetched.status in _TRY_AGAIN or fetched.body == _NOT_TAKEN:
            # 500 is what many engines make of an error in one workflow.
            raise EngineUnavailable(detail, fetched.retry_after(time.time()), fetched.status == 500)
        if fetched.status == 404 and not waits:
            raise EngineUnavailable(detail, only_this=True, not_found=answered)
        raise EngineRejected(detail, refusal)

    def _refusal(self, fetched: Fetched) -> WorkflowResponse | None:
        """Returns the words that a waiting caller hears of an answer that is no 2xx. None: that it failed."""
        return None

    async def ended(self, key: str) -> Literal["completed", "failed"] | End | WorkflowResponse:
        """The inline answer that was not there yet when ``start`` returned. Whether a run has ended, such an
        engine does not tell."""
        exchange = self._exchanges.get(key)
        if exchange is not None:
            try:
                settled = await asyncio.shield(exchange)
                if settled.failed:
                    return End("failed", time.time(), settled.failed, settled.answer)
                if settled.answer is not None:
                    return settled.answer
            except (EngineRejected, EngineUnavailable) as refusal:
                answer = refusal.answer if isinstance(refusal, EngineRejected) else None
                return End("failed", time.time(), refusal.detail, answer)
            except FetchFailed:
                pass  # it may go on, and answer by callback
        return await super().ended(key)

    async def health(self) -> EngineHealth:
        try:
            await self._fetcher.reach(self._url)
        except FetchFailed as failed:
            return EngineHealth(False, failed.detail)
        return EngineHealth(True, f"listening at {parse_url(self._url).host}")

    async def close(self) -> None:
        for exchange in self._exchanges.values():
            exchange.cancel()
        await asyncio.gather(*self._exchanges.values(), return_exceptions=True)
        await super().close()


def read_headers(text: str) -> dict[str, str]:
    try:
        headers = msgspec.json.decode(text or "{}", type=dict[str, str])
    except msgspec.DecodeError:
        headers = {"": ""}
    if not all(
        is_header_name(name) and value.isascii() and value.isprintable() for name, value in headers.items()
    ):
        raise ValueError(
            'the engine\'s headers must be a JSON object of texts, like {"Authorization": "Bearer …"}'
        )
    return headers


def inline_answer(fetched: Fetched) -> WorkflowResponse:
    """The engine's response as the workflow's answer.

    Any status but a 2xx is the engine's own, so a workflow that wants its caller to hear another one says so
    in a header.
    """
    status = fetched.status
    headers: list[tuple[str, str]] = []
    for raw_name, raw_value in fetched.headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if name == STATUS_HEADER and value:
            status = int(value) if re.fullmatch("[1-9][0-9][0-9]", value) else 0
        else:
            headers.append((name, value))
    return response_of_http(status, headers, fetched.body)


def _excerpt(fetched: Fetched, secrets: list[str]) -> str:
    """Returns the beginning of the engine's answer for the history, with secrets masked: some engines send the
    request back."""
    text = _masked(fetched.body.decode("utf-8", "replace"), secrets)
    text = " ".join(text[:300].split())
    return ": " + "".join(c if c.isprintable() else "?" for c in text)[:200] if text else ""


def _masked(text: str, secrets: list[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, MASK)
    return text


def _unavailable(failed: FetchFailed, secrets: list[str], whom: str) -> EngineUnavailable:
    """Wrong settings included: while the operator puts them right, nothing is lost."""
    # A reply that is not HTTP is quoted, and may be the request that is sent back.
    detail = _masked(failed.detail, secrets)
    if failed.reason_code == "no_room":
        return EngineUnavailable(detail)
    if failed.reason_code == "timeout":
        return EngineUnavailable(f"{whom} did not answer in time: {detail}")
    if failed.reason_code in _NEVER_REACHED:
        return EngineUnavailable(f"{whom} cannot be reached: {detail}")
    return EngineUnavailable(f"{whom}'s answer cannot be read: {detail}")
