"""The machine that a command is typed on, as commands see it. The wiring makes it."""

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
        """Whether a gateway gave the last answer."""

    def settings(self) -> list[ShownSetting]: ...

    def machine(self, of_any_owner: bool = False) -> "Machine":
        """``of_any_owner``: the data folder may belong to another user."""


class Manifest(View):
    """The first file of a backup, which describes the others."""

    format: int
    version: str
    schema: str
    made_at: str
    key_fingerprints: list[str]
    """The fingerprints of the keys that encrypt the secrets in the database."""
    rows: dict[str, int]
    sha256: dict[str, str]
    """The hash of each other file in the backup, by its name."""


class Restored(View):
    manifest: Manifest
    moved_aside: list[str]
    keys_file: str | None
    """The file that holds the keys which were in the backup."""
    missing_keys: bool
    """The keys that encrypt its secrets are neither in it nor on this machine."""


class Machine(Protocol):
    """The work that only the machine of the data can do."""

    def serve(self, workers: int, slot: str | None, example: bool) -> None: ...

    def develop(self, example: bool) -> None: ...

    def migrate(self) -> str: ...

    def copy(
        self, whence: str, where: str, on_progress: Callable[[str, int, int], None]
    ) -> dict[str, int] | None:
        """Copies one database to another. Returns the number of rows of each table, or None if it was done before."""

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
        """Loads the workflows of that file or folder; without one, of this machine."""

    def workflows_folder(self) -> Path:
        """Returns the folder of this machine's workflow files. It may not exist."""

    def keep_workflow(self, name: str, text: str) -> Path:
        """Writes a new file among the workflows, never over an existing one."""

    def keep_test(self, workflow: Path, event: Document) -> list[Path]:
        """Writes a test for a workflow that was just written, and the event as its fixture."""

    def rehearse(self, name: str, event: dict[str, Any]) -> "Rehearsal": ...
