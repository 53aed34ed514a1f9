"""The numbers of all workers from whichever of them is asked: each hands its own to the others on a socket in
their folder.

Every sample carries its worker's number instead of being added up here: a worker that was replaced counts
from zero again, and only whoever watches each series by itself can tell that from a drop.
"""

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PATIENCE = 2.0

_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")


class Siblings:
    def __init__(self, room: Path, number: int, of: int, numbers: Callable[[], str]) -> None:
        self._room = room
        self._number = number
        self._of = of
        self._numbers = numbers

    async def open(self) -> None:
        path = self._path(self._number)
        path.unlink(missing_ok=True)  # of the worker before this one in the same place
        self._server = await asyncio.start_unix_server(self._answer, path)

    async def _answer(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            writer.write(self._numbers().encode())
            await writer.drain()
        writer.close()

    async def all(self) -> str:
        """Everybody's numbers; of one who does not answer in time there are none."""
        others = [number for number in range(self._of) if number != self._number]
        told = await asyncio.gather(*(self._ask(number) for number in others))
        return together({self._number: self._numbers(), **dict(zip(others, told, strict=True))})

    async def _ask(self, number: int) -> str:
        try:
            async with asyncio.timeout(PATIENCE):
                reader, writer = await asyncio.open_unix_connection(self._path(number))
                said = await reader.read()
                writer.close()
                return said.decode()
        except (OSError, TimeoutError):
            return ""

    def _path(self, number: int) -> Path:
        return self._room / f"worker-{number}.sock"


def together(told: dict[int, str]) -> str:
    """One exposition of several: each family once, with everybody's samples under it, named by their
    worker."""
    families: dict[str, list[str]] = {}
    for number, text in sorted(told.items()):
        heading = ""
        fresh = False
        for line in text.splitlines():
            if line.startswith("# HELP"):
                heading = line
                fresh = heading not in families
                families.setdefault(heading, [])
            elif line.startswith("#"):
                if fresh:
                    families[heading].append(line)
            elif sample := _SAMPLE.match(line):
                name, labels, value = sample.groups()
                families.setdefault(heading, []).append(
                    f'{name}{{{labels + "," if labels else ""}worker="{number}"}} {value}'
                )
    return "".join(
        f"{line}\n"
        for heading, lines in families.items()
        for line in ([heading, *lines] if heading else lines)
    )
