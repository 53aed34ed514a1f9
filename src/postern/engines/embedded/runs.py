"""The workflow runs of the embedded engine: who gets a thread when, and what becomes of a run.

A run is a delivery's key and a workflow's name: that alone makes a repeated start harmless. The journal knows
every run; in memory are those that work and, for each workflow, the next few that wait.
"""

import json
import logging
import sqlite3
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from postern.core.deliveries.delivery import LONGEST_ERROR, End, Started, end_of_runs
from postern.core.deliveries.delivery import Run as RunShown
from postern.engines.embedded.at_work import AtWork
from postern.engines.embedded.frames import Start
from postern.engines.embedded.journal import Journal, JournalUnavailable
from postern.engines.embedded.replay import Forgotten, LeftOff, Recorded, Replay
from postern.workflows.event import event_of
from postern.workflows.language import Automation, Declared, carry_out, running

log = logging.getLogger("postern.engine")

WINDOW = 200
"""Of each workflow's waiting runs, how many are in memory. The others are read from the journal in time."""
PUT_ASIDE_AT = 9
"""Blame of a run: for each engine process that died while it worked, without a step recorded in between."""
BLAME_FOR_CRASH, BLAME_FOR_KILL = 3, 1
"""A process that crashed or hung did so by a run; one that was killed from outside perhaps not."""
LONGEST_SUSPENSION = 5.0
PRUNED_AT_ONCE = 500
LOOK_EVERY = 1.0

_RUNS_OF = "SELECT state, ended_at, error FROM runs WHERE delivery = ?"
_COLUMNS = "seq, delivery, workflow, event, deadline, blame"
_UNLIMITED = 1 << 30


@dataclass(slots=True)
class Run:
    seq: int
    delivery: str
    workflow: str
    event: str
    deadline: float | None
    blame: int = 0
    fresh: bool = False
    """Nothing can be recorded of it yet."""
    gone: bool = False
    """It is not in the journal: forgotten, or its start could not be written."""
    again: bool = False
    """It was woken before its thread had let go of it."""

    @property
    def id(self) -> str:
        return f"{self.delivery}/{self.workflow}"


@dataclass(slots=True)
class Backlog:
    """Runs of one workflow that wait for a thread."""

    function: Automation | None = None
    limit: int = _UNLIMITED
    working: int = 0
    ready: deque[Run] = field(default_factory=deque)
    loaded_up_to: int = 0
    more_on_disk: bool = False
    loading: bool = False


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
    ) -> None:
        """``answer`` hands a delivery's answer to the gateway; ``on_end`` tells it how a delivery's runs ended, once
        that is on disk and before ``group_over``."""
        self._workflows = tuple(workflows)
        self._keep = keep_seconds
        self._at_once = at_once
        self._answer = answer
        self._on_end = on_end
        self._journal = Journal(file, troubled, group_over, lost)
        self._at_work = AtWork(file.with_suffix(".working"), at_once)
        self._next_seq = self._journal.read("SELECT coalesce(max(seq), 0) + 1 FROM runs")[0][0]
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._sleep = threading.Condition(self._lock)
        self._backlogs = {
            one.name: Backlog(one.function, one.at_once or _UNLIMITED) for one in self._workflows
        }
        self._suspects = Backlog()
        """Runs that were working when an earlier process died. One begins when the one before has ended, or has
        had the time to hang: a second death then tells who did it."""
        self._next_suspect_at = 0.0
        self._hangs_after = hangs_after
        self._turns = deque([*self._backlogs.values(), self._suspects])
        self._in_memory: dict[int, Run] = {}
        self._working: set[int] = set()
        self._threads = self._idle = 0
        self._called = 0
        """Of the idle threads, those that were notified and have not looked yet."""
        self._next_wake = 0.0
        self._stopping = False
        self._housekeeping = threading.Thread(target=self._keep_house, name="housekeeping", daemon=True)

    def open(self, *, after_crash: bool = False) -> None:
        """Take up what an earlier process left unfinished, and be ready for more. ``after_crash``: that process
        was not ended from outside."""
        blame = BLAME_FOR_CRASH if after_crash else BLAME_FOR_KILL
        put_aside = self._journal.write(partial(self._blame, blame))
        self._at_work.clear()
        for key, end in self.ends(put_aside).items():
            if end is not None:
                self._on_end(key, end)
        for name, backlog in self._backlogs.items():
            with self._lock:
                backlog.more_on_disk = True
                self._load_more(name, backlog)
        self._housekeeping.start()

    # --- what the gateway asks for ---------------------------------------------------------------------------

    def start(self, asked: Start, done: Callable[[Started | Exception], None]) -> None:
        """Every workflow that wants this webhook's events gets a run; ``done`` is called when they are on disk."""
        wanted = tuple(one.name for one in self._workflows if one.wants(asked.webhook_id))
        payload = asked.payload.decode("utf-8", "replace")
        event = f'{json.dumps(asked.variables)[:-1]}, "payload": {payload}}}'
        now = time.time()
        begun: list[Run] = []

        def change(connection: sqlite3.Connection) -> list[Run]:
            for name in wanted:
                run = Run(self._next_seq, asked.key, name, event, asked.deadline, fresh=True)
                inserted = connection.execute(
                    "INSERT INTO runs (seq, delivery, workflow, event, deadline, started_at) VALUES (?, ?, ?, ?, ?, ?)"
                    " ON CONFLICT (delivery, workflow) DO NOTHING",
                    (run.seq, run.delivery, name, event, asked.deadline, now),
                )
                if inserted.rowcount:
                    self._next_seq += 1
                    begun.append(run)
            return begun

        def stored(result: Any) -> None:
            if isinstance(result, Exception):
                self._let_go(begun)
                done(result)
            else:
                if not a_caller_waits:
                    self._admit(begun)
                done(Started(len(wanted), wanted))

        # With a caller waiting, the run works while its start is being written: whatever it records comes after
        # that, and if the start fails the gateway asks again. The others wait: a run that ends the process at
        # once must be on disk to be blamed for it.
        a_caller_waits = asked.deadline is not None
        self._journal.submit(change, stored, self._admit if a_caller_waits else None, insist=False)

    def ends(self, keys: list[str]) -> dict[str, End | None]:
        """How these deliveries ended: None while a run of one is not over, nothing where none is known."""
        found = {key: _end_of(self._journal.read(_RUNS_OF, [key])) for key in keys}
        return {key: end for key, (known, end) in found.items() if known}

    def shown(self, limit: int, key: str | None) -> list[RunShown]:
        where, values = ("WHERE delivery = ? ", [key]) if key is not None else ("", [])
        rows = self._journal.read(
            "SELECT seq, delivery, workflow, started_at, wake_at, state, ended_at, error FROM runs "
            + where
            + "ORDER BY seq DESC LIMIT ?",
            [*values, limit],
        )
        return [self._shown(*row, with_steps=key is not None) for row in rows]

    def forget(self, keys: list[str], done: Callable[[Any], None]) -> None:
        """Delete the runs of these deliveries with all that was recorded of them; one that works ends at its
        next step."""

        def change(connection: sqlite3.Connection) -> list[int]:
            found = []
            for key in keys:
                found += [
                    row[0] for row in connection.execute("SELECT seq FROM runs WHERE delivery = ?", (key,))
                ]
            _delete(connection, found)
            return found

        def stored(result: Any) -> None:
            if not isinstance(result, Exception):
                with self._lock:
                    runs = [self._in_memory[seq] for seq in result if seq in self._in_memory]
                self._let_go(runs)
            done(result)

        self._journal.submit(change, stored, insist=False)

    def finish(self, grace: float) -> None:
        """Let working runs come to an end or to a sleep; what takes longer is taken up by the next process."""
        with self._lock:
            self._stopping = True
            self._work.notify_all()
            self._sleep.notify_all()
            self._work.wait_for(lambda: not self._working, grace)
        if self._housekeeping.is_alive():
            self._housekeeping.join(LOOK_EVERY)
        self._journal.close()
        self._at_work.clear()  # what is cut off here is not to blame for anything

    # --- who gets a thread -----------------------------------------------------------------------------------

    def _admit(self, runs: list[Run]) -> None:
        """Give them their turn. Fresh ones in the journal's thread only: what is left on disk must be seen by the
        next ``_load_more``."""
        with self._lock:
            for run in runs:
                home = self._backlogs.get(run.workflow)
                if home is None:
                    continue
                if (there := self._in_memory.get(run.seq)) is not None:
                    there.again = True
                    continue
                if run.fresh and (home.more_on_disk or len(home.ready) >= WINDOW):
                    home.more_on_disk = True
                    continue
                if not run.blame:
                    home.loaded_up_to = max(home.loaded_up_to, run.seq) if run.fresh else home.loaded_up_to
                self._in_memory[run.seq] = run
                (self._suspects if run.blame else home).ready.append(run)
                self._call_a_thread()

    def _call_a_thread(self) -> None:
        """There is something to do for one more."""
        if self._idle > self._called:
            self._called += 1
            self._work.notify()
        elif self._threads < self._at_once:
            threading.Thread(target=self._take_turns, args=(self._threads,), daemon=True).start()
            self._threads += 1

    def _load_more(self, name: str, backlog: Backlog) -> None:
        """Read the next waiting runs, if they are wanted, when everything submitted so far is on disk."""
        if not backlog.more_on_disk or backlog.loading or len(backlog.ready) > WINDOW // 2:
            return
        backlog.loading = True

        def load(_: object) -> None:
            rows = []
            with suppress(JournalUnavailable):
                rows = self._journal.read(
                    f"SELECT {_COLUMNS} FROM runs WHERE workflow = ? AND seq > ? AND state IS NULL AND wake_at IS NULL"
                    " ORDER BY seq LIMIT ?",
                    (name, backlog.loaded_up_to, WINDOW),
                )
                backlog.more_on_disk = len(rows) == WINDOW
            backlog.loading = False
            if rows:
                backlog.loaded_up_to = rows[-1][0]
                self._admit([Run(*row) for row in rows])

        self._journal.submit(lambda _: None, load)

    def _take_turns(self, place: int) -> None:
        """A thread's life."""
        while True:
            with self._lock:
                while (run := self._next()) is None:
                    if self._stopping:
                        return
                    self._idle += 1
                    self._work.wait()
                    self._idle -= 1
                    self._called = max(0, self._called - 1)
            self._at_work.begins(place, run.seq)
            try:
                self._carry_on(run)
            except Exception:  # a defect of ours; the run is taken up by the next process
                log.exception("run %s could not be carried on", run.id)
            finally:
                self._at_work.ends(place)
                with self._lock:
                    self._working.discard(run.seq)
                    self._backlogs[run.workflow].working -= 1
                    if run.blame:
                        self._next_suspect_at = 0.0
                        self._call_a_thread()
                    if self._stopping:
                        self._work.notify_all()

    def _next(self) -> Run | None:
        """Workflows take turns, so that one with a long backlog does not keep the others waiting."""
        if self._stopping:
            return None
        for _ in range(len(self._turns)):
            backlog = self._turns[0]
            self._turns.rotate(-1)
            while backlog.ready and backlog.ready[0].gone:
                backlog.ready.popleft()
            if not backlog.ready or backlog.working >= backlog.limit:
                continue
            home = self._backlogs[backlog.ready[0].workflow]
            if home.working >= home.limit:
                continue
            if backlog is self._suspects and time.monotonic() < self._next_suspect_at:
                continue
            run = backlog.ready.popleft()
            self._load_more(run.workflow, backlog)
            home.working += 1
            if run.blame:
                self._next_suspect_at = time.monotonic() + self._hangs_after
            self._working.add(run.seq)
            return run
        return None

    # --- one run ---------------------------------------------------------------------------------------------

    def _carry_on(self, run: Run) -> None:
        steps = [] if run.fresh else self._recorded(run)
        replay = Replay(
            steps, lambda *step: self._record(run, *step), lambda document: self._respond(run, document)
        )
        function = self._backlogs[run.workflow].function
        assert function is not None
        stopped: BaseException | None = None
        try:
            with running(replay):
                carry_out(function, event_of(run.event))
        except BaseException as failure:
            stopped = failure
        # The workflow's code may have caught what was to stop it, or made something else of it.
        stopped = stopped if replay.over is None else replay.over
        if isinstance(stopped, LeftOff):
            with self._lock:
                self._in_memory.pop(run.seq, None)
            if run.again:
                self._admit([replace(run, again=False, fresh=False)])
        elif stopped is not None:
            log.error("workflow %s failed in run %s: %s", run.workflow, run.id, _traceback(stopped))
            self._end(run, "failed", _words(stopped))
        else:
            self._end(run, "completed", "")

    def _recorded(self, run: Run) -> list[Recorded]:
        while True:
            try:
                rows = self._journal.read(
                    "SELECT name, result, error FROM steps WHERE run = ? ORDER BY position", [run.seq]
                )
                return [Recorded(*row) for row in rows]
            except JournalUnavailable as error:
                log.warning("run %s waits for the journal: %s", run.id, error)
                time.sleep(LOOK_EVERY)

    def _record(self, run: Run, position: int, step: Recorded, wake_at: float | None) -> None:
        def change(connection: sqlite3.Connection) -> bool:
            there = connection.execute(
                "INSERT OR IGNORE INTO steps SELECT ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM runs WHERE seq = ? AND state IS NULL)",
                (run.seq, position, step.name, step.result, step.error, run.seq),
            )
            if wake_at is not None or run.blame:
                there = connection.execute(
                    "UPDATE runs SET wake_at = ?, blame = 0 WHERE seq = ? AND state IS NULL",
                    (wake_at, run.seq),
                )
            if there.rowcount == 1:
                return True
            # Done already, by a commit that was reported as failed.
            found = connection.execute("SELECT 1 FROM runs WHERE seq = ? AND state IS NULL", (run.seq,))
            return found.fetchone() is not None

        if run.gone or not self._journal.write(change):
            raise Forgotten
        if wake_at is not None:
            with self._lock:
                if wake_at < self._next_wake:
                    self._next_wake = wake_at
                    self._sleep.notify()

    def _respond(self, run: Run, document: str) -> bool:
        return run.deadline is not None and self._answer(run.delivery, run.deadline, document)

    def _end(self, run: Run, state: str, error: str) -> None:
        now = time.time()

        def change(connection: sqlite3.Connection) -> End | None:
            connection.execute(
                "UPDATE runs SET state = ?, ended_at = ?, error = ?, wake_at = NULL WHERE seq = ? AND state IS NULL",
                (state, now, error, run.seq),
            )
            return _end_of(connection.execute(_RUNS_OF, [run.delivery]).fetchall())[1]

        def done(result: Any) -> None:
            with self._lock:
                self._in_memory.pop(run.seq, None)
            if isinstance(result, End):
                self._on_end(run.delivery, result)

        self._journal.submit(change, done)

    def _let_go(self, runs: list[Run]) -> None:
        with self._lock:
            for run in runs:
                run.gone = True
                self._in_memory.pop(run.seq, None)

    def _shown(
        self,
        seq: int,
        delivery: str,
        workflow: str,
        started_at: float,
        wake_at: float | None,
        state: str | None,
        ended_at: float | None,
        error: str,
        *,
        with_steps: bool,
    ) -> RunShown:
        if state is None:
            asleep = wake_at is not None and wake_at > time.time()
            state = "running" if seq in self._working else "sleeping" if asleep else "waiting"
            if workflow not in self._backlogs:
                error = f"the workflow {workflow} is no longer in the workflow files; put it back and this run goes on"
        steps = (
            self._journal.read("SELECT name FROM steps WHERE run = ? ORDER BY position", [seq])
            if with_steps
            else []
        )
        return RunShown(
            id=f"{delivery}/{workflow}",
            workflow=workflow,
            state=state,
            delivery_key=delivery,
            started_at=started_at,
            ended_at=ended_at,
            error=error,
            steps=tuple(name for (name,) in steps),
        )

    # --- in the background -----------------------------------------------------------------------------------

    def _blame(self, blame: int, connection: sqlite3.Connection) -> list[str]:
        """The deliveries whose runs were put aside. Whoever was working when the last process died may have ended it. They come back one by one and
        after the others; one that does so again and again is put aside."""
        suspects = []
        for seq in self._at_work.left_behind:
            found = connection.execute(
                "SELECT blame FROM runs WHERE seq = ? AND state IS NULL", (seq,)
            ).fetchone()
            if found == (0,):
                self._accuse(connection, seq, blame)
            elif found:
                suspects.append(seq)
        if suspects:  # they began one after the other, and the last one has done it
            self._accuse(connection, suspects[-1], blame)
        now = time.time()
        error = (
            "put aside: again and again the engine process died or hung while this run was at the same step."
            " Replay the call when the cause is mended"
        )
        put_aside = connection.execute(
            "UPDATE runs SET state = 'failed', ended_at = ?, error = ?, wake_at = NULL"
            " WHERE state IS NULL AND wake_at IS NOT NULL AND blame >= ? RETURNING delivery, workflow",
            (now, error, PUT_ASIDE_AT),
        ).fetchall()
        for delivery, workflow in put_aside:
            log.error("run %s/%s is %s", delivery, workflow, error)
        return [delivery for delivery, _ in put_aside]

    @staticmethod
    def _accuse(connection: sqlite3.Connection, seq: int, blame: int) -> None:
        connection.execute(
            "UPDATE runs SET blame = blame + ?1, wake_at = ?2 + min(blame + ?1, ?3) WHERE seq = ?4",
            (blame, time.time(), LONGEST_SUSPENSION, seq),
        )

    def _keep_house(self) -> None:
        """Wake sleepers, delete old runs, and do again what the journal could not be asked for."""
        prune_every = max(0.5, min(3600.0, self._keep / 10))
        next_look, next_prune = 0.0, time.monotonic() + prune_every
        while not self._stopping:
            with self._lock:
                # Not for longer than this: the clock may be set meanwhile.
                self._sleep.wait(max(0.0, min(self._next_wake - time.time(), LOOK_EVERY)))
            try:
                if self._next_wake <= time.time():
                    self._wake()
                if time.monotonic() >= next_look:
                    next_look = time.monotonic() + LOOK_EVERY
                    self._look_again()
                if time.monotonic() >= next_prune:
                    deleted = self._journal.write(self._prune)
                    next_prune = time.monotonic() + (0.1 if deleted == PRUNED_AT_ONCE else prune_every)
            except Exception as error:
                log.warning("housekeeping will try again: %s", _traceback(error))
                time.sleep(LOOK_EVERY)

    def _look_again(self) -> None:
        self._journal.submit(lambda _: None)  # a file that is gone is noticed without anybody's call
        with self._lock:
            for name, backlog in self._backlogs.items():
                self._load_more(name, backlog)
            if self._suspects.ready:
                self._call_a_thread()

    def _wake(self) -> None:
        """Those whose time has come, as many as fit into memory, and find out when the next one's has."""
        now = time.time()
        with self._lock:
            self._next_wake = now + 3600.0  # before looking: a sleep that is recorded meanwhile must count
            fitting = {
                name: room
                for name, one in self._backlogs.items()
                if (room := 2 * WINDOW - len(one.ready)) > 0
            }

        def change(connection: sqlite3.Connection) -> list[Run]:
            due = []
            for name, room in fitting.items():
                due += connection.execute(
                    f"SELECT {_COLUMNS} FROM runs WHERE workflow = ? AND wake_at <= ? ORDER BY wake_at LIMIT ?",
                    (name, now, room),
                ).fetchall()
            connection.executemany("UPDATE runs SET wake_at = NULL WHERE seq = ?", [(row[0],) for row in due])
            return [Run(*row) for row in due]

        self._journal.submit(change, before_commit=self._admit)
        self._journal.write(lambda _: None)  # it is on disk
        soonest = [
            self._journal.read(
                "SELECT min(wake_at) FROM runs WHERE workflow = ? AND wake_at IS NOT NULL", [name]
            )[0][0]
            for name in self._backlogs
        ]
        with self._lock:
            # What found no room is asked for again soon.
            self._next_wake = min(
                [self._next_wake, *(max(at, now + 0.1) for at in soonest if at is not None)]
            )

    def _prune(self, connection: sqlite3.Connection) -> int:
        """Delete a few runs that ended too long ago: small steps, so that nobody waits for long."""
        before = time.time() - self._keep
        old = [
            row[0]
            for row in connection.execute(
                "SELECT seq FROM runs WHERE ended_at < ? LIMIT ?", (before, PRUNED_AT_ONCE)
            )
        ]
        _delete(connection, old)
        return len(old)


def _delete(connection: sqlite3.Connection, seqs: list[int]) -> None:
    for table, column in (("steps", "run"), ("runs", "seq")):
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(seq,) for seq in seqs])


def _end_of(rows: list[tuple[str | None, float, str]]) -> tuple[bool, End | None]:
    """Whether there are runs at all, and how they ended if they all have."""
    over = [(state, at, error) for state, at, error in rows if state is not None]
    return bool(rows), end_of_runs(over) if rows and len(over) == len(rows) else None


def _words(error: BaseException) -> str:
    """What it says, as text that can be stored; a text of its own that cannot be had must not stop us."""
    with suppress(Exception):
        return (str(error) or type(error).__name__)[:LONGEST_ERROR].encode("utf-8", "replace").decode()
    return type(error).__name__


def _traceback(error: BaseException) -> str:
    with suppress(Exception):
        return "".join(traceback.format_exception(error)).strip()
    return repr(type(error))
