"""`postern history save`: a recorded call as a fixture for tests."""

import errno
from pathlib import Path

import click

from postern.surfaces.cli.gateway.api import PLACE, api
from postern.surfaces.cli.history.history import commands, invocation_argument
from postern.surfaces.cli.run import CONFLICT, USAGE, end, report
from postern.surfaces.cli.written import written_whole
from postern.usecases.history.fixture_file import as_file, file_name
from postern.usecases.history.views.requests import Fixture


@commands.command("save")
@invocation_argument
@click.argument(
    "folder", type=click.Path(path_type=Path), help="Where the file is written, like tests/events."
)
@click.option("--as", "name", metavar="NAME", help="What the file is called. Default: after its event.")
@click.option("--replace", is_flag=True, help="Write over a file that is there.")
def save(invocation: str, folder: Path, name: str | None, replace: bool) -> None:
    """Save a recorded call as a fixture: a JSON file on which tests of workflows run. It holds the event as a workflow
    gets it, and the headers without credentials and signatures. What the payload holds is in it, whatever that is.

    Example:

      postern history save inv_… tests/events --as paid
    """
    if name is not None and not PLACE.fullmatch(name):
        end("--as: a name has up to 80 letters, digits, dots, dashes and underscores", USAGE)
    found = api.get(Fixture, "invocations", invocation, "fixture")
    stem = name.removesuffix(".json") if name else file_name(found, invocation)
    text = as_file(found)
    try:
        file, written = _keep(folder, stem, text, replace)
    except FileExistsError as error:
        end(
            f"{error.filename} exists already and says something else; --replace writes over it",
            CONFLICT,
            "conflict",
        )
    except OSError as error:
        end(f"{error.filename or folder} cannot be written: {error.strerror}", USAGE)
    report({"written": str(file)}, f"Written: {file}" if written else f"It is there already: {file}")


def _keep(folder: Path, stem: str, text: str, replace: bool) -> tuple[Path, bool]:
    file = folder / f"{stem}.json"
    folder.mkdir(parents=True, exist_ok=True)
    if not replace and file.exists():
        if file.read_bytes() == text.encode():
            return file, False
        raise FileExistsError(errno.EEXIST, "exists", str(file))
    with written_whole(file) as opened:
        opened.write(text.encode())
    return file, True
