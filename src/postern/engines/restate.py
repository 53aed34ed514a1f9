"""Restate: a start is one request to the server's ingress with the delivery's key as its idempotency key, so that
the server itself takes a second one for the first.

The gateway needs nothing of Restate's: the ingress is HTTP. Whether a deployment is there to run the handler is
the server's own affair, once it knows the service: what it took it keeps until one is.
"""

import re
import time
from collections.abc import Sequence

import msgspec

from postern.core.deliveries.delivery import (
    End,
    EndOfRun,
    EngineHealth,
    EngineRejected,
    EngineUnavailable,
    Started,
    Trigger,
    Workflow,
)
from postern.core.fetched import Fetched
from postern.engines.handover import NEAR, EngineOverHttp, Target, asked_each, checked, document
from postern.outbound.fetch import parse_url
from postern.outbound.guard import FetchFailed

DEFAULT_TARGET = Target("WebhookTrigger/run", "")

_HANDLER = re.compile(r"[A-Za-z0-9_.-]{1,200}/[A-Za-z0-9_.-]{1,200}")
_NOT_YET = 470
_LARGEST_ANSWER = 64 * 1024
"""The results of handlers are not used here."""

_NeverTaken = {400, 413, 415, 422}


class _Refusal(msgspec.Struct):
    message: str = ""


class RestateEngine(EngineOverHttp):
    name = "restate"
    asked_after: float | None = 1.0

    def __init__(
        self, url: str, *, targets: Sequence[Target] = (DEFAULT_TARGET,), api_key: str | None = None
    ) -> None:
        super().__init__(url.rstrip("/"), 10.0, NEAR)
        for target in targets:
            if target.queue or not _HANDLER.fullmatch(target.workflow):
                raise ValueError(f"{target.workflow!r} is no handler; write Service/handler")
        self._targets = checked(targets)
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}

    async def start(self, trigger: Trigger) -> Started:
        targets = [target for target in self._targets if target.wants(trigger)]
        body = msgspec.json.encode(document(trigger))
        headers = {**self._headers, "Content-Type": "application/json", "Idempotency-Key": trigger.key}
        headers |= trigger.tracing
        for target in targets:
            answer = await self._ask(f"/{target.workflow}/send", headers, body)
            if 200 <= answer.status < 300:
                continue
            detail = f"Restate answered {answer.status}: {_message(answer)}"
            if answer.status in _NeverTaken:
                raise EngineRejected(detail)
            # Wrong settings (no such service, no permission) included: while the operator puts them right,
            # nothing is lost.
            raise EngineUnavailable(detail, answer.retry_after(time.time()), answer.status == 404)
        return Started(len(targets), tuple(target.workflow for target in targets))

    async def _ask(
        self, path: str, headers: dict[str, str] | None = None, content: bytes | None = None
    ) -> Fetched:
        try:
            return await self._fetch(content, headers or self._headers, _LARGEST_ANSWER, path)
        except FetchFailed as failed:
            if failed.reason_code == "too_large" and failed.status is not None:
                return Fetched(failed.status, (), b"")  # its status says all
            raise EngineUnavailable(f"Restate cannot be reached: {failed.detail}") from failed

    async def ends(self, keys: list[str]) -> dict[str, End | None]:
        return await asked_each(keys, self._targets, self._end)

    async def _end(self, target: Target, key: str) -> EndOfRun | None:
        """The ingress does not tell when a run has ended."""
        answer = await self._ask(f"/restate/invocation/{target.workflow}/{key}/output")
        if answer.status == _NOT_YET:
            return "running", None, ""
        if 200 <= answer.status < 300:
            return "completed", time.time(), ""
        if answer.header("x-restate-error-source") == "invocation":
            return "failed", time.time(), f"{target.workflow}: {_message(answer)}"
        if answer.status == 404:
            return None  # a target that did not want this trigger, or it is kept no longer
        raise EngineUnavailable(f"Restate answered {answer.status}: {_message(answer)}")

    async def health(self) -> EngineHealth:
        try:
            answer = await self._ask("/restate/health")
            if answer.status != 200:
                return EngineHealth(False, f"Restate answered {answer.status}: {_message(answer)}")
            unknown = [
                service
                for service in dict.fromkeys(target.workflow.partition("/")[0] for target in self._targets)
                if f"service '{service}' not found"
                in _message(await self._ask(f"/restate/invocation/{service}/-/-/output"))
            ]
        except EngineUnavailable as failed:
            return EngineHealth(False, failed.detail)
        if unknown:
            return EngineHealth(
                True,
                f"reachable, but the service {', '.join(unknown)} is not registered: starts wait until it is",
            )
        return EngineHealth(True, f"reachable at {parse_url(self._url).host}")

    async def workflows(self) -> list[Workflow] | None:
        return [target.shown("a handler") for target in self._targets]


def _message(answer: Fetched) -> str:
    try:
        text = msgspec.json.decode(answer.body, type=_Refusal).message
    except msgspec.DecodeError:
        text = answer.body[:300].decode("utf-8", "replace")
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))[:200]
