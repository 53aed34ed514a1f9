"""Runs of one step from a backlog, in the engine alone: ``python -m bench.runs [--against CHECKOUT] [--runs N]``."""

import json
import subprocess

from bench.versions import parser, versions, write

MEASURE = """
import asyncio, json, sys, tempfile, time
from pathlib import Path
from postern.engines.embedded.engine import EmbeddedEngine
try:
    from postern.core.deliveries.delivery import Trigger
except ImportError:
    from postern.core.delivery import Trigger

FLOWS = '''
from postern.workflows import step, workflow
@step
def one(): return {"paid": True}
@workflow
def flow(event): one()
'''

def cpu(process):
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100

async def main(runs):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "flows.py"
        file.write_text(FLOWS)
        engine = EmbeddedEngine(Path(folder) / "data", file, log="off")
        await engine.open()
        while not (await engine.health()).ok:
            await asyncio.sleep(0.05)
        left = iter(range(runs))
        async def start():
            for number in left:
                await engine.start(Trigger(f"inv{number}.1", "wh_1", f"inv{number}", {"fieldOne": "1001"}, b'{"orderNumber": "1001"}'))
        before, own, began = cpu(engine.process_id), time.process_time(), time.perf_counter()
        await asyncio.gather(*(start() for _ in range(100)))
        started = time.perf_counter()
        await asyncio.gather(*(engine.ended(f"inv{number}.1") for number in range(max(0, runs - 2000), runs)))
        lasted = time.perf_counter() - began
        print(json.dumps({"rate": runs / lasted, "starts": runs / (started - began),
            "engine": (cpu(engine.process_id) - before) / runs * 1e6, "gateway": (time.process_time() - own) / runs * 1e6,
            "memory": int(Path(f"/proc/{engine.process_id}/status").read_text().split("VmHWM:")[1].split()[0]) / 1024}))
        await engine.close()

asyncio.run(main(int(sys.argv[1])))
"""


def main() -> None:
    arguments = parser("python -m bench.runs", __doc__)
    arguments.add_argument("--runs", type=int, default=20_000)
    arguments.add_argument("--runs-of-the-other", type=int, default=2_000, help="it may be slow")
    asked = arguments.parse_args()
    rows: list[list[str]] = []
    for round in range(asked.rounds):
        for name, python in versions(asked.against):
            runs = asked.runs if name == "this version" else asked.runs_of_the_other
            done = subprocess.run(
                [python, "-c", MEASURE, str(runs)], capture_output=True, text=True, check=True
            )
            result = json.loads(done.stdout.splitlines()[-1])
            rows.append(
                [
                    *(
                        f"{name}, round {round + 1}",
                        f"{runs:,}",
                        f"{result['rate']:,.0f}",
                        f"{result['starts']:,.0f}",
                    ),
                    *(f"{result['engine']:,.0f}", f"{result['gateway']:,.0f}", f"{result['memory']:.0f}"),
                ]
            )
            print(rows[-1], flush=True)
    heading = [
        "",
        "runs",
        "runs/s",
        "starts/s",
        "engine CPU a run, µs",
        "asking, CPU a run, µs",
        "most MB of the engine",
    ]
    write("Runs of one step from a backlog", "engine alone, 100 starts at once", heading, rows, 0)


if __name__ == "__main__":
    main()
