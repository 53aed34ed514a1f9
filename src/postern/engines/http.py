"""Any engine that takes an HTTP request: n8n, Node-RED, Windmill, Kestra, one's own program.

A start is one signed POST. The answer to a synchronous call comes back in the response itself (``inline``) or later, by
the response action's POST to the slot's URL. Whichever comes first counts.
"""

import base64
import binascii
import hmac
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

import msgspec

from postern.core.address import Allowlist
from postern.core.answer import LARGEST_RESPONSE, InvalidResponse, WorkflowResponse, workflow_response
from postern.core.delivery import EngineHealth, EngineRejected, EngineUnavailable, Run, Started, Trigger, Workflow
from postern.engines.handover import NEAR, document, never_known
from postern.outbound.fetch import Fetched, Fetcher, parse_url
from postern.outbound.guard import FetchFailed

STATUS_HEADER = "x-postern-status"

_TRY_AGAIN = {408, 425, 429, 500, 502, 503, 504}
_ENGINES_OWN = {"x-powered-by"}


class HttpEngine:
    """``inline``: the engine's HTTP response is the workflow's answer to a synchronous call."""

    name = "http"

    def __init__(
        self,
        url: str,
        *,
        secret: str | None = None,
        headers: Mapping[str, str] | None = None,
        inline: bool = False,
        timeout: float = 10.0,
        allowed_ranges: Allowlist = NEAR,
        tls: ssl.SSLContext | bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Raises ``FetchFailed`` or ``ValueError`` for settings that cannot work, so that the start says so."""
        parse_url(url)
        self._url = url
        self._key = signing_key(secret) if secret else None
        self._headers = dict(headers or {})
        self._inline = inline
        self._timeout = timeout
        self._clock = clock
        self._fetcher = Fetcher(allowed_ranges=allowed_ranges, tls=tls)

    async def open(self) -> None:
        return None

    async def start(self, trigger: Trigger) -> Started:
        now = self._clock()
        waits_for_answer = self._inline and trigger.response is not None
        timeout = max(trigger.response.deadline - now, 1.0) if waits_for_answer and trigger.response else self._timeout
        body = msgspec.json.encode(document(trigger))
        try:
            fetched = await self._fetcher.fetch(
                self._url,
                method="POST",
                headers=self._request_headers(trigger.key, body, int(now)),
                content=body,
                timeout=timeout,
                max_bytes=LARGEST_RESPONSE,
                max_redirects=0,
            )
        except FetchFailed as failed:
            return self._without_answer(failed, waits_for_answer)
        return self._settled(fetched, waits_for_answer)

    def _request_headers(self, key: str, body: bytes, now: int) -> dict[str, str]:
        headers = {
            **self._headers,
            "Content-Type": "application/json",
            "Idempotency-Key": key,
            "webhook-id": key,
            "webhook-timestamp": str(now),
        }
        if self._key is not None:
            headers["webhook-signature"] = signature(self._key, key, now, body)
        return headers

    def _without_answer(self, failed: FetchFailed, waits_for_answer: bool) -> Started:
        if failed.status is not None and 200 <= failed.status < 300:
            return Started(1)
        if failed.reason_code == "timeout" and waits_for_answer:
            # The request went out and the workflow took longer than its caller waits. Sent again, it would run again.
            return Started(1)
        # Wrong settings included: while the operator puts them right, nothing is lost.
        raise EngineUnavailable(f"the engine cannot be reached: {failed.detail}") from failed

    def _settled(self, fetched: Fetched, waits_for_answer: bool) -> Started:
        if 200 <= fetched.status < 300:
            # 202 says that the answer comes later, through the slot.
            return Started(1, answer=_inline_answer(fetched) if waits_for_answer and fetched.status != 202 else None)
        if fetched.status == 409:
            return Started(1)  # it has this Idempotency-Key already
        said = f"the engine answered {fetched.status}{_excerpt(fetched)}"
        if fetched.status in _TRY_AGAIN and not (fetched.status == 500 and waits_for_answer):
            raise EngineUnavailable(said, fetched.retry_after(self._clock()))
        raise EngineRejected(said)

    async def ended(self, key: str) -> Literal["completed", "failed"]:
        return await never_known()

    async def health(self) -> EngineHealth:
        try:
            await self._fetcher.reach(self._url)
        except FetchFailed as failed:
            return EngineHealth(False, failed.detail)
        return EngineHealth(True, f"listening at {parse_url(self._url).host}")

    async def workflows(self) -> list[Workflow] | None:
        return None

    async def runs(self, limit: int = 50, delivery_key: str | None = None) -> list[Run] | None:
        return None

    async def forget(self, keys: list[str]) -> None:
        """The engine keeps its own copies for as long as its own settings say."""

    async def close(self) -> None:
        await self._fetcher.aclose()


def read_headers(text: str) -> dict[str, str]:
    """Headers as they are configured: a JSON object of texts."""
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, str])
    except msgspec.DecodeError as error:
        raise ValueError('the engine\'s headers must be a JSON object of texts, like {"Authorization": "Bearer …"}') from error


def signing_key(secret: str) -> bytes:
    """The bytes of a Standard Webhooks secret: base64, usually behind ``whsec_``."""
    text = secret.strip().removeprefix("whsec_")
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("the engine's signing secret must be whsec_ followed by base64") from error
    if len(key) < 16:
        raise ValueError("the engine's signing secret is too short; 24 to 64 bytes are usual")
    return key


def signature(key: bytes, delivery_key: str, timestamp: int, body: bytes) -> str:
    """The value of ``webhook-signature`` as Standard Webhooks has it."""
    signed = f"{delivery_key}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


def _inline_answer(fetched: Fetched) -> WorkflowResponse:
    """The engine's response as the workflow's answer.

    Any status but a 2xx is the engine's own, so a workflow that wants its caller to hear another one says so in a header.
    """
    status = fetched.status
    kept: dict[str, str] = {}
    for raw_name, raw_value in fetched.headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if name == STATUS_HEADER and value.isascii() and value.isdigit():
            status = int(value[:3])
        elif name not in _ENGINES_OWN:
            try:
                workflow_response(200, {name: value}, "")
            except InvalidResponse:
                continue  # what an engine adds by itself (cookies, CORS, its own policies) is none of the caller's business
            kept[name] = value
    try:
        checked = workflow_response(status, kept, "")
    except InvalidResponse as error:
        raise EngineRejected(f"the workflow's answer cannot be sent: {error}") from error
    return replace(checked, body=b"" if status in (204, 304) else fetched.body)


def _excerpt(fetched: Fetched) -> str:
    text = " ".join(fetched.body[:300].decode("utf-8", "replace").split())
    return ": " + "".join(c if c.isprintable() else "?" for c in text)[:200] if text else ""
