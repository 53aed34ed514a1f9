"""Makes every vector again: ``tests/vectors/*.json``."""

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


def write(name: str, made: list[dict[str, Any]]) -> None:
    names = [one["name"] for one in made]
    assert len(names) == len(set(names)), [text for text in names if names.count(text) > 1]
    text = json.dumps({"provider": name, "vectors": made}, indent=1, ensure_ascii=False)
    (HERE.parent / f"{name}.json").write_text(text + "\n")


def main() -> None:
    total = 0
    for sender in SENDERS:
        made = vectors(sender) + own.vectors(sender)
        write(sender.name, made)
        total += len(made)
    for name, made in (("generic", generic()), ("custom", custom())):
        write(name, made)
        total += len(made)
    sdks.NODE.close()
    print(f"{total} vectors in {len(SENDERS) + 2} files")


if __name__ == "__main__":
    main()
