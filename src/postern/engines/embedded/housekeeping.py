"""Background work of the engine process: wake sleeping runs, delete old runs, find the run that ended the last
process."""

import logging
import sqlite3
import threading
import time
from functools import partial

from postern.core.steady_clock import SteadyClock
from postern.engines.embedded.at_work import AtWork
from postern.engines.embedded.journal import Journal
from postern.engines.embedded.turns import COLUMNS, SUSPECT_AT, RunAtWork, Turns

log = logging.getLogger("postern.engine")

PUT_ASIDE_AT = 9
"""A run gets blame for each engine process that died while it worked, until its next step is recorded. With this much
it is put aside."""
BLAME_FOR_CRASH, BLAME_FOR_KILL = 3, 1
"""A process that crashed or hung did so by a run; one that was killed from outside perhaps not."""
LONGEST_SUSPENSION = 5.0
PRUNED_AT_ONCE = 500
CHECK_RUNS_EVERY = 1.0
CATCH_UP_EVERY = 60.0
AHEAD = 60.0
"""Seconds: a run that fell asleep so long after now did so before the clock was set back."""


class Housekeeping:
    def __init__(self, journal: Journal, turns: Turns, at_work: AtWork, keep_seconds: float) -> None:
        self._journal = journal
        self._turns = turns
        self._at_work = at_work
        self._keep = keep_seconds
        # The last end before this process: its own runs may have ended by a clock that is wrong.
        ((self._last_end,),) = journal.read("SELECT max(ended_at) FROM runs WHERE ended_at IS NOT NULL")
        self._sleep = threading.Condition()
        self._next_wake = 0.0
        self._stopping = False
        self._thread = threading.Thread(target=self._keep_house, name="housekeeping", daemon=True)

    def find_culprits(self, after_crash: bool) -> list[str]:
        """The deliveries whose runs are put aside, for they were working whenever a process died."""
        put_aside = self._journal.write(
            partial(self._blame, BLAME_FOR_CRASH if after_crash else BLAME_FOR_KILL)
        )
        self._at_work.clear()
        return put_aside

    def begin(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._sleep:
            self._stopping = True
            self._sleep.notify()

    def join(self) -> None:
        if self._thread.is_alive():
            self._thread.join(CHECK_RUNS_EVERY)

    def expect(self, wake_at: float) -> None:
        """A run sleeps until then."""
        with self._sleep:
            if wake_at < self._next_wake:
                self._next_wake = wake_at
                self._sleep.notify()

    def _blame(self, blame: int, connection: sqlite3.Connection) -> list[str]:
        """The deliveries whose runs were put aside. Any run that was at work when the last process died may have ended it. They
        come back one by one and after the others, but for the first time that it was killed from outside; one that does so
        again and again is put aside."""
        suspects = []
        for seq in self._at_work.left_behind:
            row = connection.execute(
                "SELECT blame FROM runs WHERE seq = ? AND state IS NULL", (seq,)
            ).fetchone()
            if row and row[0] < SUSPECT_AT:
                self._accuse(connection, seq, blame)
            elif row:
                suspects.append(seq)
        if suspects:  # they began one after the other, and the last one has done it
            self._accuse(connection, suspects[-1], blame)
        now = time.time()
        error = (
            "put aside: again and again the engine process died or hung while this run was at the same step."
            " Replay the call when the cause is fixed"
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
            "UPDATE runs SET blame = blame + ?1, asleep_since = ?2,"
            " wake_at = CASE WHEN blame + ?1 >= ?5 THEN ?2 + min(blame + ?1, ?3) END WHERE seq = ?4",
            (blame, time.time(), LONGEST_SUSPENSION, seq, SUSPECT_AT),
        )

    def _keep_house(self) -> None:
        """Wake sleepers, delete old runs, and do again what the journal could not be asked for."""
        prune_every = max(0.5, min(3600.0, self._keep / 10))
        next_look = next_catch_up = next_prune = 0.0
        clock = SteadyClock()
        while not self._stopping:
            with self._sleep:
                # Not for longer than this: the clock may be set meanwhile.
                self._sleep.wait(max(0.0, min(self._next_wake - time.time(), CHECK_RUNS_EVERY)))
            try:
                if time.monotonic() >= next_catch_up:
                    next_catch_up = time.monotonic() + CATCH_UP_EVERY
                    self._catch_up()
                if self._next_wake <= time.time():
                    self._wake()
                if time.monotonic() >= next_look:
                    next_look = time.monotonic() + CHECK_RUNS_EVERY
                    # A file that is gone is noticed without anybody's call.
                    self._journal.submit(lambda _: None)
                    self._turns.look_again()
                trusted = clock.trusts(time.time(), time.monotonic(), self._last_end)
                if trusted and time.monotonic() >= next_prune:
                    deleted = self._journal.write(self.prune)
                    next_prune = time.monotonic() + (0.1 if deleted == PRUNED_AT_ONCE else prune_every)
            except Exception as error:
                log.warning("housekeeping will try again", exc_info=error)
                time.sleep(CHECK_RUNS_EVERY)

    def _catch_up(self) -> None:
        """Wakes runs that fell asleep at a time that is yet to come: the clock was set back. They sleep anew from now
        on."""
        now = time.time()
        ahead = "wake_at > ? AND asleep_since > ?"
        given = (now, now + AHEAD)
        ((count,),) = self._journal.read(f"SELECT count(*) FROM runs WHERE {ahead}", list(given))
        if count:
            log.warning("the clock was set back: %d runs that slept until a later time do not", count)
            self._journal.write(
                lambda connection: connection.execute(
                    f"UPDATE runs SET wake_at = ? WHERE {ahead}", (now, *given)
                )
            )
            self.expect(now)

    def _wake(self) -> None:
        """Wakes the runs whose time has come, as many as fit into memory, and notes when the next one is due."""
        now = time.time()
        with self._sleep:
            self._next_wake = now + 3600.0  # before looking: a sleep that is recorded meanwhile must count
        fitting = self._turns.room()

        def change(connection: sqlite3.Connection) -> list[RunAtWork]:
            due = []
            for name, room in fitting.items():
                due += connection.execute(
                    f"SELECT {COLUMNS} FROM runs WHERE workflow = ? AND wake_at <= ? ORDER BY wake_at LIMIT ?",
                    (name, now, room),
                ).fetchall()
            connection.executemany("UPDATE runs SET wake_at = NULL WHERE seq = ?", [(row[0],) for row in due])
            return [RunAtWork(*row) for row in due]

        self._journal.submit(change, before_commit=self._turns.admit)
        self._journal.write(lambda _: None)  # it is on disk
        soonest = [
            self._journal.read(
                "SELECT min(wake_at) FROM runs WHERE workflow = ? AND wake_at IS NOT NULL", [name]
            )[0][0]
            for name in self._turns.workflows
        ]
        with self._sleep:
            # Runs that found no room are asked for again soon.
            self._next_wake = min(
                [self._next_wake, *(max(at, now + 0.1) for at in soonest if at is not None)]
            )

    def prune(self, connection: sqlite3.Connection) -> int:
        """Delete a few runs that ended too long ago: small steps, so that nobody waits for long."""
        before = time.time() - self._keep
        old = [
            row[0]
            for row in connection.execute(
                "SELECT seq FROM runs WHERE ended_at < ? LIMIT ?", (before, PRUNED_AT_ONCE)
            )
        ]
        delete_runs(connection, old)
        return len(old)


def delete_runs(connection: sqlite3.Connection, seqs: list[int]) -> None:
    for table, column in (("steps", "run"), ("runs", "seq")):
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(seq,) for seq in seqs])
