"""The lines of `postern dev`: one for each call and each end of a run, and those about workflow files."""

import asyncio
import time

from postern.core.access.accounts import Actor
from postern.core.deliveries.delivery import Workflow, invocation_of_key
from postern.core.history.invocation import StoreUnavailable
from postern.observe.watching import Watch
from postern.surfaces.cli.run import counted, out, plain
from postern.surfaces.cli.terminal import Style
from postern.surfaces.session import COMMAND_LINE
from postern.usecases.history import history, live
from postern.usecases.operations.engine import problems_of
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.summary import InvocationSummary
from postern.usecases.webhooks import picking

PATIENCE = 5.0
"""Seconds. A run's end waits so long for the line of its call, which is read from the history."""
REMEMBERED = 1_000
LONGEST_BODY = 200
AGAIN_AFTER = 1.0


class DevLines(Watch):
    look_every = 0.1
    wants_runs = True

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._named: dict[str, bool] = {}
        """The calls that have their line, by id. True: a line says that no workflow wants the call."""
        self._runs: dict[str, list[tuple[str, Style]]] = {}
        """Lines about runs that wait for the line of their call, by the call's id."""
        self._changed_at: float | None = None
        self.broken_now = False
        self._gateway: Gateway | None = None
        self._known: list[Workflow] = []

    # --- the workflow files ------------------------------------------------------------------------------------

    def changed(self, files: list[str]) -> None:
        self._changed_at = time.monotonic()
        self._line(f"{', '.join(map(plain, files)) or 'the workflow files'} changed")

    def ready(self, workflows: list[Workflow]) -> None:
        self.broken_now = False
        took, self._changed_at = self._changed_at, None
        count = counted(len(workflows), "workflow")
        after = "" if took is None else f" (after {time.monotonic() - took:.1f} s)"
        self._line(
            f"{count}: {', '.join(workflow.name for workflow in workflows)}{after}"
            if workflows
            else "no workflow in the files yet",
            "bold",
        )
        self._known = workflows
        self._say_what_keeps_them()

    def _say_what_keeps_them(self) -> None:
        if self._gateway is not None:
            for problem in problems_of(self._gateway, self._known):
                self._more(plain(problem), "red")
            self._known = []

    def broken(self, error: str, line: str, sentence: str) -> None:
        therefore = sentence.removeprefix(f"{error}; ")
        self.broken_now, self._changed_at = True, None
        self._line(plain(error), "red")
        if line:
            self._more(f"    {plain(line)}")
        self._more(f"{plain(therefore)[:1].upper()}{plain(therefore)[1:]}.")

    def died(self, because: str, seconds: float) -> None:
        self._line(f"{plain(because)}. It is started again.", "red")

    # --- calls and runs ----------------------------------------------------------------------------------------

    def run_over(self, key: str, workflow: str, error: str, place: str, line: str) -> None:
        invocation = invocation_of_key(key)
        lines: list[tuple[str, Style]] = [(f"  {plain(workflow)} {'failed' if error else 'completed'}", "")]
        if error:
            lines = [(f"  {plain(workflow)} failed: {plain(error)}", "red")]
            if place:
                lines.append((f"  {plain(place)}: {plain(line)}", ""))
        if invocation in self._named:
            self._show_lines(lines)
            return
        if invocation not in self._runs:
            asyncio.get_running_loop().call_later(PATIENCE, self._show_runs, invocation)
        self._runs.setdefault(invocation, []).extend(lines)

    async def follow(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._say_what_keeps_them()

        async def still() -> Actor:
            return COMMAND_LINE

        after: str | None = None
        while True:
            stream = await live.follow(gateway, COMMAND_LINE, still, after=after)
            try:
                async for event in stream.events():
                    if event is not None:
                        after = max(after or "", event.invocation_id)
                        await self._show(gateway, event.summary)
                return
            except StoreUnavailable as trouble:
                self._line(f"The database cannot be used: {trouble}", "red")
                await asyncio.sleep(AGAIN_AFTER)
            finally:
                stream.close()

    async def _show(self, gateway: Gateway, call: InvocationSummary) -> None:
        if call.http_status is None:
            return  # its caller waits
        if call.id not in self._named:
            self._named[call.id] = False
            if len(self._named) > REMEMBERED:
                del self._named[next(iter(self._named))]
            await self._show_call(gateway, call)
        if call.nobody_listens is True and not self._named[call.id]:
            self._named[call.id] = True
            self._more("  no workflow wants it")

    async def _show_call(self, gateway: Gateway, call: InvocationSummary) -> None:
        if call.webhook_id not in self._names:
            self._names |= await picking.names(gateway, COMMAND_LINE, [call.webhook_id])
        name = plain(self._names.get(call.webhook_id, call.webhook_id))
        status = call.http_status or 0
        code = "" if call.code == "accepted" else f" {call.code}"
        first = next(iter((await history.show(gateway, COMMAND_LINE, call.id)).deliveries), None)
        # How long a caller waited whom no workflow answered is noted a moment later.
        known = first is None or first.answer is None or first.response is not None
        lasted = f"{call.duration_ms:.0f} ms  " if known else ""
        what = f"{name}  {plain(call.method)}  {status}{code}  {lasted}{call.id}"
        self._line(what, "green" if status < 400 else "red")
        if call.detail:
            self._more(f"  {plain(call.detail)}")
        if first is not None and first.response is not None:
            body = plain(first.response.body)
            self._more(f"  answered {body if len(body) <= LONGEST_BODY else body[: LONGEST_BODY - 1] + '…'}")
        if self.broken_now and call.code == "accepted":
            self._more("  waits for the workflow files to be fixed")
        self._show_runs(call.id)

    def _show_runs(self, invocation: str) -> None:
        self._show_lines(self._runs.pop(invocation, []))

    def _show_lines(self, lines: list[tuple[str, Style]]) -> None:
        for number, (text, style) in enumerate(lines):
            show = self._more if number else self._line
            show(text, style)

    def _line(self, text: str, style: Style = "") -> None:
        out.print(f"{time.strftime('%H:%M:%S')}  {out.styled(text, style)}")
        out.stream.flush()

    def _more(self, text: str, style: Style = "") -> None:
        out.print(f"{' ' * 10}{out.styled(text, style)}")
        out.stream.flush()
