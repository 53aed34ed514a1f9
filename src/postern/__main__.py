"""`postern` and `python -m postern`."""

from postern.wiring.command import cli


def main() -> None:
    cli()


if __name__ == "__main__":
    main()
