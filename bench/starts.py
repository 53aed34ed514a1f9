"""How many workflows each engine starts, and what a start costs the gateway itself: `python -m bench.starts [starts]`."""

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.rooms import free_port, table
from postern.core.delivery import Trigger
from postern.engines.embedded.engine import EmbeddedEngine
from postern.engines.temporal import TemporalEngine
from postern.identity import new_id
from postern.usecases.ports import Engine

AT_ONCE = 16
WORKFLOW = '''
from postern.workflows import workflow


@workflow
def nothing(event):
    """Ends at once."""
'''


def trigger() -> Trigger:
    invocation = new_id("inv")
    return Trigger(f"{invocation}.1", "wh_bench", invocation, {"fieldOne": "1001"}, b'{"orderNumber": "1001"}')


async def measure(name: str, engine: Engine, starts: int) -> list[str]:
    await engine.open()
    for _ in range(600):
        if (await engine.health()).ok:
            break
        await asyncio.sleep(0.1)
    await many(engine.start, AT_ONCE)  # warm
    began, spent = time.perf_counter(), time.process_time()
    await many(engine.start, starts)
    lasted, spent = time.perf_counter() - began, time.process_time() - spent
    await engine.close()
    return [name, f"{starts / lasted:,.0f}", f"{spent / starts * 1000:.2f}"]


async def many(start: Callable[[Trigger], Awaitable[object]], count: int) -> None:
    left = iter(range(count))

    async def one_after_the_other() -> None:
        for _ in left:
            await start(trigger())

    await asyncio.gather(*(one_after_the_other() for _ in range(AT_ONCE)))


def main(starts: int) -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "nothing.py").write_text(WORKFLOW)
        rows.append(asyncio.run(measure("embedded", EmbeddedEngine(Path(folder) / "data", Path(folder) / "nothing.py"), starts)))
        binary = shutil.which("temporal", path=str(Path(sys.executable).parent)) or shutil.which("temporal")
        if binary:
            port = free_port()
            command = [binary, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port), "--log-level", "error"]
            server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                rows.append(asyncio.run(measure("Temporal (its development server)", TemporalEngine(f"127.0.0.1:{port}"), starts)))
            finally:
                server.kill()
                server.wait()
    print(table(["engine", "starts/s", "gateway CPU a start, ms"], rows))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
