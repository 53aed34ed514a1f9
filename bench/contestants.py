"""The programs that are measured: each is started on a free port, asked for its CPU time, and ended."""

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.load import cores_for_servers
from bench.rooms import free_port

TOKEN = "whk_for_measuring_only_0123456789abcdefghijk"
WORKFLOW = "from postern.workflows import workflow\n\n\n@workflow\ndef nothing(event):\n    pass\n"


class Contestant:
    def __init__(
        self, name: str, process: "subprocess.Popen[bytes]", url: str, headers: dict[str, str]
    ) -> None:
        self.name = name
        self.process = process
        self.url = url
        self.headers = headers

    def cpu_seconds(self) -> float:
        """Returns the CPU time of the process and of everything it started, including the children that have
        ended."""
        return sum(cpu_of(process) for process in [self.process.pid, *descendants(self.process.pid)])

    def resident_megabytes(self) -> float:
        return sum(_resident(process) for process in [self.process.pid, *descendants(self.process.pid)])


@contextmanager
def gateway(
    folder: Path,
    engine: str,
    workflow: str = WORKFLOW,
    settings_of_the_webhook: tuple[str, ...] = (),
    python: str = sys.executable,
    name: str = "",
) -> Iterator[Contestant]:
    """The real program: token in a header, answer at once, everything durable. ``python`` is another
    checkout's, to have that one measured."""
    workflows = folder / "workflows"
    workflows.mkdir(parents=True)
    (workflows / "nothing.py").write_text(workflow)
    port = free_port()
    settings = {
        "POSTERN_PORT": str(port),
        "POSTERN_DATA_DIR": str(folder / "data"),
        "POSTERN_ENGINE": engine,
        "POSTERN_WORKFLOWS": str(workflows),
        "POSTERN_LOG": "json",
    }
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("POSTERN_")}
    environment = {**inherited, **settings, "TOKEN": TOKEN}
    make = [
        python,
        "-m",
        "postern",
        "webhooks",
        "create",
        "Measured",
        "--secret",
        "env:TOKEN",
        "--json",
    ]
    make += [
        "rateLimit.callsPerSecond=100000",
        "rateLimit.burst=1000000",
        "fieldMapping.fieldOne=customer.email",
        "fieldMapping.fieldTwo=id",
        *settings_of_the_webhook,
    ]
    made = json.loads(subprocess.run(make, env=environment, capture_output=True, check=True).stdout)
    name = name or "gateway, engine none" if engine == "none" else "gateway, embedded engine"
    with _running(
        name, [python, "-m", "postern", "serve"], environment, f"http://127.0.0.1:{port}", "/readyz"
    ) as contestant:
        if engine != "none":
            _wait_for_the_engine(contestant.url)
        contestant.url += "/webhook/" + made["url"].rpartition("/")[2]
        contestant.headers = {"X-Api-Key": TOKEN}
        yield contestant


@contextmanager
def constant(folder: Path, path: str) -> Iterator[Contestant]:
    """``path`` decides which way it is answered: as calls at webhooks are, or by the ASGI interface like
    every other page."""
    port = free_port()
    command = [sys.executable, "-m", "bench.constant", str(port)]
    way = "as webhooks are answered" if path.startswith("/webhook/") else "through ASGI"
    with _running(
        f"constant, {way}", command, dict(os.environ), f"http://127.0.0.1:{port}", path
    ) as contestant:
        contestant.url += path
        yield contestant


def has_peer() -> bool:
    return shutil.which("webhook") is not None


@contextmanager
def nginx(folder: Path) -> Iterator[Contestant]:
    """One worker that answers a constant."""
    folder.mkdir(parents=True)
    port = free_port()
    temporary = "".join(
        f"{kind}_temp_path {folder}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/errors; events {{ }} "
        f"http {{ access_log off; keepalive_requests 100000000; {temporary}"
        f"server {{ listen 127.0.0.1:{port}; return 202; }} }}"
    )
    command = ["nginx", "-c", str(folder / "nginx.conf"), "-e", str(folder / "errors")]
    name = "constant by nginx"
    with _running(name, command, dict(os.environ), f"http://127.0.0.1:{port}", "/") as contestant:
        yield contestant


@contextmanager
def peer(folder: Path) -> Iterator[Contestant]:
    """Debian's ``webhook``: a token in a header, and ``/bin/true`` as what is started."""
    folder.mkdir(parents=True)
    rule = {
        "match": {"type": "value", "value": TOKEN, "parameter": {"source": "header", "name": "X-Api-Key"}}
    }
    hooks = [{"id": "measured", "execute-command": "/bin/true", "trigger-rule": rule}]
    (folder / "hooks.json").write_text(json.dumps(hooks))
    port = free_port()
    command = ["webhook", "-hooks", str(folder / "hooks.json"), "-ip", "127.0.0.1", "-port", str(port)]
    with _running(
        "Debian's webhook, /bin/true", command, dict(os.environ), f"http://127.0.0.1:{port}", "/"
    ) as contestant:
        contestant.url += "/hooks/measured"
        contestant.headers = {"X-Api-Key": TOKEN}
        yield contestant


@contextmanager
def _running(
    name: str, command: list[str], environment: dict[str, str], url: str, path: str
) -> Iterator[Contestant]:
    cores = cores_for_servers()
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    try:
        deadline = time.monotonic() + 60
        while not _answers(url + path):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{name} did not start: {' '.join(command)}")
            time.sleep(0.1)
        yield Contestant(name, process, url, {})
    finally:
        for started in descendants(process.pid):
            with suppress(ProcessLookupError):
                os.kill(started, 9)
        process.kill()
        process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False


def _wait_for_the_engine(url: str) -> None:
    for _ in range(600):
        with urllib.request.urlopen(url + "/readyz", timeout=5) as answer:
            if json.load(answer)["engine"]["ok"]:
                return
        time.sleep(0.1)
    raise SystemExit("the embedded engine did not start")


def _fields(process: int) -> list[str]:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def cpu_of(process: int) -> float:
    fields = _fields(process)
    return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _resident(process: int) -> float:
    fields = _fields(process)
    return int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 1024**2 if fields else 0.0


def parent_of(process: int) -> int:
    return int(_fields(process)[1])


def descendants(process: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        fields = _fields(int(folder.name))
        if fields:
            parents.setdefault(int(fields[1]), []).append(int(folder.name))
    found, left = [], [process]
    while left:
        for child in parents.get(left.pop(), []):
            found.append(child)
            left.append(child)
    return found
