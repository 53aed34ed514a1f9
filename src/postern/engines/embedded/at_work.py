"""Which runs are working now, where the next process finds it if this one dies: a few bytes of shared memory in
a file, for a commit would cost every run as much as a step does."""

import mmap
import os
import struct
import time
from pathlib import Path

_PLACE = struct.Struct("<Qd")
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class AtWork:
    def __init__(self, file: Path, places: int) -> None:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            boot, there = os.read(descriptor, _PLACE.size), os.read(descriptor, 1 << 20)
            if boot != _this_boot():  # it was the machine that ended the process, and no run
                there = bytes(len(there))
            whole = there[: len(there) // _PLACE.size * _PLACE.size].ljust(places * _PLACE.size, b"\0")
            self.left_behind = [
                seq for seq, _ in sorted(_PLACE.iter_unpack(whole), key=lambda at: at[1]) if seq
            ]
            """The runs that an earlier process was working on when it died, the last to begin at the end."""
            # Written, not only made longer: a full disk would otherwise show itself by killing the process.
            os.pwrite(descriptor, _this_boot() + whole, 0)
            self._memory = mmap.mmap(descriptor, _PLACE.size + len(whole))
        finally:
            os.close(descriptor)

    def clear(self) -> None:
        self._memory[_PLACE.size :] = bytes(len(self._memory) - _PLACE.size)

    def begins(self, place: int, seq: int) -> None:
        _PLACE.pack_into(self._memory, (place + 1) * _PLACE.size, seq, time.time())

    def ends(self, place: int) -> None:
        _PLACE.pack_into(self._memory, (place + 1) * _PLACE.size, 0, 0.0)


def _this_boot() -> bytes:
    """Identifies the machine's boot. It has the size of a place and is stored before all others."""
    try:
        return bytes.fromhex(_BOOT.read_text().strip().replace("-", ""))
    except OSError:  # not on Linux
        return bytes(_PLACE.size)
