"""`postern` and `python -m postern`."""

import codecs
import gc
import io
import os
import signal
import sys
from types import FrameType

_ended_by: list[int] = []
"""Signals that asked for the end before there was a server to end."""


def main() -> None:
    # A thousand modules are loaded and none is let go: by Python's own thresholds an eighth of a command would be looking
    # for what can be freed.
    gc.set_threshold(20_000, 20, 100)
    try:
        _begin_again_in_utf8()
        _open_what_is_closed()
        for signum in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(signum) is signal.SIG_DFL:  # not where `nohup` has it ignored
                signal.signal(signum, _interrupt)
        from postern.interruption import ends_at_once

        with ends_at_once():  # some time, in which somebody may press Ctrl-C
            from postern.wiring.program import cli

        code = cli()
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        code = 130
    # A person who presses Ctrl-C once more has waited long enough, and is told nothing of where Python was.
    for number in (signal.SIGINT, *_ended_by):
        signal.signal(number, signal.SIG_DFL)
    if _ended_by and code == 130:
        os.kill(os.getpid(), _ended_by[0])  # supervisors ask what has ended it
    # Python looks for what can be freed once more while it ends, in a thousand modules: an eighth of a command.
    gc.freeze()
    sys.exit(code)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Makes signals that ask for the end act like Ctrl-C: no half backup stays behind, and a listener says goodbye to its gateway."""
    _ended_by.append(number)
    interrupted = signal.getsignal(signal.SIGINT)
    if callable(interrupted):
        interrupted(number, frame)
    else:  # a shell starts what runs in the background without it
        raise KeyboardInterrupt


def _begin_again_in_utf8() -> None:
    """Files, names of files and what is printed are UTF-8 wherever Postern runs, as they are for Python itself from 3.15 on.
    Where a system says otherwise, only a new start of Python can tell it so; the engine's process and the workers inherit it."""
    import locale  # here, as it takes longer than all others above: a Ctrl-C meanwhile is heard

    encodings = {codecs.lookup(each).name for each in (sys.getfilesystemencoding(), locale.getencoding())}
    if not sys.flags.utf8_mode and encodings != {"utf-8"}:
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    if sys.stdout is not None and sys.stdout.errors == "strict" and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # PYTHONIOENCODING names another one, say


def _open_what_is_closed() -> None:
    """After `>&-` the first file that is opened would be the standard output: the database, into which a workflow would
    then print. Output goes nowhere instead, as intended by closing it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest that is free: this one
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


if __name__ == "__main__":
    main()
