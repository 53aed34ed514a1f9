"""`postern` and `python -m postern`."""

import sys


def main() -> None:
    try:
        from postern.wiring.command import cli  # some time, in which somebody may press Ctrl-C

        code = cli()
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
