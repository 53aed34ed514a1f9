"""Which runs are working now, where the next process finds it if this one dies: a few bytes of shared memory in
a file, for a commit would cost every run as much as a step does."""

import mmap
import os
import struct
from pathlib import Path

_SEQ = struct.Struct("<Q")


class AtWork:
    def __init__(self, file: Path, places: int) -> None:
        size = places * _SEQ.size
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            there = os.read(descriptor, 1 << 20)
            self.left_behind = {seq for (seq,) in _SEQ.iter_unpack(there[: len(there) // 8 * 8])} - {0}
            """The runs that an earlier process was working on when it died."""
            # Written, not only made longer: a full disk would otherwise show itself by killing the process.
            os.write(descriptor, bytes(max(0, size - len(there))))
            self._memory = mmap.mmap(descriptor, max(size, len(there)))
        finally:
            os.close(descriptor)

    def clear(self) -> None:
        self._memory[:] = bytes(len(self._memory))

    def __setitem__(self, place: int, seq: int) -> None:
        _SEQ.pack_into(self._memory, place * _SEQ.size, seq)
