"""What the use cases need from the world beyond the database. Engines and fetchers fit these shapes without
importing them."""

from collections.abc import Mapping
from typing import Literal, Protocol

from postern.core.answer import WorkflowResponse
from postern.core.calls.call import Headers
from postern.core.deliveries.delivery import End, EngineHealth, Run, Started, Trigger, Workflow


class Engine(Protocol):
    """The workflow engine. It runs the automations; the gateway only starts them.

    ``start`` is idempotent on the trigger's key. It raises ``EngineUnavailable`` (the delivery backs off and
    comes back) or ``EngineRejected`` (the delivery has failed; it can be replayed). ``health`` never raises,
    and neither does ``close``.
    """

    name: str
    asked_after: float | None
    """Seconds after a start when ``ends`` is first asked about it; None where the engine cannot tell how runs
    end. One that tells by itself is asked late, and only where it was not heard."""

    async def open(self) -> None:
        """Get ready to be asked. Returns at once: an engine that is not there yet is *unavailable*, not a
        failed start."""

    async def start(self, trigger: Trigger) -> Started: ...

    async def ended(self, key: str) -> Literal["completed", "failed"] | End | WorkflowResponse:
        """Wait until every run of this delivery has ended, or until the engine itself brings the answer. An ``End`` where it
        is told here and never again.

        Asked only for a synchronous call, while its caller waits.
        """

    async def ends(self, keys: list[str]) -> dict[str, End | None]:
        """How these deliveries ended: None while a run of one is at work, nothing where none is known. Raises
        ``EngineUnavailable``."""

    async def health(self) -> EngineHealth: ...

    async def workflows(self) -> list[Workflow] | None:
        """The workflows the engine knows, or None where an engine cannot tell."""

    async def runs(self, limit: int = 50, delivery_key: str | None = None) -> list[Run] | None:
        """The newest runs (of one delivery), or None where an engine cannot tell."""

    async def forget(self, keys: list[str]) -> None:
        """Delete the engine's own copies of these deliveries' payloads, as retention does with ours."""

    async def close(self) -> None: ...


class Fetched(Protocol):
    """What a source answered."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Headers: ...

    @property
    def body(self) -> bytes: ...

    def header(self, name: str) -> str | None: ...

    def retry_after(self, now: float) -> float | None: ...


class Fetch(Protocol):
    """Ask at a URL that a user typed: only where the gateway may connect, bounded in time and size. Raises
    ``FetchTrouble``."""

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


class CallOwn(Protocol):
    """Make a call at the gateway's own public address, as a sender on the internet would, and nowhere else:
    ``target`` is what follows that address. Raises ``FetchTrouble``."""

    async def __call__(
        self, target: str, *, headers: Mapping[str, str], content: bytes, timeout: float
    ) -> Fetched: ...
