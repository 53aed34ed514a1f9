"""Servers in the tests' own process."""

import asyncio


async def listen_no_more(server: asyncio.Server) -> None:
    """Closes the server when all connections are known. One that is closed while it takes a connection leaves it
    open, and nobody could close it: the garbage collector finds it in a later test, which fails for it."""
    for one in server.sockets:
        asyncio.get_running_loop().remove_reader(one.fileno())
    for _ in range(4):  # as long as it takes one
        await asyncio.sleep(0)
    server.close()
