"""A backup is put back: all of it, or nothing."""

from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path

from postern.private_files import private_folder
from postern.settings import Settings
from postern.surfaces.cli.gateway.machine import Restored
from postern.wiring.backup.contents import DATABASE, JOURNAL, SIDES, BackupFailed, sqlite_file
from postern.wiring.backup.files import sync_folder, write_private
from postern.wiring.backup.keys import keys_of_backup, where_keys_go
from postern.wiring.backup.unpacking import unpacked
from postern.wiring.gateway import alone


def restore(settings: Settings, file: Path, *, passphrase: str | None, replace: bool) -> Restored:
    """Raises before anything is changed: ``BackupFailed``, or ``CannotStart`` where a gateway serves."""
    database = sqlite_file(settings)
    journal = settings.data_dir / JOURNAL
    private_folder(settings.data_dir)
    private_folder(database.parent)
    with alone(settings), unpacked(file, {DATABASE: database, JOURNAL: journal}) as contents:
        if (database.exists() or journal.exists()) and not replace:
            raise BackupFailed(
                f"There is a database already in {settings.data_dir}; --replace moves it aside"
            )
        given = keys_of_backup(file, contents.keys, passphrase)
        keys_file, missing = where_keys_go(settings, given, contents.manifest, replace)
        moved = []
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        with ExitStack() as undoing:  # what was done until something cannot be done
            # The database goes first and comes last: a start in between finds a journal without a database, and
            # says so instead of beginning anew.
            for old in (database, journal):
                moved += _move_aside(old, stamp, undoing)
            if keys_file is not None and given is not None:
                moved += _move_aside(keys_file, stamp, undoing)
                undoing.callback(keys_file.unlink, missing_ok=True)
                write_private(keys_file, given + "\n")
            # Which runs the engine was at when it ended: of the journal that is moved aside.
            were_at_work = _move_aside(journal.with_suffix(".working"), stamp, undoing)
            for name, place in ((JOURNAL, journal), (DATABASE, database)):
                if name in contents.databases:
                    undoing.callback(place.unlink, missing_ok=True)
                    contents.databases[name].replace(place)
                    sync_folder(place.parent)
            undoing.pop_all()
        for path in were_at_work:
            with suppress(OSError):
                path.unlink()
    return Restored(
        manifest=contents.manifest,
        moved_aside=[str(path) for path in moved],
        keys_file=str(keys_file) if keys_file else None,
        missing_keys=missing,
    )


def _move_aside(file: Path, stamp: str, undoing: ExitStack) -> list[Path]:
    """Moves the file aside with the log beside it, which would be taken for the new file's."""
    aside = file.with_name(f"{file.name}.before-{stamp}")
    number = 1
    while aside.exists():  # restored twice within a second
        number += 1
        aside = file.with_name(f"{file.name}.before-{stamp}-{number}")
    moved = []
    for side in SIDES:
        old, new = (path.with_name(path.name + side) for path in (file, aside))
        if old.exists():
            undoing.callback(_move_back, new, old)
            old.replace(new)
            moved.append(new)
    return moved[:1]


def _move_back(aside: Path, file: Path) -> None:
    if aside.exists():  # else it was interrupted just before
        aside.replace(file)
