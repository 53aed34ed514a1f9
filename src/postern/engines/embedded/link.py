"""The gateway's end of the socket: many questions at once, each answered when its reply comes."""

import asyncio
import json
import socket
import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import msgspec

from postern.core.answer import InvalidResponse
from postern.core.deliveries.delivery import End, EngineRejected, EngineUnavailable
from postern.core.history.invocation import StoreUnavailable
from postern.engines.embedded import frames
from postern.observe.logs import log

LARGE = 16 * 1024
"""A frame of more bytes is not kept until others come."""

TakeAnswer = Callable[[str, Any, Any, Any], Awaitable[bool]]
"""Key, status, headers, body of a workflow's answer: True when it is recorded as the first one."""


OnEnd = Callable[[str, End], None]
"""The delivery's key, and how all its runs ended."""


async def nobody_waits(key: str, status: Any, headers: Any, body: Any) -> bool:
    return False


def _no_answer(patience: float) -> EngineUnavailable:
    return EngineUnavailable(f"the engine process did not answer within {patience:g} seconds", 5.0)


def _give_up(reply: "asyncio.Future[frames.Done]", patience: float) -> None:
    if not reply.done():
        reply.set_exception(_no_answer(patience))


class Link(asyncio.Protocol):
    """One conversation with one engine process. When it breaks off, everybody who waits hears
    *unavailable*."""

    def __init__(
        self,
        take_answer: TakeAnswer = nobody_waits,
        on_end: OnEnd = lambda _, __: None,
        ready: Callable[[frames.Ready], None] = lambda _: None,
        trouble: Callable[[str], None] = lambda _: None,
        run_over: Callable[[str, str, str, str, str], None] = lambda *_: None,
    ) -> None:
        self._take_answer = take_answer
        self._on_end = on_end
        self._ready = ready
        self._trouble = trouble
        self._run_over = run_over
        self._ids = count(1)
        self._received = bytearray()
        self._waiting: dict[int, asyncio.Future[frames.Done]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._gathered: list[bytes] = []
        """Frames to be sent at the end of the event loop's round."""
        self._loop = asyncio.get_running_loop()
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: asyncio.Transport
        self.over: asyncio.Future[None] = self._loop.create_future()
        """Done when the other end is gone."""
        self.broken = False
        self.last_heard = time.monotonic()

    async def connect(self, channel: socket.socket) -> None:
        await asyncio.get_running_loop().create_connection(lambda: self, sock=channel)

    async def ask(self, question: Callable[[int], frames.FromGateway], patience: float) -> frames.Done:
        """Send ``question(id)`` and wait for its reply. Giving up on the reply is not undoing the
        question."""
        id = next(self._ids)
        frame = frames.encode(question(id))
        if len(frame) > frames.LARGEST:
            raise EngineRejected("the payload is larger than the embedded engine takes")
        if self.broken:
            raise EngineUnavailable("the engine process has ended", 1.0)
        reply: asyncio.Future[frames.Done] = self._loop.create_future()
        self._waiting[id] = reply
        giving_up = None
        try:
            self._write(frame)
            if not self._writable.is_set():
                async with asyncio.timeout(patience):
                    await self._writable.wait()
            # Not `asyncio.timeout`: this is asked for every call, and that costs three times as much.
            giving_up = self._loop.call_later(patience, _give_up, reply, patience)
            done = await reply
        except TimeoutError:
            raise _no_answer(patience) from None
        finally:
            if giving_up is not None:
                giving_up.cancel()
            self._waiting.pop(id, None)
        if done.failed:
            raise EngineUnavailable(f"the engine could not do it: {done.failed}", 5.0)
        return done

    def send(self, frame: frames.FromGateway) -> None:
        if not self.broken:
            self._write(frames.encode(frame))

    def _write(self, frame: bytes) -> None:
        """Starts and replies come as many together as shared a commit, and the transport makes a system call of each
        write."""
        if not self._gathered:
            self._loop.call_soon(self._write_gathered)
        self._gathered.append(frame)
        if len(frame) > LARGE:
            self._write_gathered()  # whoever asks next is to know whether there is room

    def _write_gathered(self) -> None:
        gathered, self._gathered = self._gathered, []
        if gathered and not self.broken:
            self._transport.write(b"".join(gathered))

    # Called by the event loop

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self.last_heard = time.monotonic()
        received = self._received
        received += data
        start = 0
        try:
            while len(received) - start >= frames.LENGTH.size:
                end = start + frames.LENGTH.size + frames.LENGTH.unpack_from(received, start)[0]
                if len(received) < end:
                    break
                frame = frames.from_engine(bytes(received[start + frames.LENGTH.size : end]))
                start = end
                self._on_frame(frame)
        except msgspec.MsgspecError as error:
            log.warning("the engine process cannot be understood any more", error=str(error))
            self._transport.abort()
        del received[:start]

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.broken = True
        self._writable.set()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(EngineUnavailable("the engine process has ended", 1.0))
        if not self.over.done():
            self.over.set_result(None)

    def _on_frame(self, frame: frames.FromEngine) -> None:
        match frame:
            case frames.Done(id):
                if (waiting := self._waiting.get(id)) is not None and not waiting.done():
                    waiting.set_result(frame)
            case frames.AnswerFrame():
                answering = self._loop.create_task(self._answer(frame))
                self._answering.add(answering)
                answering.add_done_callback(self._answering.discard)
            case frames.RunsEndedFrame(key, end):
                self._on_end(key, end)
            case frames.RunOver():
                self._run_over(frame.key, frame.workflow, frame.error, frame.place, frame.line)
            case frames.Ready():
                self._ready(frame)
            case frames.Trouble(detail):
                self._trouble(detail)
            case frames.Beat():
                pass  # that it came is enough

    async def _answer(self, frame: frames.AnswerFrame) -> None:
        reply = frames.AnsweredFrame(frame.id)
        try:
            document = json.loads(frame.document)
            reply.taken = await self._take_answer(
                frame.key, document["status"], document["headers"], document["body"]
            )
        except InvalidResponse as error:
            reply.refused = str(error)
        except StoreUnavailable:
            reply.again = True
        except Exception as error:
            log.exception("a workflow's answer could not be taken")
            reply.refused = f"internal: {type(error).__name__}"
        self.send(reply)
