"""One connection: bytes in, exchanges made of them, answers out. Its states are in `states.py`.

Calls at webhooks are answered without ASGI (`call_exchange.py`), everything else by the application
(`app_exchange.py`). uvicorn's server is around it, which leaves to a proxy in front what a public address needs:
limits on heads, time and bytes, and answers that arrive although the caller is still sending.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE
from uvicorn.protocols.utils import get_local_addr, get_remote_addr
from uvicorn.server import ServerState

from postern.core import answer as answers
from postern.core.address import limit_key
from postern.core.answer import CallerAnswer
from postern.observe.logs import log
from postern.surfaces.http.crowding import CLOSED_AT_ONCE, Progress, Standing, give_up
from postern.surfaces.http.reader import Request, RequestReader
from postern.surfaces.http.states import LONGEST, TABLE, ConnectionEvent, Do, State, Wait
from postern.usecases.calls.intake import PREFIX

IDLE_SECONDS = 75
MOST_AT_ONCE = 64 * 1024
"""Bytes that are taken from the network at a time."""

MOST_KEPT = 64 * 1024 * 1024
"""Bytes that came behind requests whose answers are owed, on all connections together. If more come, the connection
that keeps the most is closed."""

MOST_KEPT_OF_ONE = 4 * MOST_AT_ONCE
"""The same of one connection. It is more than is taken at a time: an application that reads a request's body makes the
connection read on."""

MOST_DISCARDED = 64 * 1024 * 1024
"""Bytes of one request, or behind a refusal, that nobody wants."""

READS_ON = 15.0
"""Seconds: a caller who has taken some of its answer so recently is reading it, however slowly."""

# Each request needs these: Python 3.11 takes ten times as long to find an enum's member as a name.
_IDLE, _ANSWERING, _HOLDING = State.IDLE, State.ANSWERING, State.HOLDING
_LINGERING, _CLOSED = State.LINGERING, State.CLOSED
_HEAD_WHOLE, _ANSWERED, _FINAL_ANSWER = (
    ConnectionEvent.HEAD_WHOLE,
    ConnectionEvent.ANSWERED,
    ConnectionEvent.FINAL_ANSWER,
)

_BUFFER = bytearray(MOST_AT_ONCE)
"""Data is copied out of it at once, so one buffer is enough for the process and its loop."""


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


MakeExchange = Callable[["Connection", Request], Exchange]

_PROGRESS = {
    State.HEAD: Progress.HEAD,
    State.BODY: Progress.BODY,
    State.UNWANTED: Progress.BODY,
    State.ANSWERING: Progress.ANSWERING,
    State.HOLDING: Progress.ANSWERING,
}


@dataclass
class Connections:
    """The state that all connections share."""

    for_calls: MakeExchange
    for_the_app: MakeExchange
    most: int
    kept: int = field(default=0, init=False)
    _turns: deque["Connection"] = field(default_factory=deque, init=False)

    def wait_for_turn(self, connection: "Connection", loop: asyncio.AbstractEventLoop) -> None:
        """One connection goes on in each round of the loop: a request that came alone waits for one of those that
        were sent many at a time, and not for one of each connection."""
        self._turns.append(connection)
        if len(self._turns) == 1:
            loop.call_soon(self._next_turn, loop)

    def _next_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        connection = self._turns.popleft()
        while connection.closing and self._turns:
            connection = self._turns.popleft()
        if self._turns:
            loop.call_soon(self._next_turn, loop)
        connection.read_kept()


class Connection(asyncio.BufferedProtocol):
    __slots__ = (
        *(
            "__weakref__",
            "_discarded",
            "_exchange",
            "_fault",
            "_has_turn",
            "_kept",
            "_loop",
            "_reader",
            "caller_finished",
        ),
        *("_server_state", "_shared", "_since", "_state", "_taken_at", "_transport", "_unread", "_unsent"),
        *("client", "flow", "server"),
    )

    def __init__(
        self, shared: Connections, server_state: ServerState, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._shared = shared
        self._server_state = server_state
        self._loop = loop
        self._state = State.NEW
        self._since = loop.time()
        self._exchange: Exchange | None = None
        """The request whose answer is owed."""
        self._kept = 0
        self._has_turn = False
        """It waits for its turn to read what it has kept."""
        self.caller_finished = False
        self._unsent: tuple[Any, CallerAnswer] | None = None
        """An answer that waits until the caller has taken what was sent before."""
        self._unread = 0
        """Bytes of answers that the caller had not taken at the last look."""
        self._taken_at = 0.0
        """When a look last saw that the caller had taken some of its answer, or had some to take."""
        self._fault = "malformed_request"
        """The problem of which the caller hears when it is refused."""
        self._discarded = 0
        self._reader: RequestReader | None = RequestReader(self._event, self._on_head)

    # Called by the event loop

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.flow = FlowControl(transport)
        self.server = get_local_addr(transport)
        self.client = get_remote_addr(transport)
        connections: set[Any] = self._server_state.connections
        connections.add(self)
        if len(connections) > self._shared.most:
            make_place(list(connections), max(1, self._shared.most // CLOSED_AT_ONCE), self._loop.time())

    def connection_lost(self, exc: Exception | None) -> None:
        self._server_state.connections.discard(self)
        self._event(ConnectionEvent.LOST)
        self.flow.resume_writing()
        self._stop_reading()
        self._transport = None

    def get_buffer(self, sizehint: int) -> bytearray:
        return _BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(memoryview(_BUFFER)[:nbytes]))

    def data_received(self, data: bytes) -> None:
        state = self._state
        if state is _LINGERING:
            self._discard(data)
        elif self._reader is None or state is _CLOSED:
            return
        elif state is _ANSWERING or state is _HOLDING:
            self._reader.keep(data)
            self._event(ConnectionEvent.MORE)
        else:
            self._read(data)

    def _read(self, data: bytes) -> None:
        reader = self._reader
        if reader is None:
            return
        fault = reader.read(data)
        if fault is not None:
            self._fault = fault
            self._event(ConnectionEvent.INVALID)
        elif reader.kept:
            if self._state is _ANSWERING:
                self._event(ConnectionEvent.MORE)
            elif self._state is _IDLE:
                self._read_on(b"")
        elif not self._kept:
            return
        self._count_kept()

    def eof_received(self) -> bool:
        """Whether the transport stays open."""
        self.caller_finished = True
        answering = self._state is _ANSWERING or self._state is _HOLDING
        left = answering and self._exchange is not None and not self._exchange.listens_on
        self._event(ConnectionEvent.LEFT if left else ConnectionEvent.CALLER_FINISHED)
        return self._state is not _CLOSED

    def pause_writing(self) -> None:
        self.flow.pause_writing()

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        self._taken_at = self._loop.time()
        if self._unsent is not None:
            (exchange, answer), self._unsent = self._unsent, None
            exchange.answer(answer)

    def _on_head(self, head: Request) -> None:
        shared = self._shared
        make = shared.for_calls if head.path.startswith(PREFIX) else shared.for_the_app
        self._exchange = make(self, head)
        self._discarded = 0
        self._event(_HEAD_WHOLE)

    # For an exchange

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        return self._server_state.default_headers

    @property
    def tasks(self) -> set[asyncio.Task[None]]:
        return self._server_state.tasks

    @property
    def closing(self) -> bool:
        return self._state in (_LINGERING, _CLOSED) or self._transport.is_closing()

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def send(self, answer: CallerAnswer, keep_alive: bool, to_head: bool = False) -> None:
        """``to_head``: a HEAD request hears no body."""
        parts = [STATUS_LINE[answer.status]]
        for name, value in (*self._server_state.default_headers, *answer.headers):
            parts += (name, b": ", value, b"\r\n")
        has_body = answer.status not in (204, 304)
        if has_body:
            parts.append(b"content-length: %d\r\n" % len(answer.body))
        parts.append(b"\r\n" if keep_alive else b"connection: close\r\n\r\n")
        if has_body and not to_head:
            parts.append(answer.body)
        self._transport.write(b"".join(parts))

    def when_writable(self, exchange: Any, answer: CallerAnswer) -> None:
        self._unsent = exchange, answer

    def answered(self, keep_alive: bool) -> None:
        self._server_state.total_requests += 1
        self._exchange = None
        self._event(_ANSWERED if keep_alive else _FINAL_ANSWER)

    # Called by the server

    def shutdown(self) -> None:
        self._event(ConnectionEvent.ENDING)

    def look(self, now: float, patience: float) -> None:
        """Asked about once a second: who owes the rest of a request, who does not take an answer, who does
        not hang up."""
        self._look_at_unread(now)
        if self._unread and now - self._taken_at > patience:
            self._event(ConnectionEvent.HOPELESS)
            return
        wait = LONGEST.get(self._state)
        since = max(self._since, self._taken_at) if wait is Wait.END else self._since
        if wait is not None and now - since > (IDLE_SECONDS if wait is Wait.REST else patience):
            self._fault = "request_timeout"
            self._event(ConnectionEvent.OVERDUE)

    def standing(self, now: float) -> Standing:
        caller = limit_key(self.client[0]) if self.client else ""
        since = 0.0 if self._state in (_LINGERING, _CLOSED) else self._since
        progress = _PROGRESS.get(self._state, Progress.IDLE)
        self._look_at_unread(now)
        if self._unread:
            progress = Progress.READING if now - self._taken_at < READS_ON else Progress.UNREAD
        return Standing(progress, since, caller)

    def crowd_out(self) -> None:
        self._fault = "temporarily_unavailable"
        self._event(ConnectionEvent.HOPELESS if self._unread else ConnectionEvent.CROWDED_OUT)

    def _look_at_unread(self, now: float) -> None:
        """An answer is over for us once it is written, so something of it may be unread in every state."""
        unread = self._transport.get_write_buffer_size() if self._transport is not None else 0
        if unread < self._unread or (unread and not self._unread):
            self._taken_at = now
        self._unread = unread

    # Done as the table has it

    def _event(self, event: ConnectionEvent, piece: bytes = b"") -> None:
        self._state, do, restart = _STEPS[self._state][event]
        if restart:
            self._since = self._loop.time()
        if do is not None:
            do(self, piece)

    def _begin(self, _: bytes) -> None:
        if self._exchange is not None:
            self._exchange.begin()

    def _hand_on(self, piece: bytes) -> None:
        if self._exchange is None or not self._exchange.take(piece):
            self._discard(piece)

    def _finish(self, _: bytes) -> None:
        if self._exchange is not None:
            self._exchange.finish()

    def _hold(self, _: bytes) -> None:
        self.flow.pause_reading()
        self._count_kept()

    def _count_kept(self) -> None:
        kept = self._reader.kept if self._reader is not None else 0
        self._shared.kept += kept - self._kept
        is_more, self._kept = kept > self._kept, kept
        if is_more and kept > MOST_KEPT_OF_ONE:
            self._event(ConnectionEvent.HOPELESS)
        elif is_more and self._shared.kept > MOST_KEPT:
            connections: set[Any] = self._server_state.connections
            max(connections, key=lambda connection: connection._kept)._event(ConnectionEvent.HOPELESS)

    def _stop_reading(self) -> None:
        """Drops what has come and was not read: it must not stay for as long as the connection."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()
            self._count_kept()

    def _read_on(self, _: bytes) -> None:
        if self._reader is not None and self._reader.kept:
            # Not from here: who sends a thousand requests at once must not keep all others waiting for as long.
            if not self._has_turn:
                self._has_turn = True
                self.flow.pause_reading()
                self._shared.wait_for_turn(self, self._loop)
        elif self.flow.read_paused:
            self.flow.resume_reading()

    def read_kept(self) -> None:
        self._has_turn = False
        if self._state is _IDLE or self._state is State.UNWANTED:
            self.flow.resume_reading()
            self._read(b"")

    def _discard(self, piece: bytes) -> None:
        self._discarded += len(piece)
        if self._discarded > MOST_DISCARDED:
            self._event(ConnectionEvent.HOPELESS)

    def _end_after_answer(self, _: bytes) -> None:
        if self._exchange is not None:
            self._exchange.keep_alive = False

    def _refuse(self, _: bytes) -> None:
        self._send_problem()
        self._shut(b"")

    def _refuse_and_close(self, _: bytes) -> None:
        self._send_problem()
        self._close(b"")

    def _send_problem(self) -> None:
        started = False
        if self._exchange is not None:
            started = self._exchange.started
            self._drop(b"")
        if not started:
            self.send(answers.problem(self._fault), keep_alive=False)

    def _shut(self, _: bytes) -> None:
        self._drop(b"")
        self._stop_reading()
        self.flow.resume_reading()
        if self.caller_finished:
            self._transport.close()
        elif not self._transport.is_closing():
            self._transport.write_eof()

    def _close(self, _: bytes) -> None:
        self._stop_reading()
        self._transport.close()

    def _abort(self, _: bytes) -> None:
        self._stop_reading()
        self._transport.abort()

    def _drop(self, _: bytes) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.drop()
        self._unsent = None

    def _give_up(self, _: bytes) -> None:
        log.error("a connection lost count of its requests and answers")
        self._transport.abort()


_ACTIONS: dict[Do, Callable[[Connection, bytes], None]] = {
    do: getattr(Connection, f"_{do.name.lower()}") for do in Do if do is not Do.NOTHING
}
"""The method of each action has its name."""


# The same table for quick reading: rows and columns by number, actions at hand.
_STEPS = tuple(
    tuple(
        (step.state, _ACTIONS.get(step.do), step.restart)
        for step in (TABLE[state][event] for event in ConnectionEvent)
    )
    for state in State
)


def make_place(connections: list[Connection], number: int, now: float) -> None:
    for place in give_up([connection.standing(now) for connection in connections], number, now):
        connections[place].crowd_out()
