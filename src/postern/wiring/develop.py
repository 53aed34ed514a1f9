"""`postern dev`: the gateway and its embedded engine in one terminal, for whoever writes workflow files."""

from postern.core.deliveries.delivery import Workflow
from postern.engines.embedded.frames import RunOver
from postern.engines.embedded.watching import Watch
from postern.settings import Settings
from postern.surfaces.cli.develop.dev_lines import DevLines
from postern.wiring.serving import Beside, serve


class _ShownOnTerminal(Watch):
    look_every = 0.1
    wants_runs = True

    def __init__(self, lines: DevLines) -> None:
        self._lines = lines

    def changed(self, files: list[str]) -> None:
        self._lines.changed(files)

    def ready(self, workflows: list[Workflow]) -> None:
        self._lines.ready(workflows)

    def broken(self, error: str, line: str, sentence: str) -> None:
        self._lines.broken(error, line, sentence.removeprefix(f"{error}; "))

    def died(self, because: str, seconds: float) -> None:
        self._lines.died(because)

    def run_over(self, run: RunOver) -> None:
        self._lines.run_over(run.key, run.workflow, run.error, run.place, run.line)


async def develop(settings: Settings) -> None:
    lines = DevLines()
    await serve(settings, beside=Beside(_ShownOnTerminal(lines), lines.follow))
