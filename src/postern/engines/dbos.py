"""DBOS as the user's own engine: a start enqueues a workflow in the system database of their DBOS app, with the
delivery's key as its id, so that the database itself refuses a second one.

The app runs it, from its queue, whenever it is there. Inputs are portable JSON, and nothing that others recorded is
ever read here: DBOS may have pickled it, and to read that is to run it.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import msgspec
from dbos import DBOSClient, EnqueueOptions, WorkflowSerializationFormat, WorkflowStatus
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, ProgrammingError, SQLAlchemyError

from postern.core.deliveries.delivery import (
    End,
    EngineHealth,
    EngineRejected,
    EngineUnavailable,
    Run,
    Started,
    Trigger,
    Workflow,
    end_of_runs,
)
from postern.engines.handover import EngineElsewhere, Target, checked, document

T = TypeVar("T")

CONNECTIONS = 4
CONNECT_WITHIN = 5
_STATES = {
    "SUCCESS": "completed",
    "ERROR": "failed",
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "failed",
    "CANCELLED": "cancelled",
    "PENDING": "running",
    "ENQUEUED": "waiting",
    "DELAYED": "waiting",
}
_OVER = ("completed", "failed", "cancelled")
_WHY = {"failed": "DBOS has its error", "cancelled": "it was cancelled"}


class DbosEngine(EngineElsewhere):
    name = "dbos"
    asked_after: float | None = 1.0

    def __init__(self, database_url: str, *, targets: Sequence[Target] = (Target(),)) -> None:
        """Raises ``ValueError`` for settings that cannot work. Nothing is connected to yet."""
        self._targets = checked(targets)
        try:
            url = make_url(database_url)
        except ArgumentError as error:
            raise ValueError("the database must be written as postgresql://user@host/name") from error
        if url.get_backend_name() != "postgresql":
            raise ValueError("the database must be written as postgresql://user@host/name")
        if "connect_timeout" not in url.query:
            url = url.update_query_dict({"connect_timeout": str(CONNECT_WITHIN)})
        self._client = DBOSClient(
            system_database_url=url.set(drivername="postgresql").render_as_string(hide_password=False),
            system_database_pool_size=CONNECTIONS,
            lazy=True,
            # The delivery loop waits and tries again itself.
            retry_connection_errors=False,
        )
        # Its methods wait for the database; threads of its own, so that nobody else waits for them.
        self._threads = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="dbos")

    async def _ask(self, question: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, question)
        except ProgrammingError as error:
            raise EngineUnavailable(
                f"DBOS' database is not as it should be (has your app been started on it?): {_words(error)}"
            ) from error
        except SQLAlchemyError as error:
            raise EngineUnavailable(f"DBOS' database cannot be reached: {_words(error)}") from error

    async def start(self, trigger: Trigger) -> Started:
        targets = [target for target in self._targets if target.wants(trigger)]
        try:
            given = msgspec.json.decode(msgspec.json.encode(document(trigger)))
        except msgspec.DecodeError as error:
            raise EngineRejected(f"the payload is beyond what DBOS records: {error}") from error
        for target in targets:
            options: EnqueueOptions = {
                "workflow_name": target.workflow,
                "queue_name": target.queue,
                "workflow_id": target.workflow_id(trigger.key),
                "serialization_type": WorkflowSerializationFormat.PORTABLE,
            }
            await self._ask(partial(self._client.enqueue, options, given))
        return Started(len(targets), tuple(target.workflow for target in targets))

    async def ends(self, keys: list[str]) -> dict[str, End | None]:
        ids = {target.workflow_id(key): key for key in keys for target in self._targets}
        runs: dict[str, list[Run]] = {}
        for status in await self._listed(list(ids)):
            runs.setdefault(ids[status.workflow_id], []).append(_run(status))
        return {
            key: end_of_runs((run.state, run.ended_at, run.error) for run in its_runs)
            for key, its_runs in runs.items()
        }

    async def _listed(self, ids: list[str] | None, limit: int | None = None) -> list[WorkflowStatus]:
        return await self._ask(
            lambda: self._client.list_workflows(
                workflow_ids=ids,
                name=None if ids else [target.workflow for target in self._targets],
                limit=limit,
                sort_desc=True,
                load_input=False,
                load_output=False,
            )
        )

    async def health(self) -> EngineHealth:
        try:
            await self._listed(None, 1)
        except EngineUnavailable as failed:
            return EngineHealth(False, failed.detail)
        return EngineHealth(True, "its database is reachable")

    async def workflows(self) -> list[Workflow] | None:
        return [target.shown(f"on queue {target.queue}") for target in self._targets]

    async def runs(self, limit: int = 50, delivery_key: str | None = None) -> list[Run] | None:
        ids = None if delivery_key is None else [target.workflow_id(delivery_key) for target in self._targets]
        try:
            return [_run(status) for status in await self._listed(ids, limit)]
        except EngineUnavailable:
            return None

    async def forget(self, keys: list[str]) -> None:
        """Deletes the workflows that are over. One that sleeps may sleep for longer than history is kept."""
        ids = [target.workflow_id(key) for key in keys for target in self._targets]
        over = [run.workflow_id for run in await self._listed(ids) if _run(run).state in _OVER]
        if over:
            await self._ask(lambda: self._client.delete_workflows(over))

    async def close(self) -> None:
        await asyncio.to_thread(self._client.destroy)


def _run(status: WorkflowStatus) -> Run:
    state = _STATES.get(status.status, status.status.lower())
    return Run(
        id=status.workflow_id,
        workflow=status.name,
        state=state,
        delivery_key=status.workflow_id.partition("/")[0],
        started_at=(status.created_at or 0) / 1000,
        ended_at=(status.completed_at or status.updated_at or 0) / 1000 if state in _OVER else None,
        error=f"{status.name}: {_WHY[state]}" if state in _WHY else "",
    )


def _words(error: SQLAlchemyError) -> str:
    """Returns the database's own message in one line: SQLAlchemy's has the statement and its parameters in it."""
    words = str(error.orig) if isinstance(error, DBAPIError) else type(error).__name__
    return " ".join(words.split())[:200]
