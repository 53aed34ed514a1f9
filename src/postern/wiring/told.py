"""A command tells the gateway that serves the same data on this machine that it has changed something. The gateway looks
by itself as well, but a caller may come sooner."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NAME = "changed.sock"


def tell(data_dir: Path) -> None:
    """Where nobody serves, nobody hears it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to, suppress(OSError):
        to.setblocking(False)
        to.sendto(b"", str(data_dir / NAME))


@contextmanager
def told(data_dir: Path, on_change: Callable[[], None]) -> Iterator[None]:
    """Where no socket can be had, because the folder's name is too long for one, it is left at looking."""
    loop, place = asyncio.get_running_loop(), data_dir / NAME
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as hears:
        hears.setblocking(False)

        def heard() -> None:
            with suppress(BlockingIOError):
                while True:
                    hears.recv(1)
                    on_change()

        with suppress(OSError):
            place.unlink(missing_ok=True)  # of a process that was killed; whoever serves holds the folder
            hears.bind(str(place))
            place.chmod(0o600)
        loop.add_reader(hears, heard)
        try:
            yield
        finally:
            loop.remove_reader(hears)
            with suppress(OSError):
                place.unlink(missing_ok=True)
