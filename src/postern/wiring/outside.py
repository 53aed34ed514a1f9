"""The requests that the gateway itself makes. What makes them is loaded with the first one: most commands make none."""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from postern.core.address import Allowlist
from postern.core.answer import LARGEST_RESPONSE
from postern.outbound.guard import FetchFailed
from postern.usecases.ports import Fetched, FetchTrouble

if TYPE_CHECKING:
    from postern.outbound.fetch import Fetcher

ANYWHERE = Allowlist.parse(["0.0.0.0/0", "::/0"])


class Outside:
    def __init__(self, allowed: Allowlist, base_url: str) -> None:
        self._allowed = allowed
        self._base_url = base_url

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
        for made in ("_fetcher", "_own"):
            if made in vars(self):
                await vars(self)[made].aclose()

    @cached_property
    def _fetcher(self) -> "Fetcher":
        return _fetcher(self._allowed)

    @cached_property
    def _own(self) -> "Fetcher":
        return _fetcher(ANYWHERE)


def _fetcher(allowed: Allowlist) -> "Fetcher":
    from postern.outbound.fetch import Fetcher

    return Fetcher(allowed_ranges=allowed)
