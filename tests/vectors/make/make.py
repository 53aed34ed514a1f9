"""Makes vectors again: ``tests/vectors/*.json``. Without names, those of all senders that have a preset."""

import argparse
import json
from pathlib import Path
from typing import Any

import sdks
from certificates import CERTIFICATES, CertificateSender
from kinds import vectors
from senders import SENDERS
from signing import Sender
from tokens import TOKENS, TokenSender

HERE = Path(__file__).parent
BY_NAME = {sender.name: sender for sender in SENDERS} | TOKENS | CERTIFICATES


def write(folder: Path, name: str, made: list[dict[str, Any]]) -> int:
    """What is tried on this sender alone stands in the file already, and stays."""
    names = [one["name"] for one in made]
    assert len(names) == len(set(names)), [text for text in names if names.count(text) > 1]
    before = HERE.parent / f"{name}.json"
    kept = json.loads(before.read_text("utf-8"))["vectors"] if before.exists() else []
    made += [one for one in kept if one["name"] not in names]
    text = json.dumps({"provider": name, "vectors": made}, indent=1, ensure_ascii=False)
    (folder / f"{name}.json").write_text(text + "\n", "utf-8")
    return len(made)


def made_of(sender: Sender | TokenSender | CertificateSender) -> list[dict[str, Any]]:
    return vectors(sender) if isinstance(sender, Sender) else sender.vectors()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(BY_NAME))
    parser.add_argument("--into", type=Path, default=HERE.parent, help="another folder than tests/vectors")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(BY_NAME):
        parser.error(f"no such sender: {', '.join(sorted(unknown))}")
    total = sum(write(asked.into, name, made_of(BY_NAME[name])) for name in asked.names or BY_NAME)
    sdks.NODE.close()
    print(f"{total} vectors")


if __name__ == "__main__":
    main()
