"""What the use cases need from the world. Stores and engines fit these shapes without importing them."""

from typing import Literal, Protocol

from postern.core.delivery import EngineHealth, Run, Started, Trigger, Workflow


class Engine(Protocol):
    """The workflow engine. It runs the automations; the gateway only starts them.

    ``start`` is idempotent on the trigger's key. It raises ``EngineUnavailable`` (the delivery backs off and comes back)
    or ``EngineRejected`` (the delivery has failed; it can be replayed). ``health`` never raises, and neither does ``close``.
    """

    name: str

    async def open(self) -> None:
        """Get ready to be asked. Returns at once: an engine that is not there yet is *unavailable*, not a failed start."""
        ...

    async def start(self, trigger: Trigger) -> Started: ...

    async def ended(self, key: str) -> Literal["completed", "failed"]:
        """Wait until every run of this delivery has ended. Asked only for a synchronous call, while its caller waits."""
        ...

    async def health(self) -> EngineHealth: ...

    async def workflows(self) -> list[Workflow] | None:
        """The workflows the engine knows, or None where an engine cannot tell."""
        ...

    async def runs(self, limit: int = 50, delivery_key: str | None = None) -> list[Run] | None:
        """The newest runs (of one delivery), or None where an engine cannot tell."""
        ...

    async def forget(self, keys: list[str]) -> None:
        """Delete the engine's own copies of these deliveries' payloads, as retention does with ours."""
        ...

    async def close(self) -> None: ...
