"""`postern` and `python -m postern`."""

import sys


def main() -> None:
    try:
        from postern.wiring.command import cli  # half a second, in which somebody may press Ctrl-C

        cli()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
