"""Commands in the test's own process, for tests that type many: to start a process for each takes seconds."""

from functools import cache
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs
from typer import testing
from typer.main import get_command
from typer.testing import CliRunner, Result

from postern.settings import Settings
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.main import app, with_commands
from postern.surfaces.cli.run import output
from postern.wiring.commands.local import LocalApi
from support.program import Program


@cache
def _made(entered: int) -> Any:
    return get_command(with_commands())


# Typer's runner makes all commands anew for each that is typed, which took four fifths of it; they remember nothing. Some are
# entered by whoever assembles the program, after this was imported.
setattr(testing, "_get_command", lambda app: _made(len(app.registered_commands)))  # noqa: B010


def typed(folder: Path, *arguments: str, to: Program | None = None, **environment: str) -> Result:
    """``typed(tmp_path, "webhooks", "list")`` on the data in that folder, or, with ``to``, over the network; what the
    shell's environment sets is not seen."""
    api.make_local = lambda: LocalApi(
        Settings({"POSTERN_DATA_DIR": str(folder / "data"), "POSTERN_LOG": "off", **environment})
    )
    try:
        with capture_logs():  # the real program logs to standard error
            return CliRunner(env=client_environment(folder, to)).invoke(app, list(arguments))
    finally:
        output.as_json = False
        api.close()


def client_environment(folder: Path, to: Program | None) -> dict[str, str]:
    kept = {"XDG_CONFIG_HOME": str(folder / "config")}
    return kept if to is None else kept | {"POSTERN_URL": to.url, "POSTERN_API_KEY": to.admin_key}
