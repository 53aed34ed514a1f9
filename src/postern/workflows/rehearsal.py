"""Try a workflow without an engine: run the plain function on one event and see what it would have
answered."""

import contextlib
import io
import json
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from postern.workflows.language import Once, carry_out, running
from postern.workflows.load import load


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """How it went. ``answer`` is the first answer (status, headers, body), or None where the workflow gave
    none."""

    answer: dict[str, Any] | None = None
    error: str = ""
    printed: str = ""


@dataclass
class _Rehearsing:
    """Steps run, sleeps pass in no time, the first answer is kept."""

    first_answer: dict[str, Any] | None = field(default=None)

    @contextlib.contextmanager
    def once(self, name: str) -> Iterator[Once]:
        yield Once()

    def sleep(self, seconds: float) -> None:
        print(f"(would sleep for {seconds:g} seconds)")

    def answer(self, document: str) -> bool:
        if self.first_answer is not None:
            return False
        self.first_answer = json.loads(document)
        return True


def rehearse(path: Path, name: str, event: dict[str, Any]) -> Rehearsal:
    """Run the workflow of this name from the file (or folder) on the event. Never raises on what the file
    does."""
    printed = io.StringIO()
    runner = _Rehearsing()
    error = ""
    with contextlib.redirect_stdout(printed), running(runner):
        loaded = load(path)
        function = next((declared.function for declared in loaded.workflows if declared.name == name), None)
        if loaded.error:
            error = f"the workflows file has an error: {loaded.error}"
        elif function is None:
            names = ", ".join(sorted(declared.name for declared in loaded.workflows)) or "none"
            error = f"there is no workflow called {name} in {path}; there is: {names}"
        else:
            try:
                carry_out(function, event)
            except (Exception, SystemExit):
                error = traceback.format_exc(limit=-3).strip()
    return Rehearsal(runner.first_answer, error, printed.getvalue())
