"""A call at a webhook and its answer, without ASGI in between.

Measured: answering so costs a third of what the ASGI interface costs, which was more than judging and storing
the call.
"""

from postern.core import answer as answers
from postern.core.answer import CallerAnswer
from postern.observe.logs import log
from postern.surfaces.http.connection import Connection
from postern.surfaces.http.reader import Request
from postern.usecases.calls.intake import IncomingCall, Intake
from postern.usecases.calls.receive import CallerState

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class CallExchange:
    __slots__ = ("_asks_first", "_incoming", "_line", "_request", "_to_head", "keep_alive", "started")

    listens_on = True
    makes: type[IncomingCall] = IncomingCall

    def __init__(self, intake: Intake, line: Connection, request: Request) -> None:
        self._line: Connection | None = line
        self._request: Request | None = request
        """Kept until the call is judged: headers are the largest part of a call, and nobody asks for them again."""
        self._asks_first = request.asks_first
        self._to_head = request.method == b"HEAD"
        self._incoming: IncomingCall | None = self.makes(intake, self.answer)
        self.started = False
        self.keep_alive = request.keep_alive

    def begin(self) -> None:
        incoming, line, request = self._incoming, self._line, self._request
        if incoming is None or line is None or request is None:
            return
        self._request = None
        client = line.client
        try:
            incoming.head(
                request.method.decode("ascii"),
                request.path,
                request.query,
                request.headers,
                peer=client[0] if client else None,
                by_name=request.by_name,
            )
        except Exception:
            self._failed()
        if self._asks_first and not incoming.settled:
            line.write(CONTINUE)

    def take(self, piece: bytes) -> bool:
        incoming = self._incoming
        if incoming is None or incoming.settled:
            return False
        try:
            return incoming.piece(piece)
        except Exception:
            self._failed()
            return False

    def finish(self) -> None:
        incoming = self._incoming
        if incoming is None or incoming.settled:
            return
        try:
            incoming.end()
        except Exception:
            self._failed()

    def drop(self) -> None:
        if self._incoming is not None:
            self._incoming.drop()
        self._incoming = self._line = None

    def answer(self, answer: CallerAnswer) -> CallerState:
        line, incoming = self._line, self._incoming
        if line is None or incoming is None:
            return "gone"
        if line.flow.write_paused:
            line.when_writable(self, answer)
            return "there"
        if incoming.unread and self._asks_first:
            # A caller that asked before sending its body may send it or not after a rejection: only a closed
            # connection is unambiguous.
            self.keep_alive = False
        # `incoming` leads back to this exchange: a cycle, which the garbage collector would free late. The writer
        # may still hold on to whom it has called after its last commit, and the connection must not stay for that.
        self._incoming = self._line = None
        self.started = True
        line.send(answer, self.keep_alive, to_head=self._to_head)
        hung_up = line.caller_finished
        line.answered(self.keep_alive)
        return "hung up" if hung_up else "there"

    def _failed(self) -> None:
        """Something is wrong with us: called while an exception is being handled."""
        log.exception("a call could not be answered")
        incoming = self._incoming
        if incoming is not None:
            incoming.drop()
            self.answer(answers.problem("internal_error"))
