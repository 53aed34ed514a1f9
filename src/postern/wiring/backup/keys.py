"""The keys that encrypt the secrets in a database: which are there, which a backup has, and how they are sealed."""

import os
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from postern.settings import Settings
from postern.stores.secrets.vault import Vault, key_from_file
from postern.surfaces.cli.gateway.machine import Manifest
from postern.wiring.backup.contents import KEYS, SEALED_KEYS, BackupFailed

_BOUND_TO = b"postern backup keys v1"


def keys_in_force(settings: Settings) -> list[str]:
    if settings.secret_keys:
        return settings.secret_keys
    file = settings.data_dir / "secret.key"
    return [key_from_file(file)] if file.exists() else []


def keys_of_backup(file: Path, files: dict[str, bytes], passphrase: str | None) -> str | None:
    keys = files.get(KEYS)
    if SEALED_KEYS in files:
        if passphrase is None:
            raise BackupFailed("the keys in this backup are sealed: give their passphrase with --passphrase")
        keys = _unsealed(files[SEALED_KEYS], passphrase)
    try:
        return keys.decode().strip() or None if keys is not None else None
    except UnicodeDecodeError:
        raise BackupFailed(f"{file} is damaged: the keys in it are not text") from None


def _as_list(keys: str) -> list[str]:
    return [key for part in keys.split(",") if (key := part.strip())]


def has_one_of(keys: list[str], manifest: Manifest) -> bool:
    """Makes the same check as the opening of a database."""
    needed = set(manifest.key_fingerprints)
    return not needed or bool(keys and Vault(keys).fingerprints & needed)


def other_keys(whose: str, which: str, keys: list[str], manifest: Manifest, when: str) -> BackupFailed:
    needed, there = sorted(manifest.key_fingerprints), sorted(Vault(keys).fingerprints) if keys else ["none"]
    return BackupFailed(
        f"the secrets in this {whose} are encrypted with the key {' or '.join(needed)}, and the keys {which} are "
        f"{', '.join(there)}: set POSTERN_SECRET_KEYS as it {when}"
    )


def where_keys_go(
    settings: Settings, given: str | None, manifest: Manifest, replace: bool
) -> tuple[Path | None, bool]:
    """The file for the backup's keys, if they go into one; whether keys are missing."""
    own = keys_in_force(settings)
    generated = settings.data_dir / "secret.key"
    when = "was when the backup was made"
    if own and has_one_of(own, manifest):
        return None, False
    if own and (given is None or settings.secret_keys):
        raise other_keys("backup", "given here", own, manifest, when)
    if own and not replace:
        raise BackupFailed(f"There is another key in {generated}; --replace moves it aside")
    if given is None:
        return None, bool(manifest.key_fingerprints)
    if not has_one_of(_as_list(given), manifest):
        raise other_keys("backup", "in it", _as_list(given), manifest, when)
    # The program reads a single key from secret.key; several are a setting.
    return (settings.data_dir / "secret-keys" if "," in given else generated), False


def sealed_with(keys: bytes, passphrase: str) -> bytes:
    salt, nonce = os.urandom(16), os.urandom(12)
    return salt + nonce + AESGCM(_stretched(passphrase, salt)).encrypt(nonce, keys, _BOUND_TO)


def _unsealed(sealed: bytes, passphrase: str) -> bytes:
    try:
        cipher = AESGCM(_stretched(passphrase, sealed[:16]))
        return cipher.decrypt(sealed[16:28], sealed[28:], _BOUND_TO)
    except (InvalidTag, ValueError):
        raise BackupFailed(
            "this is not the passphrase with which the keys in the backup were sealed"
        ) from None


def _stretched(passphrase: str, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, n=2**16, r=8, p=1).derive(passphrase.encode())
