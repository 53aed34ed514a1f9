"""The gateway's end of the socket: many questions at once, each answered when its reply comes."""

import asyncio
import json
import socket
import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import msgspec
import structlog

from postern.core.answer import InvalidResponse
from postern.core.deliveries.delivery import End, EngineRejected, EngineUnavailable
from postern.core.history.invocation import StoreUnavailable
from postern.engines.embedded import frames

log = structlog.get_logger("postern.engine")

TakeAnswer = Callable[[str, Any, Any, Any], Awaitable[bool]]
"""Key, status, headers, body of a workflow's answer: True when it is recorded as the first one."""


OnEnd = Callable[[str, End], None]
"""The delivery's key, and how all its runs ended."""


async def nobody_waits(key: str, status: Any, headers: Any, body: Any) -> bool:
    return False


class Link:
    """One conversation with one engine process. When it breaks off, everybody who waits hears
    *unavailable*."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Future[frames.Done]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self.broken = False
        self.last_heard = time.monotonic()

    @classmethod
    async def over(cls, channel: socket.socket) -> "Link":
        return cls(*await asyncio.open_connection(sock=channel, limit=1 << 20))

    async def ask(
        self, question: Callable[[int], frames.FromGateway], patience: float | None = None
    ) -> frames.Done:
        """Send ``question(id)`` and wait for its reply. Giving up on the reply is not undoing the
        question."""
        id = next(self._ids)
        frame = frames.encode(question(id))
        if len(frame) > frames.LARGEST:
            raise EngineRejected("the payload is larger than the embedded engine takes")
        if self.broken:
            raise EngineUnavailable("the engine process has ended", 1.0)
        reply = self._waiting[id] = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(frame)
            async with asyncio.timeout(patience):
                await self._writer.drain()
                done: frames.Done = await reply
        except TimeoutError:
            raise EngineUnavailable(
                f"the engine process did not answer within {patience:g} seconds", 5.0
            ) from None
        except OSError:
            raise EngineUnavailable("the engine process has ended", 1.0) from None
        finally:
            self._waiting.pop(id, None)
        if done.failed:
            raise EngineUnavailable(f"the engine could not do it: {done.failed}", 5.0)
        return done

    def send(self, frame: frames.FromGateway) -> None:
        if not self.broken:
            self._writer.write(frames.encode(frame))

    async def listen(
        self,
        take_answer: TakeAnswer,
        on_end: OnEnd,
        ready: Callable[[frames.Ready], None],
        trouble: Callable[[str], None],
    ) -> None:
        """Hand out what the engine sends until the other end is gone."""
        try:
            while True:
                head = await self._reader.readexactly(frames.LENGTH.size)
                frame = frames.from_engine(await self._reader.readexactly(*frames.LENGTH.unpack(head)))
                self.last_heard = time.monotonic()
                match frame:
                    case frames.Done(id):
                        if (waiting := self._waiting.get(id)) is not None and not waiting.done():
                            waiting.set_result(frame)
                    case frames.Answer():
                        task = asyncio.create_task(self._answer(frame, take_answer))
                        self._answering.add(task)
                        task.add_done_callback(self._answering.discard)
                    case frames.RunsEnded(key, end):
                        on_end(key, end)
                    case frames.Ready():
                        ready(frame)
                    case frames.Trouble(detail):
                        trouble(detail)
        except asyncio.IncompleteReadError:
            pass
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("the engine process cannot be understood any more", error=str(error))
        finally:
            self.broken = True
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(EngineUnavailable("the engine process has ended", 1.0))
            self._writer.close()

    async def _answer(self, frame: frames.Answer, take_answer: TakeAnswer) -> None:
        reply = frames.Answered(frame.id)
        try:
            document = json.loads(frame.document)
            reply.taken = await take_answer(
                frame.key, document["status"], document["headers"], document["body"]
            )
        except InvalidResponse as invalid:
            reply.refused = str(invalid)
        except StoreUnavailable:
            reply.again = True
        except Exception as error:
            log.exception("a workflow's answer could not be taken")
            reply.refused = f"internal: {type(error).__name__}"
        self.send(reply)
