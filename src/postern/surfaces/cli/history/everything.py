"""`postern export --all`"""

import os
import sys
from pathlib import Path

from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.written import written


def export_everything(to: Path | None) -> None:
    machine = api.machine("export --all")
    if to is not None:
        with written(to, 0o600) as stream:
            machine.export_everything(stream.write)
        return
    try:
        machine.export_everything(sys.stdout.buffer.write)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough; nothing more can be printed at the end either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
