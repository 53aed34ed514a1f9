"""The document that engines outside this process get, and the parts that these engines have in common."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal

import msgspec
from msgspec import Struct

from postern.core.address import NOBODY, Allowlist
from postern.core.answer import WorkflowResponse
from postern.core.deliveries.delivery import (
    End,
    EndOfRun,
    EngineRejected,
    EngineUnavailable,
    ResponseSlot,
    Run,
    Trigger,
    Workflow,
    end_of_runs,
)
from postern.core.documents import Document
from postern.core.fetched import Fetched
from postern.outbound.fetch import Fetcher, parse_url
from postern.outbound.guard import Heard

NEAR = Allowlist.parse(
    ["127.0.0.0/8", "::1", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"]
)
"""Where an engine that the operator named may be besides the public internet: this machine and private networks. This
is safe because the name comes from the operator's environment, never from a user, and because redirects are not
followed: no other host is ever reached. Metadata services and link-local addresses stay shut."""


def read_ranges(text: str) -> Allowlist:
    """Reads the setting of where an engine may be: empty for ``NEAR``, ``none`` for the public internet alone, or
    ranges."""
    entries = [part.strip() for part in text.split(",") if part.strip()]
    return NEAR if not entries else NOBODY if entries == ["none"] else Allowlist.parse(entries)


def document(trigger: Trigger) -> Document:
    """The trigger's variables, the whole payload, and where to answer, or null when nobody waits."""
    slot = trigger.response
    return {
        **trigger.variables,
        **trigger.tracing,
        "payload": msgspec.Raw(trigger.payload or b"null"),
        "response": slot and {"url": slot.url, "token": slot.token, "deadline": deadline_text(slot)},
    }


def deadline_text(slot: ResponseSlot) -> str:
    return (
        datetime.fromtimestamp(slot.deadline, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


class EngineElsewhere:
    """The answers of an engine that tells neither its workflows nor how runs end, and deletes its own copies by its
    own settings. One that sets ``asked_after`` can be asked for ends."""

    asked_after: float | None = None

    async def open(self) -> None:
        return None

    async def ended(self, key: str) -> Literal["completed", "failed"] | End | WorkflowResponse:
        if self.asked_after is not None:
            return await ended_when_asked(self.ends, key)
        # The caller's own deadline ends the wait.
        never: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        return await never

    async def ends(self, keys: list[str]) -> dict[str, End | None]:
        return {}

    async def workflows(self) -> list[Workflow] | None:
        return None

    async def runs(self, limit: int = 50, delivery_key: str | None = None) -> list[Run] | None:
        return None

    async def forget(self, keys: list[str]) -> None:
        return None


class EngineOverHttp(EngineElsewhere):
    def __init__(self, url: str, timeout: float, allowed_ranges: Allowlist) -> None:
        """Raises ``FetchFailed`` for what is no URL, so that the start says so."""
        parse_url(url)
        self._url, self._timeout = url, timeout
        self._fetcher = Fetcher(allowed_ranges=allowed_ranges)

    async def _fetch(
        self,
        content: bytes | None,
        headers: Mapping[str, str],
        most: int,
        path: str = "",
        timeout: float | None = None,
        heard: Heard | None = None,
    ) -> Fetched:
        """Sends a POST, or a GET if there is no content. ``most``: bytes of the answer."""
        return await self._fetcher.fetch(
            self._url + path,
            method="GET" if content is None else "POST",
            headers=headers,
            content=content,
            timeout=timeout or self._timeout,
            max_bytes=most,
            max_redirects=0,
            heard=heard,
        )

    async def close(self) -> None:
        await self._fetcher.aclose()


FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Seconds between two questions whether a run has ended: most end soon, and others go on for long."""


async def ended_when_asked(
    ends: Callable[[list[str]], Awaitable[dict[str, End | None]]], key: str
) -> Literal["completed", "failed"]:
    """Waits for the end of a delivery's runs by asking an engine that can tell."""
    pause = FIRST_PAUSE
    while True:
        with suppress(EngineUnavailable, EngineRejected):
            known_ends = await ends([key])
            if key not in known_ends:
                return "completed"  # nothing runs
            if (end := known_ends[key]) is not None:
                return end.state
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


WORKFLOW = "Webhook Trigger"


class Target(Struct, frozen=True):
    """A workflow to start for every trigger, or for one webhook's only."""

    workflow: str = WORKFLOW
    queue: str = "postern"
    webhook_id: str | None = None

    def wants(self, trigger: Trigger) -> bool:
        return self.webhook_id in (None, trigger.webhook_id)

    def workflow_id(self, key: str) -> str:
        """The delivery's key; other workflows of the same delivery append their own name."""
        return key if self.workflow == WORKFLOW else f"{key}/{self.workflow}"

    def shown(self, where: str) -> Workflow:
        return Workflow(self.workflow, (self.webhook_id,) if self.webhook_id else (), where)


def read_targets(text: str, default: Target) -> tuple[Target, ...]:
    """``Webhook Trigger@postern, Refund@refunds#wh_1``: workflow, queue, and the one webhook it is for. The
    last two may be left out."""
    targets = []
    for part in text.split(","):
        if part.strip():
            rest, _, webhook_id = part.partition("#")
            workflow, _, queue = rest.partition("@")
            if not workflow.strip():
                raise ValueError(f"{part.strip()!r} names no workflow; write Workflow@queue")
            targets.append(
                Target(workflow.strip(), queue.strip() or default.queue, webhook_id.strip() or None)
            )
    return tuple(targets) or (default,)


ASKED_AT_ONCE = 20


async def asked_each(
    keys: list[str], targets: Sequence[Target], ask: Callable[[Target, str], Awaitable[EndOfRun | None]]
) -> dict[str, End | None]:
    """Returns how the runs of each delivery have ended, for the deliveries of which ``ask`` knows runs."""
    at_once = asyncio.Semaphore(ASKED_AT_ONCE)
    each = {target.workflow: target for target in targets}.values()

    async def asked(key: str) -> list[EndOfRun]:
        async with at_once:
            return [run for target in each if (run := await ask(target, key)) is not None]

    answers = await asyncio.gather(*map(asked, keys))
    return {key: end_of_runs(runs) for key, runs in zip(keys, answers, strict=True) if runs}


def checked(targets: Sequence[Target]) -> tuple[Target, ...]:
    """``ValueError`` where a trigger would be sent to the same workflow twice."""
    names = [(target.workflow, target.webhook_id) for target in targets]
    if len(set(names)) < len(names) or any(
        (workflow, None) in names for workflow, webhook_id in names if webhook_id
    ):
        raise ValueError("two targets would start the same workflow for one webhook")
    return tuple(targets)
