"""Which runs are working now, where the next process finds it if this one dies: a few bytes of shared memory in
a file, for a commit would cost every run as much as a step does."""

import mmap
import os
import struct
import time
from pathlib import Path

_PLACE = struct.Struct("<Qd")


class AtWork:
    def __init__(self, file: Path, places: int) -> None:
        size = places * _PLACE.size
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            there = os.read(descriptor, 1 << 20)
            whole = there[: len(there) // _PLACE.size * _PLACE.size]
            self.left_behind = [
                seq for seq, _ in sorted(_PLACE.iter_unpack(whole), key=lambda at: at[1]) if seq
            ]
            """The runs that an earlier process was working on when it died, the last to begin at the end."""
            # Written, not only made longer: a full disk would otherwise show itself by killing the process.
            os.write(descriptor, bytes(max(0, size - len(there))))
            self._memory = mmap.mmap(descriptor, max(size, len(there)))
        finally:
            os.close(descriptor)

    def clear(self) -> None:
        self._memory[:] = bytes(len(self._memory))

    def begins(self, place: int, seq: int) -> None:
        _PLACE.pack_into(self._memory, place * _PLACE.size, seq, time.time())

    def ends(self, place: int) -> None:
        _PLACE.pack_into(self._memory, place * _PLACE.size, 0, 0.0)
