"""The interface between a connection and its exchanges."""

import asyncio
from typing import Any, Protocol

from uvicorn.protocols.http.flow_control import FlowControl

from postern.core.answer import CallerAnswer


class Exchange(Protocol):
    """One request and its answer. It tells the connection when the answer has gone out."""

    keep_alive: bool
    """Whether the connection may go on after the answer."""
    listens_on: bool
    """Whether its caller still wants the answer after it has shut its side."""

    @property
    def started(self) -> bool:
        """Whether some of the answer has gone out."""

    def begin(self) -> None:
        """The head is whole, and every earlier request is answered."""

    def take(self, piece: bytes) -> bool:
        """Whether this piece of the body was wanted."""

    def finish(self) -> None:
        """The request is whole."""

    def drop(self) -> None:
        """The rest of it will not come, or nobody is there to hear the answer."""


class Line(Protocol):
    """The parts of a connection that an exchange uses."""

    flow: FlowControl
    server: tuple[str, int | None] | None
    client: tuple[str, int] | None
    caller_finished: bool
    """The caller has closed its side."""

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]: ...

    @property
    def tasks(self) -> set[asyncio.Task[None]]: ...

    @property
    def closing(self) -> bool: ...

    def write(self, data: bytes) -> None: ...

    def send(self, answer: CallerAnswer, keep_alive: bool, to_head: bool = False) -> None: ...

    def when_writable(self, exchange: Any, answer: CallerAnswer) -> None: ...

    def answered(self, keep_alive: bool) -> None: ...
