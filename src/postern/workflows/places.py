"""Where in the user's files something went wrong: the file, the line, and the line itself."""

import linecache
import traceback
from dataclasses import dataclass
from pathlib import Path

from postern.workflows.language import StepFailed


@dataclass(frozen=True, slots=True)
class SourcePlace:
    file: str
    line: int
    text: str = ""
    """The line as it is written there."""

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}"


def place_of(error: BaseException, folder: Path) -> SourcePlace | None:
    """The innermost line of the user's own; of a step that failed for good, where it failed the last time."""
    if isinstance(error, SyntaxError) and error.filename:
        file = Path(error.filename)
        # Python shows what it was parsing; the line of an indentation is not always among it.
        linecache.checkcache(error.filename)
        text = error.text or linecache.getline(error.filename, error.lineno or 0)
        return SourcePlace(_name(file, folder), error.lineno or 0, text.strip())
    chain = [error]
    while isinstance(chain[-1], StepFailed) and chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    for one in reversed(chain):
        own = [
            frame
            for frame in traceback.extract_tb(one.__traceback__)
            if _is_own(Path(frame.filename), folder)
        ]
        if own:
            return SourcePlace(
                _name(Path(own[-1].filename), folder), own[-1].lineno or 0, (own[-1].line or "").strip()
            )
    return None


def _is_own(file: Path, folder: Path) -> bool:
    return file.is_relative_to(folder) and "site-packages" not in file.parts


def _name(file: Path, folder: Path) -> str:
    return str(file.relative_to(folder)) if file.is_relative_to(folder) else file.name
