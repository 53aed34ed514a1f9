"""Read the user's workflow files: what they declare, which files that took, or what is wrong with them in one
line."""

import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from postern.workflows.language import Declared, collecting
from postern.workflows.places import Place, place_of

LONGEST = 2000
"""Characters of what an error says."""

_ours: set[str] = set()


@dataclass(frozen=True, slots=True)
class Loaded:
    workflows: tuple[Declared, ...] = ()
    files: tuple[Path, ...] = ()
    """Everything that was read, so that somebody can notice when it changes."""
    error: str = ""
    line: str = ""
    """The line that has the error, as it is written there."""


def workflow_files(path: Path) -> list[Path]:
    """The file itself, or the folder's Python files; a leading underscore keeps one out, and so does a dot, with which
    editors name what is theirs."""
    if path.is_dir():
        # listdir and not glob, which takes a folder that it cannot read for an empty one
        return sorted(
            path / name for name in os.listdir(path) if name.endswith(".py") and name[0] not in "_."
        )
    return [path]


def folder_of(path: Path) -> Path:
    """Where the user's own files are."""
    return path if path.is_dir() else path.parent


class EndsTheProcess(BaseException):
    """Nothing is said of a process that is ended so, and with 0 it looks as if all were well."""


@contextmanager
def not_ended() -> Iterator[None]:
    """Around a user's own code: ``os._exit`` is an error, with its line. It still ends the processes that the code makes."""
    ours, really = os.getpid(), os._exit

    def end(status: int) -> NoReturn:
        if os.getpid() != ours:
            really(status)
        raise EndsTheProcess(f"os._exit({status}) would end the process that runs all workflows")

    os._exit = end
    try:
        yield
    finally:
        os._exit = really


def load(path: Path) -> Loaded:
    """Run the files and collect what they declare. Never raises: they are somebody's work in progress."""
    path = path.resolve()
    folder = folder_of(path)
    _forget_ours()
    known = set(sys.modules)
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # last: a shop.py is found, a json.py takes nobody's place
    # A cached compilation is told apart by second and size only: two quick edits of one length would look the
    # same.
    kept, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    files: set[Path] = set()
    try:
        files.update(workflow_files(path))
        with collecting() as found, not_ended():
            for file in sorted(files):
                _run(file)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever a file ends with, its engine and its reader go on
        where = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
        if isinstance(error, SyntaxError) and error.filename:
            where.append(Path(error.filename))
        files.update(file for file in where if file.is_relative_to(folder))
        place = place_of(error, folder)
        return Loaded(
            files=tuple(files | _take_note(known, folder)),
            error=_in_one_line(error, place),
            line=place.text if place else "",
        )
    finally:
        sys.dont_write_bytecode = kept
    return Loaded(tuple(found), tuple(files | _take_note(known, folder)))


def _run(file: Path) -> None:
    loaded = sys.modules.get(file.stem)
    if loaded is not None and getattr(loaded, "__file__", None) == str(file):
        return  # another workflow file imported it already
    # Under its own name the files beside it can import it; unless that name is taken by a library (a json.py, say).
    name = file.stem if loaded is None else f"workflow_file_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.exists():
        raise FileNotFoundError(f"{file} does not exist")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise


def _take_note(known: set[str], folder: Path) -> set[Path]:
    """The user's modules among those that came since: which files they are, and what to forget before the
    next load."""
    files = set()
    for name in set(sys.modules) - known:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).is_relative_to(folder) and "site-packages" not in Path(file).parts:
            _ours.add(name)
            files.add(Path(file))
    return files


def _forget_ours() -> None:
    """So that a second load sees the files as they are now."""
    for name in _ours:
        sys.modules.pop(name, None)
    _ours.clear()


def _in_one_line(error: BaseException, place: Place | None) -> str:
    words, kind = _words_of(error), type(error).__name__
    if place is None:
        return words or kind
    return f"{place}: {words}" if isinstance(error, SyntaxError) else f"{place}: {kind[:LONGEST]}: {words}"


def _words_of(error: BaseException) -> str:
    """An exception of somebody's own may fail while it is asked for its words, and has as many as it likes."""
    try:
        return str(error.msg if isinstance(error, SyntaxError) else error)[:LONGEST]
    except KeyboardInterrupt:
        raise
    except BaseException:
        return "(it has no words for it)"
