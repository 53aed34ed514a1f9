"""Load: ``wrk`` where it is installed, else a client of our own (``client.py``, slower, so it measures itself
sooner)."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

CONNECTIONS = 64
DELIVERY = "X-Delivery"
"""The header that is another one in each call."""

_SCRIPT = """
wrk.method = "POST"
wrk.body = {body}
{headers}
local sent = 0
request = function()
  sent = sent + 1
  wrk.headers["{delivery}"] = "{run}-" .. sent
  return wrk.format()
end
done = function(summary, latency, requests)
  local failed = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  io.write(string.format('\\nRESULT {{"calls": %d, "seconds": %.6f, "failed": %d, "p50": %.3f, "p99": %.3f}}\\n',
    summary.requests, summary.duration / 1e6, failed, latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
"""


@dataclass(frozen=True)
class Measured:
    calls: int
    seconds: float
    failed: int
    p50: float
    p99: float

    @property
    def rate(self) -> float:
        return self.calls / self.seconds


def with_what() -> str:
    return "wrk" if shutil.which("wrk") else "the built-in client (wrk is not installed)"


def load(
    url: str, headers: dict[str, str], body: bytes, seconds: float, connections: int = CONNECTIONS
) -> Measured:
    run = os.urandom(8).hex()
    with tempfile.TemporaryDirectory() as folder:
        if shutil.which("wrk"):
            lines = (f"wrk.headers[{json.dumps(name)}] = {json.dumps(it)}" for name, it in headers.items())
            script = Path(folder) / "post.lua"
            parts = {"body": json.dumps(body.decode()), "headers": "\n".join(lines)}
            script.write_text(_SCRIPT.format(**parts, delivery=DELIVERY, run=run))
            command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "-s", str(script), url]
        else:
            asked = {"url": url, "headers": headers, "body": body.decode()}
            asked |= {"delivery": f"{DELIVERY}: {run}"}
            how = json.dumps({**asked, "seconds": seconds, "connections": connections})
            command = [sys.executable, "-m", "bench.client", how]
        beside = _beside_the_server(command)
        printed = subprocess.run(beside, capture_output=True, text=True, check=True).stdout
    return Measured(**json.loads(printed.partition("RESULT ")[2].splitlines()[0]))


def _beside_the_server(command: list[str]) -> list[str]:
    """The load has the last core to itself: it would otherwise be measured with what it measures."""
    cores = sorted(os.sched_getaffinity(0))
    return (
        ["taskset", "-c", str(cores[-1]), *command] if len(cores) > 1 and shutil.which("taskset") else command
    )


def cores_for_servers() -> set[int]:
    cores = sorted(os.sched_getaffinity(0))
    return set(cores[:-1] or cores)
