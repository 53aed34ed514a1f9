"""Text that workflow files print becomes log lines that name the run."""

import io
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer

log = logging.getLogger("postern.print")

LONGEST_LINE = 32 * 1024
"""Characters. A longer line is continued in the next one."""

_run: ContextVar[tuple[str, str] | None] = ContextVar("run", default=None)
"""The workflow's name and the run's id."""


@contextmanager
def printing_for(workflow: str, run: str) -> Iterator[None]:
    """Text that this thread prints within belongs to the run."""
    token = _run.set((workflow, run))
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, Printed):
                stream.end_line()
        _run.reset(token)


class _UnfinishedLine(threading.local):
    """Each thread has its own: several print at the same time."""

    text = ""


class Printed(io.TextIOBase):
    """Stands for standard output or standard error."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, name: str, descriptor: int) -> None:
        self._name = name
        self._descriptor = descriptor
        self._here = _UnfinishedLine()
        self.buffer = _Bytes(self)

    def write(self, text: str, /) -> int:
        *lines, rest = (self._here.text + text).split("\n")
        for line in lines:
            self._say(line)
        while len(rest) > LONGEST_LINE:
            self._say(rest[:LONGEST_LINE])
            rest = rest[LONGEST_LINE:]
        self._here.text = rest
        return len(text)

    def end_line(self) -> None:
        text, self._here.text = self._here.text, ""
        if text:
            self._say(text)

    def _say(self, line: str) -> None:
        about = {"text": line, "stream": self._name}
        if (run := _run.get()) is not None:
            about["workflow"], about["run"] = run
        log.info("printed", extra={"about": about})

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor


class _Bytes(io.RawIOBase):
    def __init__(self, text: Printed) -> None:
        self._text = text

    def write(self, data: "Buffer", /) -> int:
        self._text.write(bytes(data).decode("utf-8", "replace"))
        return memoryview(data).nbytes

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._text.fileno()
