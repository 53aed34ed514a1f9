"""The gateway's end of the socket: many questions at once, each answered when its reply comes."""

import asyncio
import socket
from collections.abc import Callable
from itertools import count

import structlog

from postern.core.deliveries.delivery import EngineRejected, EngineUnavailable
from postern.engines.embedded import frames

log = structlog.get_logger("postern.engine")


class Link:
    """One conversation with one engine process. When it breaks off, everybody who waits hears
    *unavailable*."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Future[frames.Done]] = {}
        self.broken = False

    @classmethod
    async def over(cls, channel: socket.socket) -> "Link":
        return cls(*await asyncio.open_connection(sock=channel, limit=frames.LARGEST))

    async def ask(
        self, question: Callable[[int], frames.Question], patience: float | None = None
    ) -> frames.Done:
        """Send ``question(id)`` and wait for its reply. Giving up on the reply is not undoing the
        question."""
        id = next(self._ids)
        line = frames.line(question(id))
        if len(line) > frames.LARGEST:
            raise EngineRejected("the payload is larger than the embedded engine takes")
        if self.broken:
            raise EngineUnavailable("the engine process has ended", 1.0)
        reply = self._waiting[id] = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(line)
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

    def tell(self, frame: frames.Question) -> None:
        if not self.broken:
            self._writer.write(frames.line(frame))

    async def listen(self, ready: Callable[[frames.Ready], None]) -> None:
        """Hand out replies until the other end is gone."""
        try:
            while text := await self._reader.readline():
                frame = frames.read_reply(text)
                if isinstance(frame, frames.Ready):
                    ready(frame)
                elif (waiting := self._waiting.get(frame.id)) is not None and not waiting.done():
                    waiting.set_result(frame)
        except (OSError, ValueError) as error:  # ValueError: not a frame, or one beyond the limit
            log.warning("the engine process cannot be understood any more", error=str(error))
        finally:
            self.broken = True
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(EngineUnavailable("the engine process has ended", 1.0))
            self._writer.close()
