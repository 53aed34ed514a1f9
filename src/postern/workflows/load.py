"""Read the user's workflow files: what they declare, which files that took, or what is wrong with them in one
line."""

import ast
import importlib.util
import linecache
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder, SourceFileLoader
from inspect import iscoroutinefunction
from pathlib import Path
from types import CodeType, ModuleType
from typing import NoReturn

from postern.workflows.language import Declared, StepFailed, collecting

LONGEST = 2000
"""Characters of an error's message."""

_ours: set[str] = set()
_instead: dict[str, bytes] = {}
"""Sources by path, for files that cannot be loaded as they are now: the last version that could."""


@dataclass(frozen=True, slots=True)
class SourcePlace:
    file: str
    line: int
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}"


@dataclass(frozen=True, slots=True)
class BrokenFile:
    """A file that cannot be loaded as it is now."""

    file: str
    error: str
    line: str = ""
    """The line that has the error, as it is written there."""
    goes_on: bool = False
    """Its last version that could be loaded goes on. Otherwise its workflows are missing."""

    def __str__(self) -> str:
        if self.goes_on:
            return f"{self.error}; the last good version of {self.file} goes on"
        return (
            f"{self.error}; the workflows of {self.file} are missing, and calls that no other one wants wait"
        )


@dataclass(frozen=True, slots=True)
class Loaded:
    workflows: tuple[Declared, ...] = ()
    files: tuple[Path, ...] = ()
    """Every file that was read, to notice when one changes."""
    broken: tuple[BrokenFile, ...] = ()
    sources: Mapping[str, bytes] = field(default_factory=dict)
    """The sources by path, to go on with when a later version cannot be loaded."""

    @property
    def failed(self) -> BrokenFile | None:
        return self.broken[0] if self.broken and not self.workflows else None


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
    return path if path.is_dir() else path.parent


class EndsTheProcess(BaseException):
    """User code called ``os._exit``: that would end the process without a word, and with 0 as if all were well."""


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


def load(path: Path, last_good: Mapping[str, bytes] | None = None) -> Loaded:
    """Run the files and collect what they declare. Never raises: they are somebody's work in progress. A file that cannot be
    loaded does not stop the others; where its ``last_good`` version is given, that takes its place."""
    path = path.resolve()
    folder = folder_of(path)
    _forget_ours()
    known = set(sys.modules)
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # last: a shop.py is found, a json.py takes nobody's place
    # A cached compilation is told apart by second and size only: two quick edits of one length would look the
    # same.
    kept, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    sys.path_importer_cache[str(folder)] = FileFinder(
        str(folder), (ExtensionFileLoader, EXTENSION_SUFFIXES), (_Source, [".py"])
    )
    _instead.clear()
    files: set[Path] = set()
    broken: list[BrokenFile] = []
    try:
        paths = workflow_files(path)
        files.update(paths)
        with collecting() as declared, not_ended():
            for file in paths:
                broken += _load(file, folder, declared, files, last_good or {})
    except OSError as error:
        return Loaded(broken=(BrokenFile(path.name, str(error)),))
    finally:
        sys.dont_write_bytecode = kept
    files |= _take_note(known, folder)
    return Loaded(tuple(declared), tuple(files), tuple(broken), _sources(files, broken))


def _load(
    file: Path, folder: Path, declared: list[Declared], files: set[Path], last_good: Mapping[str, bytes]
) -> Iterator[BrokenFile]:
    """Loads a file and yields its errors. However it fails, the process goes on."""
    while True:
        try:
            _run(file)
            return
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            frames = traceback.extract_tb(error.__traceback__)
            unfinished = [str(file), *(frame.filename for frame in frames if frame.name == "<module>")]
            if isinstance(error, SyntaxError) and error.filename:
                unfinished.append(error.filename)
            own = [path for path in unfinished if Path(path).is_relative_to(folder)]
            files.update(map(Path, own))
            declared[:] = [workflow for workflow in declared if workflow.file not in own]
            place = place_of(error, folder)
            words = _in_one_line(error, place), place.text if place else ""
            changed = next((path for path in reversed(own) if _can_go_back(path, last_good)), None)
            if changed is None:
                yield BrokenFile(file.name, *words)
                return
            yield BrokenFile(Path(changed).name, *words, goes_on=True)
            _instead[changed] = last_good[changed]


def _can_go_back(file: str, last_good: Mapping[str, bytes]) -> bool:
    """Whether there is a last good version that differs from the file."""
    with suppress(OSError):
        return file not in _instead and last_good.get(file, now := Path(file).read_bytes()) != now
    return False


def _sources(files: set[Path], broken: list[BrokenFile]) -> dict[str, bytes]:
    missing = {fault.file for fault in broken if not fault.goes_on}
    sources = {}
    for file in files:
        with suppress(OSError):
            if file.name not in missing:
                key = str(file)
                sources[key] = _instead[key] if key in _instead else file.read_bytes()
    return sources


class _Source(SourceFileLoader):
    """Loads a file without its cached compilation, which may be of another version."""

    def get_code(self, fullname: str) -> CodeType:
        source, path = self.get_data(self.path), self.path
        code = self.source_to_code(source, path)
        linecache.cache.pop(path, None)
        if path in _instead:  # Tracebacks quote the lines that run, and not those that the file has now.
            lines = importlib.util.decode_source(source).splitlines(keepends=True)
            linecache.cache[path] = (len(source), None, lines, path)
        return code

    def get_data(self, path: str) -> bytes:
        return _instead[path] if path in _instead else super().get_data(path)


def _run(file: Path) -> None:
    loaded = sys.modules.get(file.stem)
    if loaded is not None and getattr(loaded, "__file__", None) == str(file):
        return  # another workflow file imported it already
    # Under its own name the files beside it can import it; unless that name is taken by a library (a json.py, say).
    name = file.stem if loaded is None else f"workflow_file_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file, loader=_Source(name, str(file)))
    if spec is None or spec.loader is None or not file.exists():
        raise FileNotFoundError(f"{file} does not exist")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        _all_awaited(module, file)
    except BaseException:
        sys.modules.pop(name, None)
        raise


def _all_awaited(module: ModuleType, file: Path) -> None:
    """A call of an async function that nothing awaits does nothing, and nobody would be told."""
    for node in ast.walk(ast.parse(_Source(module.__name__, str(file)).get_data(str(file)))):
        match node:
            case ast.Expr(ast.Call(ast.Name(name))) if iscoroutinefunction(vars(module).get(name)):
                error = (
                    f"{name} is not awaited: write await before it, in a function that begins with async def"
                )
                raise SyntaxError(error, (str(file), node.lineno, None, None))


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
    """Forgets the user's modules, so that a second load reads the files as they are now."""
    for name in _ours:
        sys.modules.pop(name, None)
    _ours.clear()


def _in_one_line(error: BaseException, place: SourcePlace | None) -> str:
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


def place_of(error: BaseException, folder: Path) -> SourcePlace | None:
    """The innermost line of the user's own; of a step that failed for good, where it failed the last time."""
    if isinstance(error, SyntaxError) and error.filename:
        file = Path(error.filename)
        # Python shows what it was parsing; the line of an indentation is not always among it.
        linecache.checkcache(error.filename)
        text = error.text or linecache.getline(error.filename, error.lineno or 0)
        return SourcePlace(_shown_name(file, folder), error.lineno or 0, text.strip())
    chain = [error]
    while isinstance(chain[-1], StepFailed) and chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    for cause in reversed(chain):
        own = [
            frame
            for frame in traceback.extract_tb(cause.__traceback__)
            if _is_own(Path(frame.filename), folder)
        ]
        if own:
            return SourcePlace(
                _shown_name(Path(own[-1].filename), folder), own[-1].lineno or 0, (own[-1].line or "").strip()
            )
    return None


def _is_own(file: Path, folder: Path) -> bool:
    return file.is_relative_to(folder) and "site-packages" not in file.parts


def _shown_name(file: Path, folder: Path) -> str:
    return str(file.relative_to(folder)) if file.is_relative_to(folder) else file.name
