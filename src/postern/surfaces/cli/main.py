"""`postern` with all its commands."""

import click
from click.shell_completion import get_completion_class

from postern import __version__
from postern.surfaces.cli import access, incidents, signatures, workflows
from postern.surfaces.cli.develop import listen, listeners, send
from postern.surfaces.cli.gateway import login
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.history import history, replays
from postern.surfaces.cli.operations import backup, serving
from postern.surfaces.cli.options import Choice, Group
from postern.surfaces.cli.run import EXIT_CODES
from postern.surfaces.cli.webhooks import configuration, many, samples, send_again, webhooks

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_POSTERN_COMPLETE"


@click.command()
@click.argument("shell", type=Choice(SHELLS), help="bash, zsh or fish.")
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script with which a shell completes commands, options and values on Tab.

    Examples:

      echo 'eval "$(postern completion bash)"' >> ~/.bashrc

      echo 'eval "$(postern completion zsh)"' >> ~/.zshrc

      postern completion fish > ~/.config/fish/completions/postern.fish
    """
    made = get_completion_class(shell)
    assert made is not None
    print(made(context.find_root().command, {}, "postern", VARIABLE).source())


SECTIONS: dict[str, list[click.Command]] = {
    "Webhooks and their calls": [
        webhooks.commands,
        history.commands,
        history.replay,
        replays.commands,
        incidents.commands,
        incidents.channels,
        send_again.send_again,
        signatures.commands,
        configuration.export,
        configuration.apply,
        configuration.schema,
    ],
    "Writing workflows and other programs": [
        serving.dev,
        listen.listen,
        listeners.commands,
        send.send,
        workflows.commands,
    ],
    "Running a gateway": [
        serving.serve,
        serving.settings,
        serving.migrate,
        serving.copy,
        backup.backup,
        backup.restore,
        serving.prune,
        signatures.secret_commands,
    ],
    "Who may do what": [access.keys, access.users, access.sessions, access.audit],
    "This command": [login.login, login.logout, login.status, completion, serving.mcp],
}
"""The commands by topic, as `--help` shows them."""

IN_GROUPS = [many, samples]
"""Modules whose commands belong to a group of another module."""


class Program(Group):
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in SECTIONS.items():
            self.write_commands(formatter, title, commands)


@click.group(cls=Program, epilog=f"Exit codes: {EXIT_CODES}.", context_settings={"show_default": True})
@click.version_option(
    __version__, prog_name="postern", message="%(prog)s %(version)s", help="Print the version and end."
)
@click.option(
    "--profile",
    help="The gateway to go to: the name of a login, or `local` for the database of this machine. It may stand anywhere. "
    "POSTERN_PROFILE says the same; POSTERN_URL with POSTERN_API_KEY needs no login.",
)
def program(profile: str | None) -> None:
    """Postern, the inbound webhook gateway.

    On this machine commands are answered by the gateway that serves the data folder; where none serves, they open the
    database themselves. After `postern login URL` they go to that gateway over the network instead.
    """
    api.profile = profile


for _commands in SECTIONS.values():
    for _command in _commands:
        program.add_command(_command)
