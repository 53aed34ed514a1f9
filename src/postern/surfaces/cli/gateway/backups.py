"""What a backup says about itself, and what came of restoring one."""

from postern.usecases.answers import View


class Manifest(View):
    """What a backup says about itself, in its first file."""

    format: int
    version: str
    schema: str
    made_at: str
    key_fingerprints: list[str]
    """Of the keys that encrypt the secrets in the database."""
    rows: dict[str, int]
    """By table."""
    sha256: dict[str, str]
    """By the name of each other file in the backup."""


class Restored(View):
    manifest: Manifest
    moved_aside: list[str]
    keys_file: str | None
    """Where the keys that were in the backup are now."""
    missing_keys: bool
    """Nobody has given the keys that the secrets in it are encrypted with."""
