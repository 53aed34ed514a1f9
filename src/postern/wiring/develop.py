"""`postern dev`: the gateway and its embedded engine in one terminal, for whoever writes workflow files."""

from postern.core.deliveries.delivery import Workflow
from postern.engines.embedded.frames import RunOver
from postern.engines.embedded.watching import Watch
from postern.settings import Settings
from postern.surfaces.cli.develop.telling import Teller
from postern.wiring.serving import Beside, serve


class _Telling(Watch):
    look_every = 0.1
    hears_of_runs = True

    def __init__(self, teller: Teller) -> None:
        self._teller = teller

    def changed(self, files: list[str]) -> None:
        self._teller.changed(files)

    def ready(self, workflows: list[Workflow]) -> None:
        self._teller.ready([one.name for one in workflows])

    def broken(self, error: str, line: str) -> None:
        self._teller.broken(error, line)

    def died(self, because: str, seconds: float) -> None:
        self._teller.died(because)

    def run_over(self, run: RunOver) -> None:
        self._teller.run_over(run.key, run.workflow, run.error, run.place, run.line)


async def develop(settings: Settings) -> None:
    teller = Teller()
    await serve(settings, beside=Beside(_Telling(teller), teller.follow))
