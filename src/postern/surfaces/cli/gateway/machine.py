"""What a command needs of the machine that it is typed on, where it does not ask a gateway over the network. The
wiring makes it."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from postern.core.documents import Document
from postern.core.operations.shown_setting import ShownSetting
from postern.surfaces.cli.gateway.source import Source
from postern.usecases.answers import View

if TYPE_CHECKING:
    from postern.workflows import Rehearsal
    from postern.workflows.load import Loaded


class Local(Source, Protocol):
    """The API, asked of the gateway that serves this machine's data, or on the local database where none does."""

    @property
    def is_served(self) -> bool:
        """Whether it was a gateway that gave the last answer."""

    def settings(self) -> list[ShownSetting]: ...

    def machine(self) -> "Machine": ...


class Wiring(Protocol):
    """What the commands are handed by the wiring."""

    def local(self) -> Local: ...

    def serve(self, workers: int, slot: str | None, example: bool) -> None: ...

    def develop(self, workflows: Path | None, port: int | None, example: bool) -> None: ...

    def migrate(self) -> str: ...

    def copy(
        self, whence: str, where: str, on_progress: Callable[[str, int, int], None]
    ) -> dict[str, int] | None:
        """Everything from one database to another; how many rows each table has, or None where it was done before."""


class Manifest(View):
    """What a backup says about itself, in its first file."""

    format: int
    version: str
    schema: str
    made_at: str
    key_fingerprints: list[str]
    """Of the keys that encrypt the secrets in the database."""
    rows: dict[str, int]
    """By table."""
    sha256: dict[str, str]
    """By the name of each other file in the backup."""


class Restored(View):
    manifest: Manifest
    moved_aside: list[str]
    keys_file: str | None
    """Where the keys that were in the backup are now."""
    missing_keys: bool
    """Nobody has given the keys that the secrets in it are encrypted with."""


class Machine(Protocol):
    """What only the machine can do."""

    def plan_pruning(self) -> dict[str, int]: ...

    def prune(self, report: Callable[[str, int], None]) -> dict[str, int]: ...

    def rotate_key(self) -> int: ...

    def back_up(self, file: Path, *, with_keys: bool, passphrase: str | None, replace: bool) -> Manifest: ...

    def restore(self, file: Path, *, passphrase: str | None, replace: bool) -> Restored: ...

    def is_own(self, file: Path) -> bool:
        """Whether a gateway of this machine needs it, like its database or its keys."""

    def export_everything(self, write: Callable[[bytes], object]) -> None: ...

    def speak_mcp(self, level: str) -> None: ...

    def load_workflows(self, path: Path | None) -> "Loaded":
        """Those of that file or folder; without one, of this machine."""

    def workflows_folder(self) -> Path:
        """Where the workflow files of this machine are, whether it is there or not."""

    def keep_workflow(self, name: str, text: str) -> Path:
        """A new file among the workflows, never over one that is there."""

    def keep_test(self, workflow: Path, event: Document) -> list[Path]:
        """A test for a workflow that was just written, and the event as its fixture."""

    def rehearse(self, name: str, event: dict[str, Any]) -> "Rehearsal":
        """Run the workflow of this name once, without an engine."""
