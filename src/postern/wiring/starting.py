"""What keeps a gateway from starting, as a value: only the command ends the process."""

from postern.surfaces.cli.run import FAILED


class CannotStart(Exception):
    """One sentence for whoever started it, and the exit code that goes with it."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
