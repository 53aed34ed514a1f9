"""A stage for the embedded engine: real processes, a real door, workflow files written by each test."""

import asyncio
import json
import textwrap
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from postern.core.deliveries.delivery import End, EngineUnavailable, ResponseSlot, Started, Trigger
from postern.engines.embedded.engine import EmbeddedEngine
from postern.observe.watching import Watch
from support.waiting import PATIENCE


class AnswerEndpoint:
    """Stands in for the gateway, which records the first answer of each delivery and tells later ones that they
    are too late."""

    def __init__(self) -> None:
        self.answers: list[dict[str, Any]] = []
        self.asked = 0
        self.refuse_with: Exception | None = None

    async def take(self, key: str, status: Any, headers: Any, body: Any) -> bool:
        self.asked += 1
        if self.refuse_with is not None:
            raise self.refuse_with
        if any(answer["key"] == key for answer in self.answers):
            return False
        self.answers.append({"key": key, "status": status, "headers": headers, "body": body})
        return True

    def slot(self, seconds: float = 20.0) -> ResponseSlot:
        return ResponseSlot("nobody posts to it", "", time.time() + seconds)


async def until(condition: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """Wait for the condition, with a bound."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if isinstance(value, Awaitable):
            value = await value
        if value:
            return value
        await asyncio.sleep(0.02)
    raise AssertionError("it did not happen in time")


class OftenLooking(Watch):
    look_every = 0.05


class Stage:
    """One data directory, one workflows file, and the engine on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "flows.py"
        self.data = folder / "data"
        self.marks = folder / "marks"
        self.marks.mkdir()
        self.endpoint = AnswerEndpoint()
        self.ends: dict[str, End] = {}
        self.engine = EmbeddedEngine(self.data, self.file)

    def write(self, source: str, file: Path | None = None) -> None:
        """Write a workflow file; ``mark(name)`` in it leaves a line where the test can read it. A run that does
        ``sleep_until_told()`` is asleep, but for moments, until the test marks "on"."""
        head = f"""\
            import os, time
            from postern.workflows import workflow, respond, step, sleep, StepFailed
            def mark(name, text="x"):
                with open({str(self.marks)!r} + "/" + name, "a") as lines:
                    lines.write(str(text) + "\\n")
            def marked(name):
                return os.path.exists({str(self.marks)!r} + "/" + name)
            @step
            def told_to_go_on():
                return marked("on")
            def sleep_until_told():
                while not told_to_go_on():
                    sleep(0.2)
            """
        (file or self.file).write_text(textwrap.dedent(head) + textwrap.dedent(source))

    def mark(self, name: str) -> None:
        (self.marks / name).write_text("x\n")

    def marked(self, name: str) -> list[str]:
        file = self.marks / name
        return file.read_text().split() if file.exists() else []

    async def open(self, source: str = "", **options: Any) -> EmbeddedEngine:
        options.setdefault("watch", OftenLooking())
        if source:
            self.write(source)
        self.engine = EmbeddedEngine(self.data, self.file, **options)
        self.engine.report_to(self.endpoint.take, self.ends.__setitem__)
        await self.engine.open()
        return self.engine

    @property
    def process(self) -> int:
        """The engine process. A signal to none, or to 0, would reach the tests themselves."""
        assert self.engine.process_id, "there is no engine process now"
        return self.engine.process_id

    async def up(self) -> None:
        async def ok() -> bool:
            return (await self.engine.health()).ok

        await until(ok)

    async def health_says(self, words: str) -> None:
        async def is_so() -> bool:
            health = await self.engine.health()
            return not health.ok and words in health.detail

        await until(is_so)

    async def start(
        self, key: str, *, slot: ResponseSlot | None = None, webhook_id: str = "wh_1", **fields: str
    ) -> Started:
        """Starts as the gateway does: an engine that is unavailable is asked again."""
        trigger = self.trigger(key, slot, webhook_id, **fields)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return await self.engine.start(trigger)
            except EngineUnavailable:
                if time.monotonic() > end:
                    raise
                await asyncio.sleep(0.05)

    @staticmethod
    def trigger(
        key: str, slot: ResponseSlot | None = None, webhook_id: str = "wh_1", **fields: str
    ) -> Trigger:
        invocation = key.rpartition(".")[0] or key
        payload = json.dumps({"orderNumber": "1001", "n": 10**30}).encode()
        return Trigger(key, webhook_id, invocation, fields, payload, slot)

    async def ended(self, key: str) -> str:
        return await asyncio.wait_for(self.engine.ended(key), PATIENCE)


def gone(process_id: int) -> bool:
    """Ended, or ended and not yet collected by whoever started it."""
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def resident_kilobytes(process_id: int) -> int:
    status = Path(f"/proc/{process_id}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])
