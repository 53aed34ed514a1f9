"""A worker's side: which of the workers it is, and the line to its parent."""

import asyncio
import os
import signal
import socket
from pathlib import Path

from msgspec import Struct


class WorkerSlot(Struct, frozen=True):
    """What a worker gets from its parent, as one word on its command line."""

    number: int
    of: int
    listener: int
    lifeline: int
    """Written to when it serves; at its end the parent is gone."""
    socket_dir: Path
    """Where workers ask each other for their metrics: `metrics.py`."""

    def __str__(self) -> str:
        return f"{self.number}:{self.of}:{self.listener}:{self.lifeline}:{self.socket_dir}"

    @classmethod
    def parse(cls, word: str) -> "WorkerSlot":
        number, of, listener, lifeline, socket_dir = word.split(":", 4)
        return cls(int(number), int(of), int(listener), int(lifeline), Path(socket_dir))


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
