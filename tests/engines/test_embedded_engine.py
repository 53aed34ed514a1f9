"""The embedded engine keeps what every engine promises."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from engines.conformance import AnswerEndpoint, EngineConformance, Harness, endpoint, until
from postern.engines.embedded.engine import EmbeddedEngine

ECHO = """
import json
from postern.workflows import respond, workflow

@workflow
def echo(event):
    with open({ran!r}, "a") as lines:
        lines.write(json.dumps({{name: value for name, value in event.items() if name != "payload"}}) + "\\n")
    if event["fieldOne"] == "fail":
        raise ValueError("as asked")
    respond({{"echo": event["fieldOne"]}})
"""


class EmbeddedHarness:
    """One workflow file, written by the test. Unreachable means that the engine has been closed."""

    idempotent = hands_trace = True
    tells_the_end = True

    def __init__(self, gateway: AnswerEndpoint, folder: Path) -> None:
        self.endpoint = gateway
        self.lines = folder / "ran"
        file = folder / "flows.py"
        file.write_text(ECHO.format(ran=str(self.lines)))
        self.engine = EmbeddedEngine(folder / "data", file)
        self.engine.report_to(self.take, lambda _, __: None)

    async def take(self, key: str, status: Any, headers: Any, body: Any) -> bool:
        """The gateway's side of an answer, which comes by the engine's own socket and not to the door."""
        if self.endpoint.closed:
            self.endpoint.late.append(body)
            return False
        self.endpoint.closed = True
        self.endpoint.accepted.append({"status": status, "headers": headers, "body": body})
        return True

    async def ran(self) -> list[dict[str, Any]]:
        return (
            [json.loads(line) for line in self.lines.read_text().splitlines()] if self.lines.exists() else []
        )

    async def stop(self) -> None:
        await self.engine.close()

    async def resume(self) -> None:
        await self.engine.open()

    def refused(self) -> None:
        return None


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    async with endpoint() as gateway:
        made = EmbeddedHarness(gateway, tmp_path)
        await made.engine.open()

        async def up() -> bool:
            return (await made.engine.health()).ok

        await until(up)
        yield made
        await made.engine.close()


class TestEmbedded(EngineConformance): ...
