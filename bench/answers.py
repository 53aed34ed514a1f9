"""Synchronous answers through the whole gateway, a workflow with one step answering:
``python -m bench.answers [--against CHECKOUT] [--sync-takes MICROSECONDS]``."""

import json
import os
import tempfile
from pathlib import Path

from bench.contestants import gateway
from bench.load import load
from bench.rooms import power_cut as power_cut
from bench.versions import parser, versions, write

CALLERS = (1, 16, 64)
WORKFLOW = """
from postern.workflows import respond, step, workflow

@step
def find(number):
    return {"name": "#" + number, "paid": True}

@workflow
def order_lookup(event):
    respond({"orders": [find(event["fieldOne"])]})
"""
HEADERS = {"Content-Type": "application/json"}
BODY = json.dumps({"id": 1001, "customer": {"email": "ada@example.com"}}).encode()
WAITING = ("synchronousResponse.enabled=true", "synchronousResponse.timeoutSeconds=20")


def main() -> None:
    arguments = parser("python -m bench.answers", __doc__)
    arguments.add_argument("--seconds", type=float, default=4.0)
    arguments.add_argument("--sync-takes", type=int, default=0, help="microseconds that each fsync takes")
    asked = arguments.parse_args()
    rows: list[list[str]] = []
    for round in range(asked.rounds):
        for name, python in versions(asked.against):
            with tempfile.TemporaryDirectory() as folder:
                if asked.sync_takes:
                    os.environ |= {
                        "LD_PRELOAD": power_cut.preload(Path(folder)),
                        "SYNC_TAKES": str(asked.sync_takes),
                    }
                with gateway(Path(folder) / "it", "embedded", WORKFLOW, WAITING, python) as one:
                    os.environ.pop("LD_PRELOAD", None)
                    headers = {**HEADERS, **one.headers}
                    load(one.url, headers, BODY, 1.0, 4)
                    for callers in CALLERS:
                        before = one.cpu_seconds()
                        measured = load(one.url, headers, BODY, asked.seconds, callers)
                        cpu = (one.cpu_seconds() - before) / max(measured.calls, 1) * 1e6
                        rows.append(
                            [
                                *(f"{name}, round {round + 1}", str(callers), f"{measured.rate:,.0f}"),
                                *(
                                    f"{measured.p50:.1f}",
                                    f"{measured.p99:.1f}",
                                    f"{cpu:,.0f}",
                                    str(measured.failed),
                                ),
                            ]
                        )
                        print(rows[-1], flush=True)
    heading = ["", "callers", "answers/s", "p50 ms", "p99 ms", "CPU an answer, µs", "failed"]
    write("Synchronous answers", f"one step, {asked.seconds:g} s each", heading, rows, asked.sync_takes)


if __name__ == "__main__":
    main()
