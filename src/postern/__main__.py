"""`postern` and `python -m postern`."""

import gc
import sys


def main() -> None:
    # A thousand modules are loaded and none is let go: by Python's own thresholds an eighth of a command would be looking
    # for what can be freed.
    gc.set_threshold(20_000, 20, 100)
    try:
        from postern.wiring.command import cli  # some time, in which somebody may press Ctrl-C

        code = cli()
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
