"""Decides which run gets a thread. The journal knows every run; in memory are those that work and, for each workflow,
the next few that wait."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, KeysView
from contextlib import suppress

from msgspec import Struct, field
from msgspec.structs import replace

from postern.engines.embedded.at_work import AtWork
from postern.engines.embedded.journal import Journal, JournalUnavailable
from postern.workflows.language import Automation, Declared

log = logging.getLogger("postern.engine")

WINDOW = 200
"""So many waiting runs of each workflow are kept in memory. The others are read from the journal in time."""
COLUMNS = "seq, delivery, workflow, event, deadline, blame"
SUSPECT_AT = 2
"""Blame: once it was killed from outside, that was hardly by a run, and those that were at work come back like all others."""
_UNLIMITED = 1 << 30


class RunAtWork(Struct):
    seq: int
    delivery: str
    workflow: str
    event: str
    deadline: float | None
    blame: int = 0
    fresh: bool = False
    """It was begun in this process: no step of it is recorded yet."""
    on_disk: bool = False
    """The start of a fresh run is on disk."""
    gone: bool = False
    """It is not in the journal: forgotten, or its start could not be written."""
    answered: bool = False
    """It has answered its caller, who then does not wait for its end."""
    again: bool = False
    """It was woken before its thread had let go of it."""

    @property
    def id(self) -> str:
        return f"{self.delivery}/{self.workflow}"

    @property
    def suspect(self) -> bool:
        return self.blame >= SUSPECT_AT


class Backlog(Struct):
    function: Automation | None = None
    limit: int = _UNLIMITED
    working: int = 0
    ready: deque[RunAtWork] = field(default_factory=deque)
    loaded_up_to: int = 0
    more_on_disk: bool = False
    loading: bool = False


class Turns:
    def __init__(
        self,
        workflows: Iterable[Declared],
        journal: Journal,
        at_work: AtWork,
        *,
        at_once: int,
        hangs_after: float,
        carry_on: Callable[[RunAtWork], None],
    ) -> None:
        """``carry_on`` does a run's work, in one of the threads, until it ends or lets go."""
        self._journal = journal
        self._at_work = at_work
        self._at_once = at_once
        self._hangs_after = hangs_after
        self._carry_on = carry_on
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._backlogs = {
            workflow.name: Backlog(workflow.function, workflow.at_once or _UNLIMITED)
            for workflow in workflows
        }
        self._suspects = Backlog()
        """The runs that were working when an earlier process died. One begins when the one before has ended, or has
        had the time to hang: a second death then tells which run causes it."""
        self._next_suspect_at = 0.0
        self._turns = deque([*self._backlogs.values(), self._suspects])
        self._in_memory: dict[int, RunAtWork] = {}
        self._working: set[int] = set()
        self._threads = self._idle = 0
        self._called = 0
        """Idle threads that were notified and have not looked yet."""
        self._stopping = False

    def open(self) -> None:
        with self._lock:
            for name, backlog in self._backlogs.items():
                backlog.more_on_disk = True
                self._load_more(name, backlog)

    def finish(self, grace: float) -> None:
        with self._lock:
            self._stopping = True
            self._work.notify_all()
            self._work.wait_for(lambda: not self._working, grace)

    @property
    def workflows(self) -> KeysView[str]:
        return self._backlogs.keys()

    def works(self, seq: int) -> bool:
        return seq in self._working

    def function_of(self, run: RunAtWork) -> Automation:
        function = self._backlogs[run.workflow].function
        assert function is not None
        return function

    def admit(self, runs: list[RunAtWork]) -> None:
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
                if run.fresh:
                    home.loaded_up_to = max(home.loaded_up_to, run.seq)
                self._in_memory[run.seq] = run
                (self._suspects if run.suspect else home).ready.append(run)
                self._call_a_thread()

    def forget(self, seqs: Iterable[int]) -> None:
        """Drops runs that are not in the journal (any more)."""
        with self._lock:
            for seq in seqs:
                if (run := self._in_memory.pop(seq, None)) is not None:
                    run.gone = True

    def ended(self, run: RunAtWork) -> None:
        with self._lock:
            self._in_memory.pop(run.seq, None)

    def left_off(self, run: RunAtWork) -> None:
        """It has let go of its thread without having ended."""
        self.ended(run)
        if run.again:
            self.admit([replace(run, again=False, fresh=False)])

    def room(self) -> dict[str, int]:
        """Returns how many more runs of each workflow fit into memory, without the workflows for which there is no
        room."""
        with self._lock:
            return {
                name: room
                for name, backlog in self._backlogs.items()
                if (room := 2 * WINDOW - len(backlog.ready)) > 0
            }

    def look_again(self) -> None:
        """Now and then: what could not be read when it was wanted, and suspects whose time has come."""
        with self._lock:
            for name, backlog in self._backlogs.items():
                self._load_more(name, backlog)
            if self._suspects.ready:
                self._call_a_thread()

    def _call_a_thread(self) -> None:
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
                    f"SELECT {COLUMNS} FROM runs WHERE workflow = ? AND seq > ? AND state IS NULL AND wake_at IS NULL"
                    " ORDER BY seq LIMIT ?",
                    (name, backlog.loaded_up_to, WINDOW),
                )
                backlog.more_on_disk = len(rows) == WINDOW
            backlog.loading = False
            if rows:
                backlog.loaded_up_to = rows[-1][0]
                self.admit([RunAtWork(*row) for row in rows])

        self._journal.submit(lambda _: None, load)

    def _take_turns(self, place: int) -> None:
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
                log.exception("run %s could not be continued", run.id)
            finally:
                self._at_work.ends(place)
                with self._lock:
                    self._working.discard(run.seq)
                    self._backlogs[run.workflow].working -= 1
                    if run.suspect:
                        self._next_suspect_at = 0.0
                        self._call_a_thread()
                    if self._stopping:
                        self._work.notify_all()

    def _next(self) -> RunAtWork | None:
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
            if run.suspect:
                self._next_suspect_at = time.monotonic() + self._hangs_after
            self._working.add(run.seq)
            return run
        return None
