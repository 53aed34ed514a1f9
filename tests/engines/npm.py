"""Programs from npm."""

from pathlib import Path

from support.kept import kept


def from_npm(package: str, version: str) -> Path:
    """The folder that has it in its ``node_modules``."""
    command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]
    wanted = f"{package}@{version}"
    return kept(f"{package.rpartition('/')[2]}-{version}", lambda fresh: [*command, str(fresh), wanted])
