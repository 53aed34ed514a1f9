"""`python -m bench.flood [calls]`: a million rejected calls. How many rows and bytes lie there meanwhile, and
is what was accepted intact?"""

import sqlite3
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

from bench.rooms import Program, called, flood, free_port, keep, made, table

TOKEN = "whk_0123456789abcdef0123456789abcdef"
ACCEPTED = 1_000
BODY = b"x" * 1_200
LOOK_EVERY = 2.0


class Watch:
    """Rows and bytes, every so often, while the flood comes."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.began = time.perf_counter()
        self.seen: list[tuple[float, int, float, float]] = []
        self._thread.start()

    def look(self) -> tuple[float, int, float, float]:
        with closing(
            sqlite3.connect(f"file:{self._data_dir / 'postern.db'}?mode=ro", uri=True, timeout=30)
        ) as database:
            rows = database.execute(
                "SELECT count(*) FROM invocations WHERE outcome = 'rejected' AND outcome <> 'accepted'"
            ).fetchone()[0]
        sizes = [self._megabytes(name) for name in ("postern.db", "postern.db-wal")]
        return time.perf_counter() - self.began, rows, sizes[0], sizes[1]

    def _megabytes(self, name: str) -> float:
        file = self._data_dir / name
        return file.stat().st_size / 1e6 if file.exists() else 0.0

    def _look(self) -> None:
        while not self._over.wait(LOOK_EVERY):
            self.seen.append(self.look())

    def end(self) -> None:
        self._over.set()
        self._thread.join()


def accepted_in(data_dir: Path) -> set[tuple[str, bytes]]:
    with closing(sqlite3.connect(data_dir / "postern.db", timeout=30)) as database:
        return set(database.execute("SELECT id, body FROM invocations WHERE outcome = 'accepted'"))


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        given = {"POSTERN_ENGINE": "none", "POSTERN_LOG": "off", "POSTERN_PORT": str(free_port())}
        program = Program(Path(folder), given)
        try:
            program.wait_until_ready()
            limits = {"callsPerSecond": 100_000, "burst": 100_000}
            webhook = made(program, authentication={"method": "token", "token": TOKEN}, rateLimit=limits)
            called(webhook["url"], [b'{"n": 1}'] * ACCEPTED, ("X-Api-Key", TOKEN), at_once=32)
            before = accepted_in(program.data_dir)
            watch = Watch(program.data_dir)
            statuses = flood(webhook["url"], count, BODY, ("X-Api-Key", "guessed"))
            took = time.perf_counter() - watch.began
            watch.end()
            end = time.monotonic() + 60
            while (last := watch.look())[1] > 30_000 and time.monotonic() < end:
                time.sleep(0.5)
            intact = accepted_in(program.data_dir) == before and len(before) == ACCEPTED
        finally:
            program.kill()
    step = max(1, len(watch.seen) // 12)
    shown = [*watch.seen[::step], last]
    rows = [[f"{at:.0f}", f"{number:,}", f"{main:.1f}", f"{log:.1f}"] for at, number, main, log in shown]
    most = max(watch.seen, key=lambda one: one[1], default=last)
    text = "\n\n".join(
        [
            f"{count:,} rejected calls of {len(BODY):,} bytes in {took:.0f} s ({count / took:,.0f} a second; "
            f"answered {', '.join(f'{number:,} with {status}' for status, number in sorted(statuses.items()))}), the caller on the same cores.",
            f"Beside {ACCEPTED:,} accepted calls, which are {'all there, byte for byte' if intact else 'DAMAGED'}. "
            f"Most rejected rows at once: {most[1]:,}.",
            table(["second", "rejected rows", "database, MB", "its log, MB"], rows),
        ]
    )
    keep("A flood of rejected calls", "SQLite.", text)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
