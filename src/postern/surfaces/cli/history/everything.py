"""`postern export --all`"""

import os
import sys
from contextlib import suppress
from pathlib import Path

from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.run import USAGE, end


def export_everything(to: Path | None) -> None:
    """To standard output, or to a file that has its name only when it is whole. A link leads to it, and a device or a pipe is
    written to."""
    machine = api.machine("export --all")
    if to is None:
        try:
            machine.export_everything(sys.stdout.buffer.write)
            sys.stdout.flush()
        except BrokenPipeError:  # `| head` has seen enough; nothing more can be printed at the end either
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    place = Path(os.path.realpath(to))
    unfinished = place.with_name(f"{place.name}.part")
    try:
        if to.exists() and not to.is_file():
            with to.open("wb") as stream:  # of a folder it says that it is one
                machine.export_everything(stream.write)
            return
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
            machine.export_everything(stream.write)
        unfinished.replace(place)
    except OSError as error:
        end(f"{to} cannot be written: {error.strerror}", USAGE)
    finally:
        with suppress(OSError):
            unfinished.unlink()
