"""The workflow runs of the embedded engine, on DBOS and its own SQLite file.

A run's id is ``<delivery key>/<workflow>``: that alone makes a repeated start harmless.
"""

import heapq
import json
import logging
import os
import sqlite3
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from dbos import DBOS, DBOSPortableJSONSerializer, SetWorkflowID, WorkflowStatus

from postern.core.deliveries.delivery import ResponseSlot, Run, Started, Trigger
from postern.engines.embedded.durable import DurableRun, Suspended
from postern.workflows.language import Declared, running

log = logging.getLogger("postern.engine")

RUNS_AT_ONCE = 64
TAKEN_UP_AT_MOST = 100
PRUNED_AT_ONCE = 200
LONGEST_ERROR = 2000

_STATES = {
    "PENDING": "running",
    "ENQUEUED": "waiting",
    "DELAYED": "waiting",
    "SUCCESS": "completed",
    "CANCELLED": "cancelled",
}
_UNFINISHED = ("PENDING", "ENQUEUED", "DELAYED")


class WorkflowRuns:
    """Starts runs, knows how they are, and cleans up after them. Everything blocks; no event loop may call
    it."""

    def __init__(
        self,
        file: Path,
        workflows: Iterable[Declared],
        keep_seconds: float,
        ended: Callable[[str, str], None],
    ) -> None:
        self._workflows = tuple(workflows)
        self._keep = keep_seconds
        self._tell_ended = ended
        self._starter = threading.get_ident()
        self._database = _database(file, self._starter)
        self._functions = {declared.name: self._register(declared) for declared in self._workflows}
        self._lock = threading.Condition()
        self._active: set[str] = set()
        self._awaited: set[str] = set()
        self._asleep: list[tuple[float, str]] = []
        self._closed = threading.Event()

    def open(self) -> None:
        """Take up what an earlier process left unfinished, and be ready for more."""
        DBOS(
            config={
                "name": "postern",
                "system_database_url": str(self._database.url),
                "system_database_engine": self._database,
                # the default is pickle: whoever can write the file could run code
                "serializer": DBOSPortableJSONSerializer(),
                # the default is a hash of the source: an edit would strand unfinished runs
                "application_version": "1",
                "executor_id": "embedded",
                "max_executor_threads": RUNS_AT_ONCE,
                "notification_listener_polling_interval_sec": 30.0,
                "scheduler_polling_interval_sec": 3600.0,
                "log_level": "WARNING",
            }
        )
        DBOS.launch()
        threading.Thread(target=self._keep_house, name="housekeeping", daemon=True).start()

    def start(self, trigger: Trigger) -> Started:
        """Every workflow that wants this webhook's events gets a run, recorded before this returns. Called by
        one thread only."""
        wanted = [declared.name for declared in self._workflows if declared.wants(trigger.webhook_id)]
        slot = asdict(trigger.response) if trigger.response else None
        for name in wanted:
            with SetWorkflowID(f"{trigger.key}/{name}"):
                handle = DBOS.start_workflow(
                    self._functions[name], trigger.variables, trigger.payload.decode("utf-8", "replace"), slot
                )
            future = getattr(handle, "future", None)  # none where the run had been started before
            if future is not None:
                future.add_done_callback(lambda _: self._look_whether_ended(trigger.key))
        return Started(len(wanted), tuple(wanted))

    def await_end(self, key: str) -> None:
        """Have the end of this delivery's runs told, once."""
        with self._lock:
            self._awaited.add(key)
        self._look_whether_ended(key)

    def runs(self, limit: int, key: str | None) -> list[Run]:
        if key is None:
            found = DBOS.list_workflows(limit=limit, sort_desc=True, load_input=False)
        else:
            ids = list(self._states(key))[:limit]
            found = DBOS.list_workflows(workflow_ids=ids, sort_desc=True, load_input=False) if ids else []
        return [self._tell(status, with_steps=key is not None) for status in found]

    def forget(self, keys: list[str]) -> None:
        """Delete the runs of these deliveries with all that was recorded of them; one that still goes ends at
        its next step."""
        ids = [run_id for key in keys for run_id in self._states(key)]
        if ids:
            DBOS.delete_workflows(ids)

    def finish(self, grace: float) -> None:
        """Let running workflows come to an end or to a sleep; what takes longer is taken up by the next
        process."""
        with self._lock:
            self._lock.wait_for(lambda: not self._active, grace)
        self._closed.set()

    def _register(self, declared: Declared) -> Any:
        def run(variables: dict[str, str], payload: str, slot: dict[str, Any] | None) -> None:
            run_id = DBOS.workflow_id or ""
            with self._lock:
                self._active.add(run_id)
            try:
                with running(DurableRun(ResponseSlot(**slot) if slot else None)):
                    declared.function({**variables, "payload": json.loads(payload)})
            except Suspended as suspended:
                with self._lock:
                    heapq.heappush(self._asleep, (suspended.wake_at, run_id))
                raise
            except Exception as error:
                log.error("workflow %s failed in run %s: %s", declared.name, run_id, _told(error))
                raise
            finally:
                with self._lock:
                    self._active.discard(run_id)
                    self._lock.notify_all()

        run.__qualname__ = run.__name__ = declared.name
        return DBOS.workflow(name=declared.name, max_recovery_attempts=TAKEN_UP_AT_MOST)(run)

    def _look_whether_ended(self, key: str) -> None:
        if key not in self._awaited or self._closed.is_set():
            return
        states = self._states(key).values()
        if any(state in _UNFINISHED for state in states):
            return
        with self._lock:
            if key not in self._awaited:
                return
            self._awaited.discard(key)
        self._tell_ended(key, "completed" if all(state == "SUCCESS" for state in states) else "failed")

    def _states(self, key: str) -> dict[str, str]:
        """The delivery's run ids and states. DBOS can only look for a prefix with LIKE, which reads the whole
        table; '0' is the character after '/', so this is one range of the primary key."""
        query = sa.text(
            "SELECT workflow_uuid, status FROM workflow_status WHERE workflow_uuid > :first AND workflow_uuid < :last"
        )
        with self._database.connect() as connection:
            rows = connection.execute(query, {"first": f"{key}/", "last": f"{key}0"}).all()
        return {row[0]: row[1] for row in rows}

    def _tell(self, status: WorkflowStatus, *, with_steps: bool) -> Run:
        key, _, name = status.workflow_id.rpartition("/")
        unfinished = status.status in _UNFINISHED
        error = str(status.error)[:LONGEST_ERROR] if status.error is not None else ""
        if unfinished and status.name not in self._functions:
            error = f"the workflow {status.name} is no longer in the workflow files; put it back and this run goes on"
        state = _STATES.get(status.status, "failed")
        if unfinished and any(run_id == status.workflow_id for _, run_id in list(self._asleep)):
            state = "sleeping"
        steps = DBOS.list_workflow_steps(status.workflow_id) if with_steps else []
        return Run(
            id=status.workflow_id,
            workflow=name,
            state=state,
            delivery_key=key,
            started_at=(status.created_at or 0) / 1000,
            ended_at=status.completed_at / 1000 if status.completed_at else None,
            error=error,
            steps=tuple(step["function_name"] for step in steps),
        )

    def _keep_house(self) -> None:
        """Wake sleepers, notice the end of runs that an earlier process began, delete old ones."""
        rounds = 0
        prune_every = max(1.0, min(3600.0, self._keep / 10))
        next_prune = time.monotonic() + prune_every
        while not self._closed.wait(0.2):
            rounds += 1
            try:
                self._wake_sleepers()
                if rounds % 5 == 0:
                    for key in list(self._awaited):
                        if not any(run_id.startswith(f"{key}/") for run_id in self._active):
                            self._look_whether_ended(key)
                if time.monotonic() >= next_prune:
                    next_prune = time.monotonic() + (0.1 if self._prune() else prune_every)
            except Exception as error:
                log.warning("housekeeping will try again: %s", _told(error))

    def _wake_sleepers(self) -> None:
        while True:
            with self._lock:
                if not self._asleep or self._asleep[0][0] > time.time():
                    return
                _, run_id = heapq.heappop(self._asleep)
            try:
                DBOS.resume_workflow(run_id)
            except Exception as error:
                if not self._states(run_id.rpartition("/")[0]):
                    continue  # forgotten meanwhile
                with self._lock:
                    heapq.heappush(self._asleep, (time.time() + 5, run_id))
                raise error

    def _prune(self) -> bool:
        """Delete a few runs that ended too long ago. True when there are more: small steps, so that nobody
        waits for the lock."""
        before = datetime.fromtimestamp(time.time() - self._keep, UTC).isoformat()
        old = DBOS.list_workflows(
            completed_before=before, limit=PRUNED_AT_ONCE, load_input=False, load_output=False
        )
        if old:
            DBOS.delete_workflows([status.workflow_id for status in old])
        return len(old) == PRUNED_AT_ONCE


def _database(file: Path, starter: int) -> sa.Engine:
    os.close(
        os.open(file, os.O_CREAT | os.O_CLOEXEC, 0o600)
    )  # it holds payloads; SQLite gives its side files the same mode
    engine = sa.create_engine(f"sqlite:///{file}", pool_size=10, max_overflow=RUNS_AT_ONCE, pool_timeout=60)

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = (
            "IMMEDIATE"  # a reader that turns writer would be refused, not made to wait
        )
        for pragma in ("busy_timeout=30000", "journal_mode=WAL", "foreign_keys=ON", "cache_size=-500"):
            connection.execute(f"PRAGMA {pragma}").close()

    @sa.event.listens_for(engine, "checkout")
    def how_durable(connection: sqlite3.Connection, record: sa.pool.ConnectionPoolEntry, _: object) -> None:
        # The gateway counts a start as done, so it must outlive a power cut. A lost step is only done again.
        mode = "FULL" if threading.get_ident() == starter else "NORMAL"
        if record.info.get("synchronous") != mode:
            connection.execute(f"PRAGMA synchronous={mode}").close()
            record.info["synchronous"] = mode

    return engine


def _told(error: BaseException) -> str:
    with suppress(Exception):
        return "".join(traceback.format_exception(error)).strip()
    return repr(type(error))
