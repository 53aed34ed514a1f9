"""One connection: bytes in, exchanges made of them, answers out. What it may do when is in `states.py`.

Calls at webhooks are answered without ASGI (`call_exchange.py`), everything else by the application
(`app_exchange.py`). uvicorn's server is around it, which leaves to a proxy in front what a public address needs:
limits on heads, time and bytes, and answers that arrive although the caller is still sending.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE
from uvicorn.protocols.utils import get_local_addr, get_remote_addr
from uvicorn.server import ServerState

from postern.core import answer as answers
from postern.core.address import limit_key
from postern.core.answer import Answer
from postern.observe.logs import Log
from postern.surfaces.http.crowding import AT_ONCE, Progress, Standing, give_up
from postern.surfaces.http.exchange import Exchange, Line
from postern.surfaces.http.reader import Request, RequestReader
from postern.surfaces.http.states import LONGEST, TABLE, Do, Event, State, Wait
from postern.usecases.calls.intake import PREFIX

IDLE_SECONDS = 75
MOST_QUEUED = 64 * 1024 * 1024
"""Bytes of bodies that came before their turn, on all connections together."""

MOST_DISCARDED = 64 * 1024 * 1024
"""Bytes of one request, or of what follows a refusal, that nobody wants."""

log = Log()

# Of what each request needs: Python 3.11 takes ten times as long to find an enum's member as a name.
_ANSWERING, _REFUSING, _LINGERING, _CLOSED = State.ANSWERING, State.REFUSING, State.LINGERING, State.CLOSED
_HEAD_WHOLE, _FINAL_ANSWER = Event.HEAD_WHOLE, Event.FINAL_ANSWER
_NONE_OWED, _ONE_OWED, _SEVERAL_OWED = Event.NONE_OWED, Event.ONE_OWED, Event.SEVERAL_OWED

MakeExchange = Callable[[Line, Request], Exchange]

_PROGRESS = {
    State.HEAD: Progress.HEAD,
    State.BODY: Progress.BODY,
    State.UNWANTED: Progress.BODY,
    State.ANSWERING: Progress.ANSWERING,
    State.NEXT_HEAD: Progress.ANSWERING,
    State.NEXT_BODY: Progress.ANSWERING,
    State.REFUSING: Progress.ANSWERING,
}


@dataclass
class Connections:
    """What all of them share."""

    for_calls: MakeExchange
    for_the_app: MakeExchange
    most: int
    queued: int = field(default=0, init=False)


class Connection(asyncio.Protocol):
    __slots__ = (
        *("__weakref__", "_discarded", "_fault", "_loop", "_owed", "_queued", "_reader", "caller_finished"),
        *("_server_state", "_shared", "_since", "_state", "_stuck_since", "_transport", "_unsent"),
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
        self._owed: deque[Exchange] = deque()
        """Exchanges whose answers have not gone out, the oldest first. Only that one has begun; the last is the
        one whose body is coming in, if one is."""
        self._queued = 0
        self.caller_finished = False
        self._unsent: tuple[Any, Answer] | None = None
        """An answer that waits until the caller has taken what was sent before."""
        self._stuck_since: float | None = None
        self._fault = "malformed_request"
        """Why the caller is refused, once it is."""
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
            make_place(list(connections), max(1, self._shared.most // AT_ONCE), self._loop.time())

    def connection_lost(self, exc: Exception | None) -> None:
        self._server_state.connections.discard(self)
        self._event(Event.LOST)
        self.flow.resume_writing()
        if self._reader is not None:
            self._reader.close()
        self._reader = self._transport = None

    def data_received(self, data: bytes) -> None:
        if self._state is _LINGERING:
            self._discard(data)
        elif self._reader is not None and self._state is not _REFUSING and self._state is not _CLOSED:
            fault = self._reader.read(data)
            if fault is not None:
                self._fault = fault
                self._event(Event.INVALID)

    def eof_received(self) -> bool:
        """Whether the transport stays open."""
        self.caller_finished = True
        listens = all(exchange.listens_on for exchange in self._owed)
        self._event(Event.CALLER_FINISHED if listens or self._state is not _ANSWERING else Event.LEFT)
        return self._state is not _CLOSED

    def pause_writing(self) -> None:
        self.flow.pause_writing()

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        if self._unsent is not None:
            (exchange, answer), self._unsent = self._unsent, None
            exchange.answer(answer)

    def _on_head(self, head: Request) -> None:
        if self._state is _LINGERING or self._state is _CLOSED:
            return  # a request behind one after whose answer the connection ends
        shared = self._shared
        make = shared.for_calls if head.path.startswith(PREFIX) else shared.for_the_app
        self._owed.append(make(self, head))
        self._discarded = 0
        self._event(_HEAD_WHOLE)

    # What an exchange needs

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

    def send(self, answer: Answer, keep_alive: bool, to_head: bool = False) -> None:
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

    def when_writable(self, exchange: Any, answer: Answer) -> None:
        self._unsent = exchange, answer

    def answered(self, keep_alive: bool) -> None:
        """The oldest exchange is done."""
        self._server_state.total_requests += 1
        owed = self._owed
        owed.popleft()
        if not keep_alive:
            self._event(_FINAL_ANSWER)
        elif not owed:
            self._event(_NONE_OWED)
        else:
            self._event(_ONE_OWED if len(owed) == 1 else _SEVERAL_OWED)

    # Called by the server

    def shutdown(self) -> None:
        self._event(Event.ENDING)

    def look(self, now: float, patience: float) -> None:
        """Asked about once a second: who owes the rest of a request, who does not take an answer, who does
        not hang up."""
        self._stuck_since = (self._stuck_since or now) if self.flow.write_paused else None
        if self._stuck_since is not None and now - self._stuck_since > patience:
            self._event(Event.HOPELESS)
            return
        wait = LONGEST.get(self._state)
        if wait is not None and now - self._since > (patience if wait is Wait.REQUEST else IDLE_SECONDS):
            self._fault = "request_timeout"
            self._event(Event.OVERDUE)

    def standing(self) -> Standing:
        caller = limit_key(self.client[0]) if self.client else ""
        since = 0.0 if self._state in (_LINGERING, _CLOSED) else self._since
        return Standing(_PROGRESS.get(self._state, Progress.IDLE), since, caller)

    def crowd_out(self) -> None:
        self._fault = "temporarily_unavailable"
        self._event(Event.CROWDED_OUT)

    # Done as the table has it

    def _event(self, event: Event, piece: bytes = b"") -> None:
        self._state, do, restart = _STEPS[self._state][event]
        if restart:
            self._since = self._loop.time()
        if do is not None:
            do(self, piece)

    def _begin(self, _: bytes) -> None:
        self._owed[-1].begin()

    def _queue(self, _: bytes) -> None:
        self.flow.pause_reading()

    def _hand_on(self, piece: bytes) -> None:
        if not self._owed[-1].take(piece):
            self._discard(piece)

    def _queue_piece(self, piece: bytes) -> None:
        self._hand_on(piece)
        self._queued += len(piece)
        self._shared.queued += len(piece)
        if self._shared.queued > MOST_QUEUED:
            self._event(Event.HOPELESS)

    def _finish(self, _: bytes) -> None:
        self._owed[-1].finish()

    def _read_on(self, _: bytes) -> None:
        if self.flow.read_paused:
            self.flow.resume_reading()

    def _begin_next(self, _: bytes) -> None:
        self.flow.resume_reading()
        # Not from here: as many as a packet holds would each begin inside the last one's answer.
        self._loop.call_soon(self._begin_oldest)

    def _begin_oldest(self) -> None:
        if self._owed:
            if len(self._owed) == 1:
                self._let_go_of_queued()
            self._owed[0].begin()

    def _discard(self, piece: bytes) -> None:
        self._discarded += len(piece)
        if self._discarded > MOST_DISCARDED:
            self._event(Event.HOPELESS)

    def _end_after_newest(self, _: bytes) -> None:
        self._owed[-1].keep_alive = False

    def _drop_newest(self, _: bytes) -> None:
        self._owed.pop().drop()

    def _refuse(self, _: bytes) -> None:
        self._send_problem()
        self._shut(b"")

    def _refuse_and_close(self, _: bytes) -> None:
        self._send_problem()
        self._transport.close()

    def _send_problem(self) -> None:
        started = False
        if self._owed:
            started = self._owed[-1].started
            self._drop_newest(b"")
        if not started:
            self.send(answers.problem(self._fault), keep_alive=False)

    def _shut(self, _: bytes) -> None:
        self._drop_all(b"")
        self.flow.resume_reading()
        if self.caller_finished:
            self._transport.close()
        elif not self._transport.is_closing():
            self._transport.write_eof()

    def _close(self, _: bytes) -> None:
        self._transport.close()

    def _abort(self, _: bytes) -> None:
        self._transport.abort()

    def _drop_all(self, _: bytes) -> None:
        while self._owed:
            self._owed.popleft().drop()
        self._unsent = None
        self._let_go_of_queued()

    def _give_up(self, _: bytes) -> None:
        log.error("a connection lost count of its requests and answers")
        self._transport.abort()

    def _let_go_of_queued(self) -> None:
        self._shared.queued -= self._queued
        self._queued = 0


_ACTIONS: dict[Do, Callable[[Connection, bytes], None]] = {
    Do.BEGIN: Connection._begin,
    Do.QUEUE: Connection._queue,
    Do.HAND_ON: Connection._hand_on,
    Do.QUEUE_PIECE: Connection._queue_piece,
    Do.FINISH: Connection._finish,
    Do.READ_ON: Connection._read_on,
    Do.BEGIN_NEXT: Connection._begin_next,
    Do.DISCARD: Connection._discard,
    Do.END_AFTER_NEWEST: Connection._end_after_newest,
    Do.DROP_NEWEST: Connection._drop_newest,
    Do.REFUSE: Connection._refuse,
    Do.REFUSE_AND_CLOSE: Connection._refuse_and_close,
    Do.SHUT: Connection._shut,
    Do.CLOSE: Connection._close,
    Do.ABORT: Connection._abort,
    Do.DROP_ALL: Connection._drop_all,
    Do.GIVE_UP: Connection._give_up,
}


# The same table for quick reading: rows and columns by number, actions at hand.
_STEPS = tuple(
    tuple(
        (step.state, _ACTIONS.get(step.do), step.restart) for step in (TABLE[state][event] for event in Event)
    )
    for state in State
)


def make_place(connections: list[Connection], number: int, now: float) -> None:
    for place in give_up([one.standing() for one in connections], number, now):
        connections[place].crowd_out()
