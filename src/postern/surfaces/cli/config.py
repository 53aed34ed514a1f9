"""`postern export` and `postern apply`: the webhooks as a file."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from postern.surfaces.cli.run import ACTOR, DIFFERS, USAGE, Json, end, err, out, plain, session, show_json
from postern.usecases.webhooks import as_code

HEAD = """\
# Postern's webhooks. `postern apply FILE` makes them what this file says; what a webhook leaves out has its default.
# Secrets are not in here: {env: NAME} and {file: PATH} say where apply looks for them. A stored secret whose variable
# or file is not there stays as it is.
"""


def export(
    to: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file instead of standard output.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print every webhook as YAML, for a repository. Secrets are references, never values."""
    document = session.run(lambda gateway: as_code.export(gateway, ACTOR))
    if as_json:
        show_json(document)
        return
    text = HEAD + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
    if to is None:
        sys.stdout.write(text)
        return
    try:
        to.write_text(text)
    except OSError as error:
        end(f"{to} cannot be written: {error.strerror}", USAGE)


def apply(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The YAML file, or - for standard input.")],
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only show what would be changed. Ends with 6 when something would."),
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete the webhooks that the file does not name.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make the webhooks what a file says, and show the difference. All of it is checked first; applying twice
    changes nothing more.

    A webhook is found by its id, else by its name. Without --prune nothing is deleted.
    """
    document = _read(file)
    folder = Path(".") if file == "-" else Path(file).resolve().parent
    done = session.run(
        lambda gateway: as_code.apply(
            gateway, ACTOR, document, _secrets_in(folder), prune=prune, dry_run=dry_run
        )
    )
    if as_json:
        show_json(done)
    else:
        _show(done)
    if dry_run and done["changes"]:
        raise typer.Exit(DIFFERS)


class _Loader(yaml.SafeLoader):
    """Without aliases: nine lines of them can stand for billions."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "aliases are not taken; write it out", mark)
        return super().compose_node(parent, index)


def _read(file: str) -> Any:
    try:
        return yaml.load(sys.stdin if file == "-" else Path(file).read_text(), _Loader)
    except RecursionError:
        end(f"{file} is nested too deeply", USAGE)
    except OSError as error:
        end(f"{file} cannot be read: {error.strerror}", USAGE)
    except UnicodeDecodeError:
        end(f"{file} is not UTF-8 text", USAGE)
    except yaml.MarkedYAMLError as error:
        # Its own text quotes the line, and a secret may stand there.
        where = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        end(f"{file}{where}: this is not YAML: {error.problem}", USAGE)
    except yaml.YAMLError:
        end(f"{file} is not YAML", USAGE)


def _secrets_in(folder: Path) -> Callable[[str, str], str | None]:
    def secret_of(kind: str, where: str) -> str | None:
        if kind == "env":
            return os.environ.get(where) or None
        try:
            return (folder / where).read_text().rstrip("\n") or None
        except (OSError, UnicodeDecodeError):
            return None

    return secret_of


_SIGNS = {"create": ("+", "green"), "change": ("~", "yellow"), "delete": ("-", "red")}


def _show(done: dict[str, Any]) -> None:
    for change in done["changes"]:
        sign, colour = _SIGNS[change["action"]]
        out.print(f"[{colour}]{sign} {plain(change['name'])}[/{colour}]  {change['id'] or ''}")
        for path, values in change["differences"].items():
            before, after = (
                plain("nothing" if values[one] is None else str(values[one])) for one in ("before", "after")
            )
            out.print(
                f"    {plain(path)}: {after if change['action'] == 'create' else f'{before} → {after}'}"
            )
    for note in done["notes"]:
        err.print(f"Note: {note}", style="yellow", markup=False)
    for other in done["notNamed"]:
        out.print(
            f"  {plain(other['name'])}  {other['id']} is not in the file and stays; --prune would delete it."
        )
    verb = "would change" if done["dryRun"] else "changed"
    out.print(f"{len(done['changes'])} {verb}, {done['unchanged']} are as they should be.")
