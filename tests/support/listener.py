"""`postern listen` as a program of its own: what it prints, as it comes."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from support.program import Program, clean_environment
from support.waiting import PATIENCE, wait_until


class Listening:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[Any] = []
        self.trouble: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(process.stdout, self._line)),
            threading.Thread(target=self._read, args=(process.stderr, self.trouble.append)),
        ]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(stream: IO[str], note: Callable[[str], None]) -> None:
        with stream:
            for line in stream:
                note(line)

    def _line(self, line: str) -> None:
        self.lines.append(json.loads(line) if line.startswith("{") else line)

    def wait_for(self, count: int) -> None:
        wait_until(
            lambda: len(self.lines) >= count, what=lambda: f"{count} lines, not {self.lines} {self.trouble}"
        )

    def stop(self) -> int:
        self.process.send_signal(2)
        return self.process.wait(PATIENCE)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for reader in self._readers:
            reader.join()


@contextmanager
def listening(
    gateway: Program, *words: str, url: str = "", key: str = "", json_lines: bool = True
) -> Iterator[Listening]:
    """Begun when it says that it waits: from then on nothing is missed."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "postern", "listen", *words, *(["--json"] if json_lines else [])],
        env=clean_environment(
            {
                "POSTERN_URL": url or gateway.url,
                "POSTERN_API_KEY": key or gateway.admin_key,
                "TOKEN": "a token of my own",
            }
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    mine = Listening(process)
    try:
        yield mine
    finally:
        mine.end()
