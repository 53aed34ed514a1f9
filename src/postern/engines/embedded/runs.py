"""The workflow runs of the embedded engine: what the gateway asks of them, and what becomes of one.

A run is a delivery's key and a workflow's name: that alone makes a repeated start harmless. ``turns``
decides when it gets a thread, ``housekeeping`` wakes and prunes.
"""

import logging
import sqlite3
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from postern.core.deliveries.delivery import LONGEST_ERROR, End, RunStep, Started, end_of_runs
from postern.core.deliveries.delivery import Run as RunShown
from postern.engines.embedded.at_work import AtWork
from postern.engines.embedded.frames import RunOver, Start
from postern.engines.embedded.housekeeping import CHECK_RUNS_EVERY, Housekeeping, delete_runs
from postern.engines.embedded.journal import Journal, JournalUnavailable
from postern.engines.embedded.printing import printing_for
from postern.engines.embedded.turns import RunAtWork, Turns
from postern.workflows.language import Declared, StepFailed
from postern.workflows.load import place_of
from postern.workflows.replay import Forgotten, LeftOff, Recorded, StepReplay, carry_on

log = logging.getLogger("postern.engine")

_encode = msgspec.json.Encoder().encode

_RUNS_OF = "SELECT state, ended_at, error FROM runs WHERE delivery = ?"


class WorkflowRuns:
    def __init__(
        self,
        file: Path,
        workflows: Iterable[Declared],
        *,
        keep_seconds: float,
        at_once: int,
        hangs_after: float = 10.0,
        answer: Callable[[str, float, str], bool],
        on_end: Callable[[str, End], None] = lambda _, __: None,
        troubled: Callable[[str], None] = lambda _: None,
        group_over: Callable[[], None] = lambda: None,
        lost: Callable[[], None] = lambda: None,
        folder: Path = Path(),
        on_run_over: Callable[[RunOver], None] | None = None,
    ) -> None:
        """``answer`` hands a delivery's answer to the gateway; ``on_end`` tells it how a delivery's runs ended, once
        that is on disk and before ``group_over``. ``on_run_over`` tells it of each run; without it, what a run failed with
        is a line of the log. ``folder``: where the user's files are."""
        self._folder = folder
        self._on_run_over = on_run_over
        self._workflows = tuple(workflows)
        self._answer = answer
        self._on_end = on_end
        self._journal = Journal(file, troubled, group_over, lost)
        self._at_work = AtWork(file.with_suffix(".working"), at_once)
        self._next_seq = self._journal.read("SELECT coalesce(max(seq), 0) + 1 FROM runs")[0][0]
        self._turns = Turns(
            self._workflows,
            self._journal,
            self._at_work,
            at_once=at_once,
            hangs_after=hangs_after,
            carry_on=self._carry_on,
        )
        self._housekeeping = Housekeeping(self._journal, self._turns, self._at_work, keep_seconds)

    def open(self, *, after_crash: bool = False) -> None:
        """Take up what an earlier process left unfinished, and be ready for more. ``after_crash``: that process
        was not ended from outside."""
        put_aside = self._housekeeping.find_culprits(after_crash)
        for key, end in self.ends(put_aside).items():
            if end is not None:
                self._on_end(key, end)
        self._turns.open()
        self._housekeeping.begin()

    def finish(self, grace: float) -> None:
        """Let working runs come to an end or to a sleep; what takes longer is taken up by the next process."""
        self._housekeeping.stop()
        self._turns.finish(grace)
        self._housekeeping.join()
        self._journal.close()
        self._at_work.clear()  # what is cut off here is not to blame for anything

    # --- what the gateway asks for ---------------------------------------------------------------------------

    def start(self, trigger: Start, done: Callable[[Started | Exception], None]) -> None:
        """Every workflow that wants this webhook's events gets a run; ``done`` is called when they are on disk."""
        names = tuple(workflow.name for workflow in self._workflows if workflow.wants(trigger.webhook_id))
        payload = trigger.payload.decode("utf-8", "replace")
        event = f'{_encode(trigger.variables)[:-1].decode()}, "payload": {payload}}}'
        now = time.time()
        begun: dict[str, RunAtWork] = {}

        def change(connection: sqlite3.Connection) -> list[RunAtWork]:
            for name in names:
                # Made before, when it was undone because of another change: then it may be at work.
                run = begun.get(name) or RunAtWork(
                    self._next_seq, trigger.key, name, event, trigger.deadline, fresh=True
                )
                inserted = connection.execute(
                    "INSERT INTO runs (seq, delivery, workflow, event, deadline, started_at) VALUES (?, ?, ?, ?, ?, ?)"
                    " ON CONFLICT (delivery, workflow) DO NOTHING",
                    (run.seq, run.delivery, name, event, trigger.deadline, now),
                )
                if inserted.rowcount and name not in begun:
                    self._next_seq += 1
                    begun[name] = run
            return list(begun.values())

        def stored(result: Any) -> None:
            if isinstance(result, Exception):
                self._turns.forget(run.seq for run in begun.values())
                done(result)
            else:
                for run in begun.values():
                    run.on_disk = True
                if not a_caller_waits:
                    self._turns.admit(list(begun.values()))
                done(Started(len(names), names, at=now))

        # With a caller waiting, the run works before its start is on disk: whatever it records comes with that or
        # after it, and if the start fails the gateway asks again. The first step is then in the same commit, if it
        # does not take long. The others wait: a run that ends the process at once must be on disk to be blamed for it.
        a_caller_waits = trigger.deadline is not None
        self._journal.submit(
            change,
            stored,
            self._turns.admit if a_caller_waits else None,
            insist=False,
            urgent=not (a_caller_waits and names),
        )

    def ends(self, keys: list[str]) -> dict[str, End | None]:
        """Returns how the deliveries ended: None while a run is not over; a delivery without runs is missing."""
        by_key = {key: self._journal.read(_RUNS_OF, [key]) for key in keys}
        return {key: end_of_runs(runs) for key, runs in by_key.items() if runs}

    def shown(self, limit: int, key: str | None) -> list[RunShown]:
        where, values = ("WHERE delivery = ? ", [key]) if key is not None else ("", [])
        rows = self._journal.read(
            "SELECT seq, delivery, workflow, started_at, wake_at, state, ended_at, error FROM runs "
            + where
            + "ORDER BY seq DESC LIMIT ?",
            [*values, limit],
        )
        runs = []
        for seq, delivery, workflow, started_at, wake_at, state, ended_at, error in rows:
            if state is None:
                asleep = wake_at is not None and wake_at > time.time()
                state = "running" if self._turns.works(seq) else "sleeping" if asleep else "waiting"
                if workflow not in self._turns.workflows:
                    error = f"the workflow {workflow} is no longer in the workflow files; put it back and this run goes on"
            steps = self._recorded(seq) if key is not None else []
            runs.append(
                RunShown(
                    id=f"{delivery}/{workflow}",
                    workflow=workflow,
                    state=state,
                    delivery_key=delivery,
                    started_at=started_at,
                    ended_at=ended_at,
                    error=error,
                    steps=tuple(
                        RunStep(step.name, round(step.seconds, 3), (step.error or "")[:LONGEST_ERROR])
                        for step in steps
                    ),
                )
            )
        return runs

    def forget(self, keys: list[str], done: Callable[[Any], None]) -> None:
        """Delete the runs of these deliveries with all that was recorded of them; one that works ends at its
        next step."""

        def change(connection: sqlite3.Connection) -> list[int]:
            seqs = []
            for key in keys:
                seqs += [
                    row[0] for row in connection.execute("SELECT seq FROM runs WHERE delivery = ?", (key,))
                ]
            delete_runs(connection, seqs)
            return seqs

        def stored(result: Any) -> None:
            if not isinstance(result, Exception):
                self._turns.forget(result)
            done(result)

        self._journal.submit(change, stored, insist=False)

    # --- one run ---------------------------------------------------------------------------------------------

    def _carry_on(self, run: RunAtWork) -> None:
        steps = [] if run.fresh else self._recorded_once_readable(run)
        replay = StepReplay(
            steps, lambda *step: self._record(run, *step), lambda document: self._respond(run, document)
        )
        with printing_for(run.workflow, run.id):
            stopped = carry_on(self._turns.function_of(run), run.event, replay).reason
        if isinstance(stopped, LeftOff):
            self._turns.left_off(run)
        elif stopped is not None:
            if self._on_run_over is None:
                log.error("workflow %s failed in run %s: %s", run.workflow, run.id, _traceback(stopped))
            self._end(run, "failed", _words(stopped), stopped)
        else:
            self._end(run, "completed", "")

    def _recorded(self, seq: int) -> list[Recorded]:
        rows = self._journal.read(
            "SELECT name, result, error, seconds FROM steps WHERE run = ? ORDER BY position", [seq]
        )
        return [Recorded(*row) for row in rows]

    def _recorded_once_readable(self, run: RunAtWork) -> list[Recorded]:
        while True:
            try:
                return self._recorded(run.seq)
            except JournalUnavailable as error:
                log.warning("run %s waits for the journal: %s", run.id, error)
                time.sleep(CHECK_RUNS_EVERY)

    def _record(
        self, run: RunAtWork, position: int, step: Recorded, wake_at: float | None, awaited: bool
    ) -> Callable[[], None]:
        wait = self._journal.write_soon(_recording(run, position, step, wake_at), urgent=awaited)

        def on_disk() -> None:
            if run.gone or not wait():
                raise Forgotten
            if wake_at is not None:
                self._housekeeping.expect(wake_at)

        return on_disk

    def _respond(self, run: RunAtWork, document: str) -> bool:
        if run.deadline is None:
            return False
        if run.fresh and not run.on_disk:
            self._journal.hurry()  # meanwhile the gateway writes the answer
        taken = self._answer(run.delivery, run.deadline, document)
        run.answered = run.answered or taken
        return taken

    def _over(self, run: RunAtWork, failure: BaseException | None) -> RunOver:
        over = RunOver(run.delivery, run.workflow)
        if failure is not None:
            kind = "" if isinstance(failure, StepFailed) else f"{type(failure).__name__}: "
            over.error = kind + _words(failure)
            if (place := place_of(failure, self._folder)) is not None:
                over.place, over.line = str(place), place.text
        return over

    def _end(self, run: RunAtWork, state: str, error: str, failure: BaseException | None = None) -> None:
        now = time.time()
        over = self._over(run, failure) if self._on_run_over is not None else None

        def change(connection: sqlite3.Connection) -> End | None:
            connection.execute(
                "UPDATE runs SET state = ?, ended_at = ?, error = ?, wake_at = NULL WHERE seq = ? AND state IS NULL",
                (state, now, error, run.seq),
            )
            return end_of_runs(connection.execute(_RUNS_OF, [run.delivery]))

        def done(result: Any) -> None:
            self._turns.ended(run)
            if over is not None and self._on_run_over is not None and not isinstance(result, Exception):
                self._on_run_over(over)
            if isinstance(result, End):
                self._on_end(run.delivery, result)

        a_caller_waits = run.deadline is not None and not run.answered
        self._journal.submit(change, done, urgent=a_caller_waits)


def _recording(
    run: RunAtWork, position: int, step: Recorded, wake_at: float | None
) -> Callable[[sqlite3.Connection], bool]:
    """Returns the change that records a step. It returns False if the run is not in the journal any more."""

    # A sleep counts with its last time: it may be shorter, where the clock was set back.
    known = "IGNORE" if wake_at is None else "REPLACE"

    def change(connection: sqlite3.Connection) -> bool:
        there = connection.execute(
            f"INSERT OR {known} INTO steps SELECT ?, ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM runs WHERE seq = ? AND state IS NULL)",
            (run.seq, position, step.name, step.result, step.error, step.seconds, run.seq),
        )
        if wake_at is not None or run.blame:
            there = connection.execute(
                "UPDATE runs SET wake_at = ?, asleep_since = ?, blame = 0 WHERE seq = ? AND state IS NULL",
                (wake_at, time.time(), run.seq),
            )
        if there.rowcount == 1:
            return True
        # Done already, by a commit that was reported as failed.
        cursor = connection.execute("SELECT 1 FROM runs WHERE seq = ? AND state IS NULL", (run.seq,))
        return cursor.fetchone() is not None

    return change


def _words(error: BaseException) -> str:
    """Returns the error's message as text that can be stored, even if the exception's own ``__str__`` fails."""
    with suppress(Exception):
        return (str(error) or type(error).__name__)[:LONGEST_ERROR].encode("utf-8", "replace").decode()
    return type(error).__name__


def _traceback(error: BaseException) -> str:
    with suppress(Exception):
        return "".join(traceback.format_exception(error)).strip()
    return repr(type(error))
