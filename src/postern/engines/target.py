"""A webhook's own target, which gets a trigger as an engine over HTTP does, or the call as it came."""

import time
from dataclasses import replace
from urllib.parse import quote

from postern.core.address import Allowlist
from postern.core.answer import LARGEST_RESPONSE, InvalidResponse, WorkflowResponse
from postern.core.deliveries.delivery import Original, Started, Trigger
from postern.core.fetched import Fetched
from postern.core.webhooks.target import OwnTarget, filled
from postern.engines.http import HttpEngine, inline_answer
from postern.outbound.fetch import SAFE_IN_URL, parse_url
from postern.outbound.guard import Heard


class TargetEngine(HttpEngine):
    name = "target"
    whom = "the target"

    def __init__(self, target: OwnTarget, allowed_ranges: Allowlist) -> None:
        super().__init__(
            target.url,
            secret=target.signing_secret,
            headers=dict(target.headers),
            inline=True,
            timeout=target.timeout,
            allowed_ranges=allowed_ranges,
        )
        url = parse_url(target.url)
        self._shown = f"{url.scheme}://{url.raw_authority}{url.raw_path}"[:200]
        self._is_noticed = target.forward == "trigger"
        if not self._is_noticed:
            # It knows nothing of this gateway: its 202 is an answer, and its 409 a refusal, like any other.
            self.answers_later = self.has_it = None

    async def start(self, trigger: Trigger) -> Started:
        return replace(await super().start(trigger), workflows=(self._shown,))

    def _own_headers(self, trigger: Trigger) -> dict[str, str]:
        return {name: filled(value, trigger.variables) for name, value in self._headers.items()}

    async def _post(self, trigger: Trigger, timeout: float, heard: Heard) -> Fetched:
        if (call := trigger.original) is None:
            return await super()._post(trigger, timeout, heard)
        return await self._fetcher.fetch(
            self._with_query(call),
            method=call.method,
            headers=self._headers_of(call, trigger),
            content=None if call.method in ("GET", "HEAD") else call.body,
            timeout=timeout,
            max_bytes=LARGEST_RESPONSE,
            max_redirects=0,
            heard=heard,
        )

    def _refusal(self, fetched: Fetched) -> WorkflowResponse | None:
        """A sender that called the target itself would hear its status, too."""
        if self._is_noticed or fetched.status < 400:
            return None
        try:
            return inline_answer(fetched)
        except InvalidResponse:
            return None

    def _with_query(self, call: Original) -> str:
        if not call.query:
            return self._url
        return f"{self._url}{'&' if '?' in self._url else '?'}{quote(call.query, safe=SAFE_IN_URL)}"

    def _headers_of(self, call: Original, trigger: Trigger) -> dict[str, str]:
        """Ours beside those of the call. Where its sender signs by the same names, they are the sender's."""
        ours = {
            name.lower(): value
            for name, value in self._request_headers(trigger, call.body, int(time.time())).items()
        }
        set_here = {name.lower(): value for name, value in self._own_headers(trigger).items()}
        if any(name.startswith("webhook-") and name in ours for name in call.headers):
            ours = {name: value for name, value in ours.items() if not name.startswith("webhook-")}
        del ours["content-type"]
        return {**ours, **call.headers, **set_here}
