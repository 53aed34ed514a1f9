"""The requests that the gateway itself makes."""

from collections.abc import Mapping

from postern.core.address import Allowlist
from postern.core.answer import LARGEST_RESPONSE
from postern.outbound.fetch import Fetched, Fetcher

ANYWHERE = Allowlist.parse(["0.0.0.0/0", "::/0"])


class Outside:
    def __init__(self, allowed: Allowlist, base_url: str) -> None:
        self._base_url = base_url
        self._fetcher = Fetcher(allowed_ranges=allowed)
        self._own = Fetcher(allowed_ranges=ANYWHERE)
        self.fetch, self.prepare_own = self._fetcher.fetch, self._own.prepare

    async def call_own(
        self, target: str, *, headers: Mapping[str, str], content: bytes, timeout: float
    ) -> Fetched:
        # The address is the operator's own setting; what follows it cannot lead to another host.
        return await self._own.fetch(
            f"{self._base_url}/{target.lstrip('/')}", method="POST", headers=headers, content=content,
            # A redirect may be what the workflow has answered: it is answered, and not followed.
            timeout=timeout, max_bytes=LARGEST_RESPONSE, max_redirects=None,
        )  # fmt: skip

    async def aclose(self) -> None:
        await self._fetcher.aclose()
        await self._own.aclose()
