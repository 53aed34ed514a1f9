"""What an accepted call costs, end to end over HTTP: SQLite, Postgres, and Postgres with two gateway
processes.

`python -m bench.stores [seconds]`. The caller shares the machine, so calls per second are a floor; processor
time for each call is what to plan with. An engine that takes nothing (`POSTERN_ENGINE=none`): starts are
measured by `bench.starts`.
"""

import sys
import tempfile
import time
from pathlib import Path

import psycopg

from bench.contestants import cpu_of
from bench.load import load
from bench.rooms import Program, durable_postgres, free_port, make_webhook, run_postern, table

HEADERS = {"Content-Type": "application/json"}
BODY = b'{"orderNumber": "1001", "note": "' + b"x" * 360 + b'"}'


def postgres_pids(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        return [pid for (pid,) in found]


def measure(name: str, seconds: float, url: str, workers: int) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        given = {"POSTERN_ENGINE": "none", "POSTERN_LOG": "off", "POSTERN_PORT": str(free_port())}
        given["POSTERN_DATABASE_URL"] = url
        if url:
            run_postern(Path(folder), "migrate", **given)
        program = Program(Path(folder), given, ("--workers", str(workers)) if workers > 1 else ())
        try:
            program.wait_until_ready()
            _, path = make_webhook(program)
            time.sleep(1.0)
            load(program.url + path, HEADERS, BODY, 1.0)  # warm
            both = program.processes_left(), postgres_pids(url) if url else []
            before = [sum(map(cpu_of, processes)) for processes in both]
            measured = load(program.url + path, HEADERS, BODY, seconds)
            spent = [sum(map(cpu_of, processes)) - was for processes, was in zip(both, before, strict=True)]
            each = [f"{one / measured.calls * 1e6:.0f}" for one in spent]
            took = f"{measured.p50:.1f} / {measured.p99:.1f}"
            return [name, f"{measured.rate:,.0f}", took, each[0], each[1] if url else "in the gateway"]
        finally:
            program.stop()


def main(seconds: float) -> None:
    heading = ["store", "calls/s", "p50 / p99, ms", "gateway CPU a call, µs", "Postgres CPU a call, µs"]
    rows = [measure("SQLite", seconds, "", 1)]
    with durable_postgres() as url:
        for name, workers in (("Postgres", 1), ("Postgres, two processes", 2)):
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE bench_{workers}".encode())
            rows.append(measure(name, seconds, url.rpartition("/")[0] + f"/bench_{workers}", workers))
    print(table(heading, rows))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0)
