"""`postern completion`"""

import click
from click.shell_completion import get_completion_class

from postern.surfaces.cli.options import Choice

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_POSTERN_COMPLETE"


@click.command()
@click.argument("shell", type=Choice(SHELLS), help="bash, zsh or fish.")
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes a shell complete commands, options and their values on Tab.

    Examples:

      echo 'eval "$(postern completion bash)"' >> ~/.bashrc

      echo 'eval "$(postern completion zsh)"' >> ~/.zshrc

      postern completion fish > ~/.config/fish/completions/postern.fish
    """
    made = get_completion_class(shell)
    assert made is not None
    print(made(context.find_root().command, {}, "postern", VARIABLE).source())
