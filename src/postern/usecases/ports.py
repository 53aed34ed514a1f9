"""The things that use cases need besides the database. Engines and fetchers have these methods without importing this."""

from collections.abc import Mapping
from typing import Literal, Protocol

from postern.core.answer import WorkflowResponse
from postern.core.deliveries.delivery import End, EngineHealth, Run, Started, Trigger, Workflow
from postern.core.fetched import Fetched


class Engine(Protocol):
    """The workflow engine.

    ``start`` is idempotent on the trigger's key. It raises ``EngineUnavailable`` (the delivery is tried again later) or
    ``EngineRejected`` (the delivery has failed; it can be replayed). ``health`` and ``close`` never raise.
    """

    name: str
    asked_after: float | None
    """Seconds after a start until ``ends`` is first asked about it; None if the engine cannot tell how runs end. An engine
    that tells by itself is asked late, and only if nothing was heard from it."""

    async def open(self) -> None:
        """Gets ready, without waiting: an engine that is not there yet is *unavailable*, not a failed start."""

    async def start(self, trigger: Trigger) -> Started: ...

    async def ended(self, key: str) -> Literal["completed", "failed"] | End | WorkflowResponse:
        """Waits until every run of this delivery has ended, or the engine brings the answer. An ``End`` is told only here.
        Asked only for a synchronous call, while its caller waits."""

    async def ends(self, keys: list[str]) -> dict[str, End | None]:
        """How these deliveries ended. None: a run is at work. Missing: no run is known. Raises ``EngineUnavailable``."""

    async def health(self) -> EngineHealth: ...

    async def workflows(self) -> list[Workflow] | None:
        """The workflows that the engine knows, or None if it cannot tell."""

    async def runs(self, limit: int = 50, delivery_key: str | None = None) -> list[Run] | None:
        """The newest runs (of one delivery), or None if the engine cannot tell."""

    async def forget(self, keys: list[str]) -> None:
        """Deletes the engine's copies of these deliveries' payloads, as retention does with ours."""

    async def close(self) -> None: ...


class Fetch(Protocol):
    """Requests a URL that a user typed, if the gateway may connect there, within bounds. Raises ``FetchTrouble``."""

    async def __call__(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str],
        content: bytes | None = None,
        timeout: float,
        max_bytes: int,
        max_redirects: int | None = 5,
    ) -> Fetched: ...
