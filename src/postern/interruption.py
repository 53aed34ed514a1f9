"""Ends the program at Ctrl-C while modules are loaded, which takes most of a second."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ends_at_once() -> Iterator[None]:
    """Ends the process at once, since nothing has to be put in order yet. As an exception, Ctrl-C would be lost
    in what a library runs while it is loaded, or come out of it as another error."""
    usual = signal.default_int_handler
    alone = threading.current_thread() is threading.main_thread()
    if not alone or signal.getsignal(signal.SIGINT) is not usual:
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"Interrupted.\n")
    if number != signal.SIGINT:  # supervisors ask what has ended it
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(130)
