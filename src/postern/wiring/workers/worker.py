"""A worker's side: which of the workers it is, the line to its parent, and the metrics of all workers from whichever of them
is asked. Each gives its own to the others on a socket in their folder.

Every sample carries its worker's number instead of being added up here: a worker that was replaced counts
from zero again, and only whoever watches each series by itself can tell that from a drop.
"""

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

from msgspec import Struct
from prometheus_client import generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

PATIENCE = 2.0


class WorkerSlot(Struct, frozen=True):
    """The parent's orders for a worker, as JSON on its command line."""

    number: int
    of: int
    listener: int
    lifeline: int
    """Written to when it serves; at its end the parent is gone."""
    socket_dir: str
    """The folder in which workers ask each other for their metrics."""


class Lifeline:
    """A worker ends when its parent does, however that ended."""

    def __init__(self, slot: WorkerSlot) -> None:
        self._socket = socket.socket(fileno=os.dup(slot.lifeline))
        self._socket.setblocking(False)

    def serving(self) -> None:
        """Tell the parent, and watch it from now on."""
        self._socket.send(b"u")
        asyncio.get_running_loop().add_reader(self._socket, self._parent_gone)

    def _parent_gone(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)
        os.kill(os.getpid(), signal.SIGTERM)


class WorkerMetrics:
    def __init__(self, slot: WorkerSlot, own: Callable[[], str]) -> None:
        """``own`` gives this process's metrics as text."""
        self._slot = slot
        self._own = own

    async def open(self) -> None:
        path = self._path(self._slot.number)
        path.unlink(missing_ok=True)  # of the worker before this one in the same slot
        self._server = await asyncio.start_unix_server(self._give_own, path)

    async def _give_own(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            writer.write(self._own().encode())
            await writer.drain()
        writer.close()

    async def all(self) -> str:
        """Everybody's metrics; of a worker that does not answer in time there are none."""
        others = [number for number in range(self._slot.of) if number != self._slot.number]
        answers = await asyncio.gather(*(self._ask(number) for number in others))
        return merged({self._slot.number: self._own(), **dict(zip(others, answers, strict=True))})

    async def _ask(self, number: int) -> str:
        try:
            async with asyncio.timeout(PATIENCE):
                reader, writer = await asyncio.open_unix_connection(self._path(number))
                text = await reader.read()
                writer.close()
                return text.decode()
        except (OSError, TimeoutError):
            return ""

    def _path(self, number: int) -> Path:
        return Path(self._slot.socket_dir, f"worker-{number}.sock")


def merged(by_worker: dict[int, str]) -> str:
    """One exposition of several: each family once, with everybody's samples under it, labelled with their
    worker."""
    families: dict[str, Metric] = {}
    for number, text in sorted(by_worker.items()):
        for family in text_string_to_metric_families(text):
            together = families.setdefault(
                family.name, Metric(family.name, family.documentation, family.type)
            )
            for sample in family.samples:
                together.add_sample(sample.name, {**sample.labels, "worker": str(number)}, sample.value)
    return generate_latest(SimpleNamespace(collect=families.values)).decode()
