"""Commands in the test's own process, for tests that type many: to start a process for each takes seconds."""

from pathlib import Path

from structlog.testing import capture_logs
from typer.testing import CliRunner, Result

from postern.settings import Settings
from postern.surfaces.cli.main import app
from postern.surfaces.cli.run import session
from postern.wiring.gateway import opened


def typed(folder: Path, *arguments: str, **environment: str) -> Result:
    """``typed(tmp_path, "webhooks", "list")`` on the data in that folder; what the shell's environment sets
    is not seen."""
    session.open = lambda: opened(
        Settings({"POSTERN_DATA_DIR": str(folder / "data"), "POSTERN_LOG": "off", **environment})
    )
    with capture_logs():  # the real program logs to standard error
        return CliRunner().invoke(app, list(arguments))
