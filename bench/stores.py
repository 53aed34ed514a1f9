"""What an accepted call costs, end to end over HTTP: SQLite, Postgres, and Postgres with two gateway
processes.

`python -m bench.stores [seconds]`. The caller shares the machine, so calls per second are a floor; processor
time for each call is what to plan with. An engine that takes nothing (`POSTERN_ENGINE=none`): starts are
measured by `bench.starts`.
"""

import asyncio
import os
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from statistics import quantiles

import psycopg

from bench.rooms import Program, durable_postgres, free_port, make_webhook, run_postern, table

CONNECTIONS = 64
BODY = b'{"orderNumber": "1001", "note": "' + b"x" * 360 + b'"}'


async def call(port: int, path: str, until: float, took: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    request = (
        f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n".encode()
        + BODY
    )
    while (began := time.perf_counter()) < until:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
        await reader.readexactly(length)
        assert head.startswith(b"HTTP/1.1 200"), head
        took.append(time.perf_counter() - began)
    writer.close()


def processor_seconds(pids: list[int]) -> float:
    spent = 0.0
    for pid in pids:
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            spent += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return spent


def postgres_pids(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [
            row[0]
            for row in connection.execute("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        ]


def measure(name: str, seconds: float, url: str, workers: int) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        given = {
            "POSTERN_DATABASE_URL": url,
            "POSTERN_ENGINE": "none",
            "POSTERN_LOG": "off",
            "POSTERN_PORT": str(free_port()),
        }
        if url:
            run_postern(Path(folder), "migrate", **given)
        program = Program(Path(folder), given, ("--workers", str(workers)) if workers > 1 else ())
        try:
            program.wait_until_ready()
            _, path = make_webhook(program)
            time.sleep(1.0)
            took: list[float] = []

            async def load(for_seconds: float) -> None:
                until = time.perf_counter() + for_seconds
                await asyncio.gather(*(call(program.port, path, until, took) for _ in range(CONNECTIONS)))

            asyncio.run(load(1.0))  # warm
            took.clear()
            gateways, servers = program.processes_left(), postgres_pids(url) if url else []
            before = processor_seconds(gateways), processor_seconds(servers)
            began = time.perf_counter()
            asyncio.run(load(seconds))
            lasted = time.perf_counter() - began
            spent = [
                after - earlier
                for after, earlier in zip(
                    (processor_seconds(gateways), processor_seconds(servers)), before, strict=True
                )
            ]
            centiles = quantiles(took, n=100)
            return [
                name,
                f"{len(took) / lasted:,.0f}",
                f"{centiles[49] * 1000:.1f} / {centiles[98] * 1000:.1f}",
                f"{spent[0] / len(took) * 1e6:.0f}",
                f"{spent[1] / len(took) * 1e6:.0f}" if url else "in the gateway",
            ]
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
