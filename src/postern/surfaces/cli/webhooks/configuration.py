"""`postern export`, `apply` and `schema`: the webhooks as a file."""

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from postern.surfaces.cli.files import unicode_of, written
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.options import PATH, command
from postern.surfaces.cli.run import DIFFERS, end, for_programs, note, out, plain, show_json
from postern.surfaces.cli.terminal import Style
from postern.usecases.answers import as_plain
from postern.usecases.webhooks.views import Applied, Configuration

LONGEST_SECRET = 65_536
"""Characters, as in the API."""

HEAD = """\
# yaml-language-server: $schema=webhooks.schema.json
# (Editors check this file with that one beside it: postern schema > webhooks.schema.json)
# Postern's webhooks. `postern apply FILE` makes them what this file says; what a webhook leaves out has its default.
# Secrets are not in here: {env: NAME} and {file: PATH} say where apply looks for them. A stored secret whose variable
# or file is not there stays as it is.
"""


@command()
@click.option("--output", "-o", "to", type=PATH, help="Write to this file instead of standard output.")
@click.option(
    "--all",
    "all_of_it",
    is_flag=True,
    help="Everything instead: webhooks, users, keys, changes and calls, as lines of JSON.",
)
def export(to: Path | None, all_of_it: bool) -> None:
    """Print every webhook as YAML, for a repository. Secrets are references, never values."""
    if to is not None and api.here().is_own(to):
        end(f"{to} is a file of the gateway's own; give the export another name")
    if all_of_it:
        export_everything(to)
        return
    document = api.get(Configuration, "configuration")
    if out.as_json:
        show_json(document)
        return
    text = HEAD + _yaml().written(as_plain(document))
    if to is None:
        sys.stdout.write(text)
        return
    with written(to) as stream:
        stream.write(text.encode())


@command()
@click.argument("file", metavar="FILE", help="The YAML file, or - for standard input.")
@click.option(
    "--dry-run", is_flag=True, help="Only show what would be changed. Ends with 6 when something would."
)
@click.option("--prune", is_flag=True, help="Delete the webhooks that the file does not name.")
def apply(file: str, dry_run: bool, prune: bool) -> None:
    """Change the webhooks to match a file, and show the differences. All of it is checked first; applying twice
    changes nothing more.

    A webhook is found by its id, else by its name. Without --prune nothing is deleted.
    """
    document = _yaml().read(file)
    folder = Path(".") if file == "-" else Path(file).resolve().parent
    request = {"document": document, "secrets": _secrets(document, folder), "prune": prune, "dryRun": dry_run}
    done = api.post(Applied, "configuration", body=request)
    for_programs(done)
    _show(done)
    if dry_run and done.changes:
        raise click.exceptions.Exit(DIFFERS)


def _yaml() -> ModuleType:
    import postern.surfaces.cli.webhooks.yaml_files as yaml_files

    return yaml_files


def _secrets(document: Any, folder: Path) -> list[dict[str, str]]:
    """Returns the secrets that the document's references name on this machine."""
    secrets: dict[tuple[str, str], str | None] = {}
    webhooks = _object(document).get("webhooks")
    for webhook in webhooks if isinstance(webhooks, list) else ():
        for part in (
            _object(_object(webhook).get("authentication")),
            *(
                _object(_object(_object(webhook).get(setting)).get("headers"))
                for setting in ("schedule", "target")
            ),
            _object(_object(webhook).get("target")),
        ):
            for reference in part.values():
                kind, name = next(iter(_object(reference).items()), ("", ""))
                if kind in ("env", "file") and len(reference) == 1 and isinstance(name, str) and name:
                    text = os.environ.get(name) if kind == "env" else _text_of(folder / name)
                    secrets[kind, name] = _as_secret(text, name)
    return [{"kind": kind, "name": name, "value": value} for (kind, name), value in secrets.items() if value]


def _object(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _text_of(file: Path) -> str | None:
    try:
        with file.open() as opened:
            return opened.read(LONGEST_SECRET + 2).rstrip("\n") or None  # a device has no end
    except (OSError, UnicodeDecodeError, ValueError):
        return None


def _as_secret(text: str | None, name: str) -> str | None:
    if text is not None and len(text) > LONGEST_SECRET:
        end(f"{name} holds more than {LONGEST_SECRET:,} characters, which no secret has")
    return text if text is None else unicode_of(text, name)


_SIGNS: dict[str, tuple[str, Style]] = {
    "create": ("+", "green"),
    "change": ("~", "yellow"),
    "delete": ("-", "red"),
}


def _show(done: Applied) -> None:
    for change in done.changes:
        sign, colour = _SIGNS[change.action]
        out.print(f"{out.styled(f'{sign} {plain(change.name)}', colour)}  {change.id or ''}")
        for path, values in change.differences.items():
            before, after = (
                plain("nothing" if value is None else str(value)) for value in (values.before, values.after)
            )
            out.print(f"    {plain(path)}: {after if change.action == 'create' else f'{before} → {after}'}")
    for remark in done.notes:
        note(f"Note: {remark}", "yellow")
    for other in done.not_named:
        out.print(f"  {plain(other.name)}  {other.id} is not in the file and stays; --prune would delete it.")
    verb = "would change" if done.dry_run else "changed"
    out.print(f"{len(done.changes)} {verb}, {done.unchanged} are as they should be.")


@click.command()
def schema() -> None:
    """Print the JSON Schema of the file that `apply` takes. An editor that knows it completes and checks the file
    while you write.

    Example:

      postern schema > webhooks.schema.json
    """
    from postern.usecases.webhooks.file.schema import schema as of_the_file

    show_json(of_the_file())


def export_everything(to: Path | None) -> None:
    machine = api.machine("export --all")
    if to is not None:
        with written(to, 0o600) as stream:
            machine.export_everything(stream.write)
        return
    try:
        machine.export_everything(sys.stdout.buffer.write)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough; nothing more can be printed at the end either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
