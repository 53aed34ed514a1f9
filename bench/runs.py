"""Runs from a backlog, in the engine alone: ``python -m bench.runs [--against CHECKOUT] [--kind …] [--runs N]``.

What there is: one step; ten workflows of five steps; a step that waits for a second. ``--runs 100000`` shows whether
memory and open files stay where they are: both are told as they were after a tenth of the runs, and the most.
"""

import json
import subprocess

from bench.versions import parser, versions, write

STARTS = {"one": 20_000, "five": 2_000, "wait": 1_000}
WHAT = {"one": "one step", "five": "ten workflows of five steps", "wait": "a step that waits for a second"}

MEASURE = """
import asyncio, json, os, sys, tempfile, threading, time
from pathlib import Path
from postern.engines.embedded.engine import EmbeddedEngine
from postern.core.deliveries.delivery import Trigger

ONE = '''
from postern.workflows import step, workflow
@step
def one(): return {"paid": True}
@workflow
def flow(event): one()
'''
FIVE = "from postern.workflows import step, workflow\\n" + "".join(f'''
@step
def step{n}(): return {{"paid": {n}}}
''' for n in range(5)) + "".join(f'''
@workflow
def flow{n}(event): step0(); step1(); step2(); step3(); step4()
''' for n in range(10))
WAIT = '''
import time
from postern.workflows import step, workflow
@step
def one(): time.sleep(1)
@workflow
def flow(event): one()
'''

def cpu(process):
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100

def look(process):
    status = Path(f"/proc/{process}/status").read_text()
    value = lambda name: int(status.split(name)[1].split()[0])
    return value("VmRSS:") / 1024, len(os.listdir(f"/proc/{process}/fd")), value("Threads:")

async def main(kind, starts):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "flows.py"
        file.write_text({"one": ONE, "five": FIVE, "wait": WAIT}[kind])
        engine = EmbeddedEngine(Path(folder) / "data", file, log="off")
        await engine.open()
        while not (await engine.health()).ok:
            await asyncio.sleep(0.05)
        done, seen = 0, []
        async def start(left):
            nonlocal done
            for number in left:
                await engine.start(Trigger(f"inv{number}.1", "wh_1", f"inv{number}", {"fieldOne": "1001"}, b'{"orderNumber": "1001"}'))
                done += 1
        over = threading.Event()
        def watch():
            while not over.wait(0.2):
                seen.append((done, *look(engine.process_id)))
        threading.Thread(target=watch, daemon=True).start()
        before, own, began = cpu(engine.process_id), time.process_time(), time.perf_counter()
        left = iter(range(starts))
        await asyncio.gather(*(start(left) for _ in range(100)))
        started = time.perf_counter()
        await asyncio.gather(*(engine.ended(f"inv{number}.1") for number in range(max(0, starts - 2000), starts)))
        lasted = time.perf_counter() - began
        over.set()
        seen.append((done, *look(engine.process_id)))
        runs = starts * (10 if kind == "five" else 1)
        tenth = next(one for one in seen if one[0] >= starts / 10)
        print(json.dumps({"lasted": lasted, "rate": runs / lasted, "starts": starts / (started - began),
            "engine": (cpu(engine.process_id) - before) / runs * 1e6, "gateway": (time.process_time() - own) / runs * 1e6,
            "memory": [tenth[1], max(one[1] for one in seen)], "files": [tenth[2], max(one[2] for one in seen)],
            "threads": max(one[3] for one in seen)}))
        await engine.close()

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def main() -> None:
    arguments = parser("python -m bench.runs", (__doc__ or "").splitlines()[0])
    arguments.add_argument("--kind", choices=list(STARTS), action="append", help="default: each of them")
    arguments.add_argument("--runs", type=int, help="starts of each kind")
    arguments.add_argument("--runs-of-the-other", type=int, default=2_000, help="it may be slow")
    asked = arguments.parse_args()
    rows: list[list[str]] = []
    for round in range(asked.rounds):
        for kind in asked.kind or STARTS:
            for name, python in versions(asked.against):
                starts = asked.runs or STARTS[kind]
                if name != "this version":
                    starts = min(starts, asked.runs_of_the_other)
                done = subprocess.run(
                    [python, "-c", MEASURE, kind, str(starts)], capture_output=True, text=True, check=True
                )
                result = json.loads(done.stdout.splitlines()[-1])
                rows.append(
                    [
                        f"{name}, round {round + 1}",
                        *(WHAT[kind], f"{starts:,}", f"{result['lasted']:.1f}"),
                        *(f"{result['rate']:,.0f}", f"{result['starts']:,.0f}"),
                        *(f"{result['engine']:,.0f}", f"{result['gateway']:,.0f}"),
                        *(" → ".join(f"{value:.0f}" for value in result[of]) for of in ("memory", "files")),
                        str(result["threads"]),
                    ]
                )
                print(rows[-1], flush=True)
    heading = [
        *("", "runs of", "starts", "seconds", "runs/s", "starts/s"),
        *("engine CPU a run, µs", "asking, CPU a run, µs", "MB of the engine", "its files", "its threads"),
    ]
    write("Runs from a backlog", "engine alone, 100 starts at once", heading, rows, 0)


if __name__ == "__main__":
    main()
