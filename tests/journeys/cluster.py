"""Helpers for several gateways on one database: an engine that counts what it was asked to start, and callers."""

import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.client import admin_of
from support.program import Program
from support.server import Answer, Asked, serving
from support.waiting import PATIENCE

Trigger = dict[str, Any]


def asking_soon(folder: Path) -> dict[str, str]:
    """The environment of a program, started as users do, that asks the embedded engine after a second for ends that nobody
    has told it. It is ten in production."""
    (folder / "sitecustomize.py").write_text(
        "from postern.engines.embedded.engine import EmbeddedEngine; EmbeddedEngine.asked_after = 1.0"
    )
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


@dataclass
class CountingEngine:
    """A workflow engine behind one URL. ``keys`` counts the starts by their Idempotency-Key. ``answers``:
    while it is not set, what was taken is not said to be."""

    url: str
    keys: Counter[str] = field(default_factory=Counter)
    on_start: Callable[[Trigger], None] | None = None
    answers: threading.Event = field(default_factory=threading.Event)
    triggers: list[Trigger] = field(default_factory=list)

    def started(self) -> set[str]:
        return {key.partition(".")[0] for key in list(self.keys)}


@contextmanager
def counting_engine() -> Iterator[CountingEngine]:
    def answer(asked: Asked) -> Answer:
        trigger = json.loads(asked.body)
        engine.triggers.append(trigger)
        engine.keys[asked.headers["idempotency-key"]] += 1
        if not engine.answers.wait(60):
            return None
        if engine.on_start is not None:
            threading.Thread(target=engine.on_start, args=(trigger,), daemon=True).start()
        return 202, "", b""

    with serving(answer) as url:
        engine = CountingEngine(f"{url}/start")
        engine.answers.set()
        yield engine
        engine.answers.set()


def ask(program: Program, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """One request, with the admin's key unless another Authorization is given."""
    reply = admin_of(program).ask(method, path, body, **headers)
    return reply.status, reply.json if reply.text else None


def make_webhook(program: Program, **settings: Any) -> tuple[str, str]:
    """Its id, and the path under which it is called. It asks for no credential: these tests are about other
    things."""
    wanted = {
        "name": "Orders",
        "authentication": {"method": "none"},
        "rateLimit": {"callsPerSecond": 100_000, "burst": 100_000},
    }
    status, made = ask(program, "POST", "/api/v1/webhooks", {**wanted, **settings})
    assert status == 201, made
    return made["id"], "/webhook/" + made["url"].rpartition("/")[2]


class Callers:
    """Call until told to stop, on connections that are kept; ``acknowledged`` holds the id of each call that
    got a 2xx."""

    def __init__(self, ports: list[int], path: str, count: int = 4, **headers: str) -> None:
        self._path, self._headers = path, {"Content-Type": "application/json", **headers}
        self._stop = threading.Event()
        self.acknowledged: list[str] = []
        self.refused: Counter[int] = Counter()
        self.lost = 0
        self._threads = ThreadPoolExecutor(count * len(ports))
        self._running = [self._threads.submit(self._call, port) for port in ports for _ in range(count)]

    def _call(self, port: int) -> None:
        connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        number = 0
        while not self._stop.is_set():
            number += 1
            try:
                connection.request("POST", self._path, f'{{"n": {number}}}', self._headers)
                answer = connection.getresponse()
                text = answer.read()
            except (OSError, HTTPException):
                self.lost += 1
                connection.close()
                self._stop.wait(0.05)
                continue
            if answer.status == 200:
                self.acknowledged.append(json.loads(text)["invocationId"])
            else:
                self.refused[answer.status] += 1
            # A steady load: starts must keep up with it on two busy cores.
            self._stop.wait(0.03)
        connection.close()

    def close(self) -> None:
        self._stop.set()
        for one in self._running:
            one.result(PATIENCE)
        self._threads.shutdown()


def history_of(url: str) -> Counter[str]:
    with psycopg.connect(url) as connection:
        return Counter(row[0] for row in connection.execute("SELECT id FROM invocations"))


def deliveries_by_state(url: str) -> dict[str, int]:
    with psycopg.connect(url) as connection:
        return dict(connection.execute("SELECT state, count(*) FROM deliveries GROUP BY state").fetchall())


@pytest.fixture(name="engine")
def an_engine() -> Iterator[CountingEngine]:
    with counting_engine() as engine:
        yield engine
