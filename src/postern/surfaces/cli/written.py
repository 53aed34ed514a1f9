"""What a command writes to a file that is named with --output."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from postern.surfaces.cli.run import USAGE, end


@contextmanager
def written(to: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """The file has its name only when it is whole, and an older one stays until then. A link leads to it, and a device or a
    pipe is written to."""
    place = Path(os.path.realpath(to))
    unfinished = place.with_name(f"{place.name}.part")
    try:
        if to.exists() and not to.is_file():
            with to.open("wb") as stream:  # of a folder it says that it is one
                yield stream
            return
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as stream:
            yield stream
        unfinished.replace(place)
    except OSError as error:
        end(f"{to} cannot be written: {error.strerror}", USAGE)
    finally:
        with suppress(OSError):
            unfinished.unlink()
