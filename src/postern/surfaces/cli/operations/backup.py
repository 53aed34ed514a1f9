"""`postern backup` and `postern restore`."""

from pathlib import Path

import click

from postern.surfaces.cli.files import read_secret
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.options import PATH, command
from postern.surfaces.cli.run import end, for_programs, note, out, plain

passphrase_option = click.option(
    "--passphrase", metavar="SOURCE", help="The passphrase of the sealed keys: env:NAME, file:PATH or -."
)


@command()
@click.argument("file", type=PATH, help="The file to write.")
@click.option(
    "--keys", is_flag=True, help="Put the secret keys into it, in clear: whoever has the file has them."
)
@passphrase_option
@click.option("--replace", is_flag=True, help="Overwrite the file if it is there.")
def backup(*, file: Path, keys: bool, passphrase: str | None, replace: bool) -> None:
    """Write everything into one file, while the gateway serves: the database and the engine's journal, as of one
    moment. SQLite only.

    The secret keys are not in it unless you ask: in clear with --keys, or sealed with --passphrase. Without them
    the secrets in the backup cannot be read by anybody, you included: keep POSTERN_SECRET_KEYS, or secret.key,
    somewhere else.
    """
    machine = api.machine("backup")
    made = machine.back_up(file, with_keys=keys, passphrase=_passphrase(passphrase), replace=replace)
    for_programs(made)
    rows = made.rows
    out.print(
        f"{plain(str(file))}: {rows.get('invocations', 0):,} calls, {sum(rows.values()):,} rows in all."
    )
    if not keys and not passphrase and made.key_fingerprints:
        note("The secret keys are not in it: keep them apart from it.")


@command()
@click.argument("file", type=PATH, help="What `postern backup` has written.")
@passphrase_option
@click.option("--replace", is_flag=True, help="Move a database that is there aside; nothing is deleted.")
def restore(file: Path, passphrase: str | None, replace: bool) -> None:
    """Put a backup back into the data folder. Stop the gateway first. Everything in the file is checked before
    anything is changed."""
    machine = api.machine("restore")
    done = machine.restore(file, passphrase=_passphrase(passphrase), replace=replace)
    for_programs(done)
    rows = done.manifest.rows
    out.print(
        f"Restored what there was at {plain(done.manifest.made_at)}: {rows.get('invocations', 0):,} calls, "
        f"{sum(rows.values()):,} rows in all."
    )
    for path in done.moved_aside:
        out.print(f"The earlier data is {path} now.")
    if done.keys_file:
        out.print(f"Its keys are in {done.keys_file}.")
        if done.keys_file.endswith("secret-keys"):
            out.print(f"Set POSTERN_SECRET_KEYS_FILE={done.keys_file} for the gateway.")
    if done.missing_keys:
        note(
            f"Its secrets need the key {plain(' or '.join(done.manifest.key_fingerprints))}, which is not here: set "
            "POSTERN_SECRET_KEYS, or put it into secret.key in the data folder.",
            "yellow",
        )


def _passphrase(source: str | None) -> str | None:
    if source is None:
        return None
    # Without one, the keys would be left out, and whoever relies on them would learn it at the restore.
    return read_secret(source) or end(f"the passphrase from {source} is empty")
