"""One call and its answer on an HTTP connection, without ASGI in between: what uvicorn calls a cycle, for
webhooks only.

Measured: answering so costs a third of what the ASGI interface costs, which was more than judging and storing
the call.
"""

from collections.abc import Callable
from typing import Any, Protocol

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from postern.core.answer import Answer
from postern.core.calls.call import Headers
from postern.surfaces.http.ingress import Arrival, Ingress

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Line(Protocol):
    """What an exchange needs of the connection it is on."""

    client: Any
    transport: Any
    flow: Any
    server_state: Any
    expect_100_continue: bool
    gone: bool

    def discard(self, size: int) -> None: ...

    def when_drained(self, then: Callable[[], None]) -> None: ...

    def on_response_complete(self) -> None: ...


class _Nobody:
    """uvicorn wakes whoever waits for more of a request; here nobody does."""

    def set(self) -> None: ...


class Exchange(Arrival):
    """``begin`` is called when the answers to all earlier requests have gone out; pieces of the body may be
    there before."""

    __slots__ = (
        "_begun", "_early", "_expects", "_headers", "_line", "_method", "_url", "_whole", "disconnected", "keep_alive", "response_complete",
        "response_started",
    )  # fmt: skip

    message_event = _Nobody()

    def __init__(
        self, ingress: Ingress, line: Line, method: bytes, url: bytes, headers: Headers, keep_alive: bool
    ) -> None:
        Arrival.__init__(self, ingress)
        self._line = line
        self._method = method
        self._url = url
        self._headers = headers
        self._expects = line.expect_100_continue
        self._early: list[bytes] = []
        self._begun = False
        self._whole = False
        self.keep_alive = keep_alive
        self.disconnected = False
        self.response_started = False
        self.response_complete = False

    def begin(self) -> None:
        if self.disconnected:
            return
        self._begun = True
        path, _, query = self._url.partition(b"?")
        client = self._line.client
        try:
            self.head(self._method.decode("ascii"), path, query, self._headers, client[0] if client else None)
            for piece in self._early:
                self.take(piece)
            if self._whole:
                self.finish()
            elif self._expects and not self.settled:
                self._line.transport.write(CONTINUE)
        except Exception:
            self.failed()

    def take(self, piece: bytes) -> None:
        if not self._begun:
            self._early.append(piece)
        elif self.settled:
            self._line.discard(len(piece))
        else:
            try:
                self.body(piece)
            except Exception:
                self.failed()

    def finish(self) -> None:
        self._whole = True
        if not self._begun or self.settled or self.disconnected:
            return
        try:
            self.end()
        except Exception:
            self.failed()

    def answer(self, answer: Answer) -> None:
        line = self._line
        if self.response_complete or self.disconnected or line.gone:
            return
        if line.flow.write_paused:
            line.when_drained(lambda: self.answer(answer))
            return
        if self.unread and self._expects:
            # A caller that asked before sending its body may send it or not after a refusal: only a closed
            # connection is unambiguous.
            self.keep_alive = False
        said = [STATUS_LINE[answer.status]]
        for name, value in (*line.server_state.default_headers, *answer.headers):
            said += (name, b": ", value, b"\r\n")
        bodiless = answer.status in (204, 304)
        if not bodiless:
            said.append(b"content-length: %d\r\n" % len(answer.body))
        said.append(b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n")
        if not bodiless and self._method != b"HEAD":
            said.append(answer.body)
        line.transport.write(b"".join(said))
        self.response_started = self.response_complete = True
        if not self.keep_alive:
            line.transport.close()
        line.on_response_complete()
