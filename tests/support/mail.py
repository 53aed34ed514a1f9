"""A mail server for tests, which keeps what it takes."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


@asynccontextmanager
async def mail_server(
    refuses: str = "", tls: ssl.SSLContext | None = None, implicit: bool = False
) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Its port, and the mails that it took. ``refuses``: the command that it answers with 550 and with what it was told. ``tls``:
    it offers STARTTLS, or with ``implicit`` speaks TLS from the start; only over TLS can anybody sign in."""
    taken: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        secure = implicit
        writer.write(b"220 here\r\n")
        with suppress(ConnectionError, ssl.SSLError):
            while line := await reader.readline():
                command = line[:4].decode().strip().upper()
                if refuses and command == refuses:
                    writer.write(b"550 no to " + line)
                elif command == "EHLO" and tls:
                    writer.write(
                        b"250-here\r\n250 AUTH PLAIN\r\n" if secure else b"250-here\r\n250 STARTTLS\r\n"
                    )
                elif command == "STAR" and tls:
                    writer.write(b"220 go on\r\n")
                    await writer.start_tls(tls)
                    secure = True
                elif command == "AUTH":
                    writer.write(b"235 well\r\n" if secure else b"530 not in the clear\r\n")
                elif command == "DATA":
                    writer.write(b"354 go on\r\n")
                    taken.append(await reader.readuntil(b"\r\n.\r\n"))
                    writer.write(b"250 taken\r\n")
                else:
                    writer.write(b"221 bye\r\n" if command == "QUIT" else b"250 well\r\n")
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls if implicit else None)
    async with server:
        yield server.sockets[0].getsockname()[1], taken
