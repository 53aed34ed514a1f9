"""The interface to hear of changes of the workflow files and of runs."""

from postern.core.deliveries.delivery import Workflow
from postern.observe.logs import log


class Watch:
    """Writes log lines, for a service. The engine process itself says why a run failed."""

    look_every = 0.5
    """Seconds between two looks at the files."""
    wants_runs = False
    """The engine process reports each run instead of writing lines about it."""

    def changed(self, files: list[str]) -> None:
        log.info("the engine process is starting again: the workflows changed")

    def ready(self, workflows: list[Workflow]) -> None:
        log.info("the engine process is ready", workflows=len(workflows))

    def broken(self, error: str, line: str, sentence: str) -> None:
        """``sentence`` says what becomes of its workflows, too."""
        log.error("the workflows file has an error", error=sentence)

    def died(self, because: str, seconds: float) -> None:
        log.error("the engine process is started again", because=because, seconds=seconds)

    def run_over(self, key: str, workflow: str, error: str, place: str, line: str) -> None:
        """``error``: what it failed with; ``place`` and ``line``: where in the user's files."""
