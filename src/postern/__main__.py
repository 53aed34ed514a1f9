"""`postern` and `python -m postern`."""

import gc
import os
import sys


def main() -> None:
    _open_what_is_closed()
    # A thousand modules are loaded and none is let go: by Python's own thresholds an eighth of a command would be looking
    # for what can be freed.
    gc.set_threshold(20_000, 20, 100)
    try:
        from postern.wiring.command import cli  # some time, in which somebody may press Ctrl-C

        code = cli()
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        code = 130
    # Python looks for what can be freed once more while it ends, in a thousand modules: an eighth of a command.
    gc.freeze()
    sys.exit(code)


def _open_what_is_closed() -> None:
    """After `>&-` the first file that is opened would be the standard output: the database, into which a workflow would
    then print. What is written goes nowhere, as whoever closed it wants."""
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
