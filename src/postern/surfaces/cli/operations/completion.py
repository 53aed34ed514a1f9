"""`postern completion`"""

from typing import Annotated

import typer
from typer._completion_shared import get_completion_script

from postern.surfaces.cli.run import USAGE, end

SHELLS = ("bash", "zsh", "fish")


def completion(shell: Annotated[str, typer.Argument(metavar="SHELL", help=", ".join(SHELLS) + ".")]) -> None:
    """Print what makes a shell complete commands and options on Tab.

    Examples:

      echo 'eval "$(postern completion bash)"' >> ~/.bashrc

      echo 'eval "$(postern completion zsh)"' >> ~/.zshrc

      postern completion fish > ~/.config/fish/completions/postern.fish
    """
    if shell not in SHELLS:
        end(f"choose one of {', '.join(SHELLS)}", USAGE)
    print(get_completion_script(prog_name="postern", complete_var="_POSTERN_COMPLETE", shell=shell))
