"""Temporal: a start is one ``start_workflow`` whose id is the delivery's key, so that the server itself
refuses a second one.

The gateway only needs the server. Whether a worker is there to run the workflow is the worker's own affair:
the start is kept until one comes.
"""

import contextlib
import re
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta

import msgspec
from temporalio.api.common.v1 import Payload, WorkflowExecution
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DeleteWorkflowExecutionRequest,
    DescribeNamespaceRequest,
    DescribeTaskQueueRequest,
)
from temporalio.client import Client, TLSConfig, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.common import RawValue, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RetryConfig, RPCError, RPCStatusCode

from postern.core.deliveries.delivery import (
    End,
    EndOfRun,
    EngineHealth,
    EngineRejected,
    EngineUnavailable,
    Run,
    Started,
    Trigger,
    Workflow,
)
from postern.engines.handover import EngineElsewhere, Target, asked_each, checked, document

_NEVER = {RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.OUT_OF_RANGE, RPCStatusCode.UNIMPLEMENTED}


_ADDRESS = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}")


_TIMEOUT = timedelta(seconds=5)
_AT_WORK = (None, WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.CONTINUED_AS_NEW)
"""After a run that was continued as new another one follows, with the same id."""


class TemporalEngine(EngineElsewhere):
    name = "temporal"
    asked_after: float | None = 1.0

    def __init__(
        self,
        address: str = "127.0.0.1:7233",
        *,
        namespace: str = "default",
        targets: Sequence[Target] = (Target(),),
        api_key: str | None = None,
        tls: TLSConfig | bool | None = None,
    ) -> None:
        """``tls`` is on by itself where an API key is given, as Temporal Cloud wants it."""
        if not _ADDRESS.fullmatch(address):
            raise ValueError("the server's address must be written as host:port, like 127.0.0.1:7233")
        self._address = address
        self._namespace = namespace
        self._targets = checked(targets)
        self._api_key = api_key
        self._tls = tls

    async def open(self) -> None:
        self._client = await Client.connect(
            self._address,
            namespace=self._namespace,
            api_key=self._api_key,
            tls=self._tls,
            lazy=True,
            connect_timeout=_TIMEOUT,
            # The delivery loop waits and tries again itself; the client's own patience would only hold a
            # caller up.
            retry_config=RetryConfig(
                initial_interval_millis=50,
                max_interval_millis=500,
                max_elapsed_time_millis=1500,
                max_retries=2,
            ),
        )

    async def start(self, trigger: Trigger) -> Started:
        targets = [target for target in self._targets if target.wants(trigger)]
        # Encoded here, not by the client: numbers keep their digits, and nothing of the payload is looked at
        # twice.
        given = RawValue(
            Payload(metadata={"encoding": b"json/plain"}, data=msgspec.json.encode(document(trigger)))
        )
        for target in targets:
            # By an earlier attempt whose answer was lost, it may be started already.
            with _errors_of_the_port(), contextlib.suppress(WorkflowAlreadyStartedError):
                await self._client.start_workflow(
                    target.workflow,
                    given,
                    id=target.workflow_id(trigger.key),
                    task_queue=target.queue,
                    id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                    id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                    memo={"webhookId": trigger.webhook_id, "invocationId": trigger.invocation_id},
                    rpc_timeout=_TIMEOUT,
                )
        return Started(len(targets), tuple(target.workflow for target in targets))

    def _ids(self, *keys: str) -> list[str]:
        return [*dict.fromkeys(target.workflow_id(key) for key in keys for target in self._targets)]

    async def ends(self, keys: list[str]) -> dict[str, End | None]:
        with _errors_of_the_port():
            return await asked_each(keys, self._targets, self._end)

    async def _end(self, target: Target, key: str) -> EndOfRun | None:
        try:
            run = await self._client.get_workflow_handle(target.workflow_id(key)).describe(
                rpc_timeout=_TIMEOUT
            )
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                return None  # a target that did not want this trigger, or it is kept no longer
            raise
        if run.status in _AT_WORK:
            return "running", None, ""
        at = run.close_time.timestamp() if run.close_time else time.time()
        if run.status == WorkflowExecutionStatus.COMPLETED:
            return "completed", at, ""
        try:
            handle = self._client.get_workflow_handle(run.id, run_id=run.run_id)
            await handle.result(follow_runs=False, rpc_timeout=_TIMEOUT)
        except WorkflowFailureError as failure:
            return "failed", at, f"{run.workflow_type}: {_root(failure)}"
        return "completed", at, ""

    async def health(self) -> EngineHealth:
        try:
            with _errors_of_the_port():
                await self._client.workflow_service.describe_namespace(
                    DescribeNamespaceRequest(namespace=self._namespace), timeout=_TIMEOUT
                )
                idle = [
                    queue
                    for queue in dict.fromkeys(t.queue for t in self._targets)
                    if not await self._polled(queue)
                ]
        except (EngineUnavailable, EngineRejected) as failed:
            return EngineHealth(False, failed.detail)
        if idle:
            return EngineHealth(
                True, f"reachable, but no worker listens on {', '.join(idle)}: starts are kept until one does"
            )
        return EngineHealth(True, f"reachable, with workers, in namespace {self._namespace}")

    async def _polled(self, queue: str) -> bool:
        request = DescribeTaskQueueRequest(
            namespace=self._namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )
        service = self._client.workflow_service
        return bool((await service.describe_task_queue(request, timeout=_TIMEOUT)).pollers)

    async def workflows(self) -> list[Workflow] | None:
        return [t.shown(f"on task queue {t.queue}") for t in self._targets]

    async def runs(self, limit: int = 50, delivery_key: str | None = None) -> list[Run] | None:
        if delivery_key is not None:
            query = " OR ".join(
                f"WorkflowId = {_quoted(workflow_id)}" for workflow_id in self._ids(delivery_key)
            )
        else:
            query = " OR ".join(
                f"WorkflowType = {_quoted(name)}" for name in dict.fromkeys(t.workflow for t in self._targets)
            )
        try:
            return [
                Run(
                    id=execution.run_id,
                    workflow=execution.workflow_type,
                    state=execution.status.name.lower() if execution.status else "unknown",
                    delivery_key=execution.id.partition("/")[0],
                    started_at=execution.start_time.timestamp(),
                    ended_at=execution.close_time.timestamp() if execution.close_time else None,
                )
                async for execution in self._client.list_workflows(
                    query, limit=limit, page_size=limit, rpc_timeout=_TIMEOUT
                )
            ]
        except (RPCError, RuntimeError):
            return None

    async def forget(self, keys: list[str]) -> None:
        for workflow_id in self._ids(*keys):
            with _errors_of_the_port():
                await self._delete(workflow_id)

    async def _delete(self, workflow_id: str) -> None:
        try:
            execution = await self._client.get_workflow_handle(workflow_id).describe(rpc_timeout=_TIMEOUT)
            if execution.status == WorkflowExecutionStatus.RUNNING:
                return  # deleting would end it; a workflow may well sleep for longer than history is kept
            request = DeleteWorkflowExecutionRequest(
                namespace=self._namespace,
                workflow_execution=WorkflowExecution(workflow_id=workflow_id, run_id=execution.run_id),
            )
            await self._client.workflow_service.delete_workflow_execution(request, timeout=_TIMEOUT)
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise

    async def close(self) -> None:
        return None


@contextlib.contextmanager
def _errors_of_the_port() -> Iterator[None]:
    try:
        yield
    except RPCError as error:
        # A message over the server's limit comes under the same status as a server out of breath.
        too_large = error.status == RPCStatusCode.RESOURCE_EXHAUSTED and "larger than max" in error.message
        if error.status in _NEVER or too_large:
            raise EngineRejected(f"Temporal refused the trigger: {error.message}") from error
        # Wrong settings (no such namespace, no permission) included: while the operator puts them right,
        # nothing is lost.
        raise EngineUnavailable(
            f"Temporal did not take the trigger: {error.status.name.lower()}: {error.message}"
        ) from error
    except RuntimeError as error:
        # A client that has never been connected raises this when the server is down.
        raise EngineUnavailable(f"Temporal cannot be reached: {error}") from error


def _root(failure: BaseException) -> str:
    """Returns the message of the first cause, in the words of the workflow."""
    while failure.__cause__ is not None:
        failure = failure.__cause__
    return str(failure) or type(failure).__name__


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
