"""A real Restate server from npm, and beside it the services that the tests ask for."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from engines.npm import from_npm
from support.plain_http import WITHOUT_TLS
from support.waiting import PATIENCE, free_port, wait_until

VERSION = "1.7.12"
EXAMPLE = Path(__file__).parents[2] / "examples" / "restate_service.py"


@dataclass
class Server:
    ingress: int
    process: int
    ran: Path


def restate_server() -> Path | None:
    """The server's program, or None where there is none for this machine."""
    machine = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine(), "")
    if not shutil.which("npm") or not machine or sys.platform not in ("linux", "darwin"):
        return None
    # The platform's own package: the one above it only chooses among them, and brings a tracker along.
    package = f"@restatedev/restate-server-{sys.platform}-{machine}"
    return from_npm(package, VERSION) / "node_modules" / package / "bin" / "restate-server"


@contextmanager
def running_restate(binary: Path, folder: Path) -> Iterator[Server]:
    """The server with one partition and little memory, and a process with the services registered there."""
    ports = {name: free_port() for name in ("ingress", "admin", "node", "services")}
    settings = {
        "RESTATE_DISABLE_TELEMETRY": "true",
        "RESTATE_LISTEN_MODE": "tcp",
        "RESTATE_BIND_IP": "127.0.0.1",
        "RESTATE_BIND_PORT": str(ports["node"]),
        "RESTATE_INGRESS__BIND_PORT": str(ports["ingress"]),
        "RESTATE_ADMIN__BIND_PORT": str(ports["admin"]),
        "RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE": "64MB",
        "RESTATE_DEFAULT_NUM_PARTITIONS": "1",
    }
    programs = {
        "server": [str(binary), "--node-name", "test", "--base-dir", str(folder / "data"), "--no-logo"],
        "services": [
            *(sys.executable, "-m", "uvicorn", "--app-dir", str(Path(__file__).parent), "restate_echo:app"),
            *("--port", str(ports["services"]), "--log-level", "warning"),
        ],
    }
    mine = {
        "RESTATE_EXAMPLE": str(EXAMPLE),
        "RESTATE_RAN": str(folder / "ran"),
        "ORDER_LOOKUP_WEBHOOK": "wh_1",
    }
    started: list[subprocess.Popen[bytes]] = []
    try:
        for name, command in programs.items():
            with (folder / f"{name}.log").open("wb") as log:
                started.append(
                    subprocess.Popen(
                        command, stdout=log, stderr=log, cwd=folder, env={**os.environ, **settings, **mine}
                    )
                )

        def registered() -> bool:
            assert all(process.poll() is None for process in started), "one of the programs ended"
            try:
                reply = httpx2.post(
                    f"http://127.0.0.1:{ports['admin']}/deployments",
                    json={"uri": f"http://127.0.0.1:{ports['services']}", "use_http_11": True},
                    trust_env=False,
                    verify=WITHOUT_TLS,
                    timeout=20,
                )
            except httpx2.HTTPError:
                return False
            return bool(reply.status_code == 201)

        wait_until(
            registered, what=lambda: "Restate; its log: " + (folder / "server.log").read_text()[-2000:]
        )
        yield Server(ports["ingress"], started[0].pid, folder / "ran")
    finally:
        for process in reversed(started):
            process.kill()
            process.wait(PATIENCE)
