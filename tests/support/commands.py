"""Commands in the test's own process, for tests that type many: to start a process for each takes seconds."""

import sys
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner, Result
from structlog.testing import capture_logs

from postern.settings import Settings
from postern.surfaces.cli.entry import run_typed
from postern.surfaces.cli.gateway.api import api
from postern.wiring.program import LocalApi
from support.program import Program


class Postern(click.Command):
    """The program as it is when it is typed."""

    def main(self, args: Any = None, *_: object, **__: object) -> Any:
        sys.exit(run_typed([*args]))


def typed(folder: Path, *arguments: str, to: Program | None = None, **environment: str) -> Result:
    """``typed(tmp_path, "webhooks", "list")`` on the data in that folder, or, with ``to``, over the network; what the
    shell's environment sets is not seen."""
    settings = Settings({"POSTERN_DATA_DIR": str(folder / "data"), "POSTERN_LOG": "off", **environment})
    api.open_local = lambda: LocalApi(settings)
    try:
        with capture_logs():  # the real program logs to standard error
            return CliRunner(env=client_environment(folder, to)).invoke(Postern("postern"), arguments)
    finally:
        api.close()


def client_environment(folder: Path, to: Program | None) -> dict[str, str]:
    kept = {"XDG_CONFIG_HOME": str(folder / "config")}
    return kept if to is None else kept | {"POSTERN_URL": to.url, "POSTERN_API_KEY": to.admin_key}
