"""The parts of a backup, and where they lie in a gateway's data folder."""

import os
from pathlib import Path

from postern.settings import PREFIX, Settings
from postern.wiring.gateway import database_file
from postern.wiring.starting import CannotStart

FORMAT = 1
MANIFEST = "manifest.json"
DATABASE = "postern.db"
JOURNAL = "engine.db"
KEYS = "keys"
SEALED_KEYS = "keys.sealed"
SIDES = ("", "-wal", "-shm", "-journal")
"""The endings of the files that SQLite puts beside a database and reads as a part of it."""

OWN = (
    "secret.key",
    "secret-keys",
    "serving.lock",
    "engine.lock",
    "engine.working",
    "address",
    "workflows.path",
    "commands.sock",
)
"""The other files in the data folder."""


class BackupFailed(CannotStart):
    """One sentence; nothing was written, or nothing was changed."""


def sqlite_file(settings: Settings) -> Path:
    file = database_file(settings)
    if file is None:
        raise BackupFailed("a Postgres database is backed up with Postgres' own tools: see docs/backup.md")
    return file


def is_own(settings: Settings, file: Path) -> bool:
    """Whether it is one that the gateway needs, which may not even be there yet: nothing else may take its place."""
    folder = settings.data_dir.resolve()
    own = {folder / f"{JOURNAL}{side}" for side in SIDES} | {folder / name for name in OWN}
    if (file_of_database := database_file(settings)) is not None:
        database = file_of_database.resolve()
        own |= {database.with_name(database.name + side) for side in (*SIDES, ".lock")}
    for name, value in settings.environment.items():
        if name.startswith(PREFIX) and name.endswith("_FILE") and value:
            own.add(Path(os.path.realpath(value)))
    return Path(os.path.realpath(file)) in own  # not resolve(), which raises where links go round in a circle
