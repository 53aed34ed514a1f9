"""A wire that can be cut, for engines that are too slow to stop and start for one test."""

import asyncio

from support.listening import listen_no_more


class Relay:
    """Listens on ``port`` and passes everything on to ``target``, until it is cut."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self._listener: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        self._listener = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        if self._listener is not None:
            await listen_no_more(self._listener)
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.gather(*self._tasks)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        task = asyncio.create_task(self._pass_on(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = None
        try:
            there_reader, there = await asyncio.open_connection("127.0.0.1", self.target)
            if not writer.transport.is_closing():
                self._writers.add(there)
                await asyncio.gather(self._pump(reader, there), self._pump(there_reader, writer))
        except OSError:
            pass
        finally:
            for one in filter(None, (writer, there)):
                one.close()
                self._writers.discard(one)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            sink.close()
