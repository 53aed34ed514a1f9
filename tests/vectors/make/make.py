"""Makes vectors again: ``tests/vectors/*.json``. Without names, all of them."""

import argparse
import json
from pathlib import Path
from typing import Any

import own
import sdks
from customs import custom
from generic import generic
from kinds import vectors
from senders import SENDERS

HERE = Path(__file__).parent

MAKERS = {sender.name: lambda sender=sender: vectors(sender) + own.vectors(sender) for sender in SENDERS} | {
    "generic": generic,
    "custom": custom,
}


def write(folder: Path, name: str, made: list[dict[str, Any]]) -> None:
    names = [one["name"] for one in made]
    assert len(names) == len(set(names)), [text for text in names if names.count(text) > 1]
    text = json.dumps({"provider": name, "vectors": made}, indent=1, ensure_ascii=False)
    (folder / f"{name}.json").write_text(text + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(MAKERS))
    parser.add_argument("--into", type=Path, default=HERE.parent, help="another folder than tests/vectors")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(MAKERS):
        parser.error(f"not in senders.py: {', '.join(sorted(unknown))}")
    total = 0
    for name in asked.names or MAKERS:
        made = MAKERS[name]()
        write(asked.into, name, made)
        total += len(made)
    sdks.NODE.close()
    print(f"{total} vectors")


if __name__ == "__main__":
    main()
