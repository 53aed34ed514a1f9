"""What a command writes to a file: whole, or not at all."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from postern.surfaces.cli.run import USAGE, end


@contextmanager
def written(to: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """What is named with --output. A device or a pipe is written to."""
    try:
        if to.exists() and not to.is_file():
            with to.open("wb") as stream:  # of a folder it says that it is one
                yield stream
            return
        with written_whole(to, mode) as stream:
            yield stream
    except OSError as error:
        end(f"{to} cannot be written: {error.strerror}", USAGE)


@contextmanager
def written_whole(to: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """The file has its name only when it is whole, and an older one stays until then. A link leads to it. Nobody who was
    kept from opening the older one may open the new one."""
    place = Path(os.path.realpath(to))
    # A name of its own: `x.part` may be a file of the user's.
    unfinished = place.with_name(f".postern-{secrets.token_hex(8)}.part")
    try:
        made = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(made, "wb") as stream:
            with suppress(FileNotFoundError):
                os.fchmod(made, stat.S_IMODE(place.stat().st_mode) & mode)
            yield stream
        unfinished.replace(place)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(to)) from error
    finally:
        with suppress(OSError):
            unfinished.unlink()
