"""Everything that use cases work with, in a few bundles. ``wiring`` makes it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from postern import identity
from postern.core.access.accounts import Actor, Level
from postern.core.address import Allowlist
from postern.core.deliveries.delivery import Workflow
from postern.core.fetched import Fetched
from postern.core.operations.retention import RetentionPolicy
from postern.core.operations.shown_setting import ShownSetting
from postern.core.problems import Refused
from postern.core.watch.alarms import AlarmPolicy
from postern.core.webhooks.target import OwnTarget
from postern.stores.store import Store
from postern.usecases.ports import Engine, Fetch
from postern.usecases.runtime.process import Runtime
from postern.usecases.runtime.site import Site


async def _nothing_known() -> tuple[list[Workflow] | None, list[str]]:
    return None, []


@dataclass
class WorkflowFiles:
    """The embedded engine's workflow files. A process without an engine finds them too."""

    path: Path | None = None
    """A file or a folder; None with another engine."""
    known: Callable[[], Awaitable[tuple[list[Workflow] | None, list[str]]]] = _nothing_known
    """Their workflows, and what is wrong with files."""


@dataclass
class Outbound:
    """Requests that the gateway makes: for schedules and test calls, and to tell of incidents."""

    fetch: Fetch | None = None
    target: Callable[[str, OwnTarget, Callable[[str], object]], Engine] | None = None
    """A webhook's own target, by the webhook's id."""
    allowed: Allowlist | None = None
    """The private addresses that were opened; None in a process that does not fetch by itself."""
    call_own: Callable[[str, Mapping[str, str], bytes, float], Awaitable[Fetched]] | None = None
    """Calls the gateway at its public address, as senders do: target, headers, body, seconds. Raises ``FetchTrouble``."""
    prepare_own: Callable[[], Awaitable[None]] | None = None
    """Does what the first ``call_own`` would have to wait for, so that it does not count as the answer's time."""
    mail: Callable[[str, str, str, str], Awaitable[None]] | None = None
    """To whom, subject, text, and a key that stays the same when it is tried again. Raises ``FetchTrouble``."""


@dataclass
class Gateway:
    store: Store
    site: Site
    runtime: Runtime
    engine: Engine | None = None
    """None in a command: deliveries are left for a process that serves."""
    workflow_files: WorkflowFiles = field(default_factory=WorkflowFiles)
    outbound: Outbound = field(default_factory=Outbound)
    retention: RetentionPolicy = field(default_factory=RetentionPolicy)
    alarms: AlarmPolicy = field(default_factory=AlarmPolicy)
    settings: list[ShownSetting] = field(default_factory=list)
    """The settings of the process, as they may be shown."""
    clock: Callable[[], float] = field(default_factory=lambda: identity.clock)


def require(actor: Actor, level: Level) -> None:
    """Every use case first names the level that it needs."""
    if not actor.may(level):
        raise Refused("access_denied", f"this needs the access level {level}; yours is {actor.level}")
