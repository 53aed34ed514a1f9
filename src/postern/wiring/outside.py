"""The requests that the gateway itself makes."""

from collections.abc import Mapping

from postern.core.address import Allowlist
from postern.core.answer import LARGEST_RESPONSE
from postern.outbound.fetch import Fetcher
from postern.outbound.guard import FetchFailed
from postern.usecases.ports import Fetched, FetchTrouble

ANYWHERE = Allowlist.parse(["0.0.0.0/0", "::/0"])


class Outside:
    def __init__(self, allowed: Allowlist, base_url: str) -> None:
        self._base_url = base_url
        self._fetcher = Fetcher(allowed_ranges=allowed)
        self._own = Fetcher(allowed_ranges=ANYWHERE)

    async def fetch(self, url: str, *, headers: Mapping[str, str], timeout: float, max_bytes: int) -> Fetched:
        try:
            return await self._fetcher.fetch(url, headers=headers, timeout=timeout, max_bytes=max_bytes)
        except FetchFailed as failure:
            raise FetchTrouble(failure.detail, failure.status) from failure

    async def call_own(
        self, target: str, *, headers: Mapping[str, str], content: bytes, timeout: float
    ) -> Fetched:
        # The address is the operator's own setting; what follows it cannot lead to another host.
        try:
            return await self._own.fetch(
                f"{self._base_url}/{target.lstrip('/')}", method="POST", headers=headers, content=content,
                # A redirect may be what the workflow has answered: it is answered, and not followed.
                timeout=timeout, max_bytes=LARGEST_RESPONSE, max_redirects=None,
            )  # fmt: skip
        except FetchFailed as failure:
            raise FetchTrouble(failure.detail, failure.status) from failure

    async def prepare_own(self) -> None:
        await self._own.prepare()

    async def aclose(self) -> None:
        await self._fetcher.aclose()
        await self._own.aclose()
