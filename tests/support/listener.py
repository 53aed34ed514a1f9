"""`postern listen` as a program of its own: what it prints, as it comes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from support.forks import Fork
from support.program import Program, clean_environment
from support.waiting import PATIENCE, wait_until


class Listening:
    def __init__(self, folder: Path, words: list[str], environment: dict[str, str]) -> None:
        self._printed, self._told = folder / "printed", folder / "told"
        self.process = Fork(["listen", *words], folder, environment, self._printed, self._told)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) if line.startswith("{") else line for line in _whole_lines(self._printed)]

    @property
    def trouble(self) -> list[str]:
        return _whole_lines(self._told)

    def wait_for(self, count: int) -> None:
        wait_until(
            lambda: len(self.lines) >= count, what=lambda: f"{count} lines, not {self.lines} {self.trouble}"
        )

    def stop(self) -> int:
        self.process.send_signal(2)
        return self.process.wait(PATIENCE)


def _whole_lines(file: Path) -> list[str]:
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    return [line for line in lines if line.endswith("\n")]


@contextmanager
def listening(
    gateway: Program, *words: str, url: str = "", key: str = "", json_lines: bool = True
) -> Iterator[Listening]:
    given = {"POSTERN_URL": url or gateway.url, "POSTERN_API_KEY": key or gateway.admin_key}
    environment = clean_environment({**given, "TOKEN": "a token of my own"})
    folder = Path(mkdtemp(dir=gateway.data_dir.parent))
    mine = Listening(folder, [*words, *(["--json"] if json_lines else [])], environment)
    try:
        yield mine
    finally:
        mine.process.kill()
        mine.process.wait()
