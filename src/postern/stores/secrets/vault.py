"""Secrets at rest: AES-256-GCM, each bound to its row and field, so that ciphertexts cannot change places.

An envelope is ``v1.<fingerprint of the key>.<base64 of nonce and ciphertext>``. Several keys may be known; the first
one encrypts.
"""

import base64
import hashlib
import hmac
import os
import tempfile
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from postern.private_files import sync

VERSION = "v1"
FINGERPRINT_LENGTH = 8


class VaultError(Exception):
    """A secret cannot be opened; the message says what to do and holds nothing secret."""


def envelopes_of(fingerprint: str) -> str:
    """Returns the beginning of each envelope that was made with the key of this fingerprint."""
    return f"{VERSION}.{fingerprint}."


class Vault:
    def __init__(self, keys: list[str]) -> None:
        if not keys:
            raise VaultError("no key to encrypt secrets with")
        self._keys = {_fingerprint(key): AESGCM(_derive(key, b"postern secrets v1")) for key in keys}
        self._for_fingerprints = {_fingerprint(key): _derive(key, b"postern fingerprints v1") for key in keys}
        self.current = _fingerprint(keys[0])
        self.fingerprints = frozenset(self._keys)

    def seal(self, secret: bytes, row: str, field: str) -> str:
        """``row``: the webhook's id, or whatever names the row that it is kept in."""
        nonce = os.urandom(12)
        sealed = self._keys[self.current].encrypt(nonce, secret, _bound_to(row, field))
        return envelopes_of(self.current) + base64.b64encode(nonce + sealed).decode()

    def open(self, envelope: str, row: str, field: str) -> bytes:
        version, _, rest = envelope.partition(".")
        fingerprint, _, data = rest.partition(".")
        cipher = self._keys.get(fingerprint)
        if version != VERSION or cipher is None:
            raise VaultError(
                f"a secret was encrypted with key {fingerprint}, which POSTERN_SECRET_KEYS does not hold"
            )
        try:
            raw = base64.b64decode(data)
            return cipher.decrypt(raw[:12], raw[12:], _bound_to(row, field))
        except (InvalidTag, ValueError) as error:
            raise VaultError(f"the stored {field} of {row} has been altered") from error

    def fingerprint(self, value: bytes, row: str) -> str:
        """By this somebody who has the key knows the value again in this row. Nobody gets the value back from it, and the same
        value in another row has another one."""
        return f"{self.current}.{self._fingerprint_with(self.current, value, row)}"

    def has_fingerprint(self, value: bytes, row: str, fingerprint: str) -> bool | None:
        """None: it was made with a key that is not known here."""
        key, _, rest = fingerprint.partition(".")
        if key not in self._for_fingerprints:
            return None
        return hmac.compare_digest(self._fingerprint_with(key, value, row), rest)

    def _fingerprint_with(self, key: str, value: bytes, row: str) -> str:
        return hmac.digest(self._for_fingerprints[key], row.encode() + b"\0" + value, "sha256").hex()

    def sealed_with_current(self, envelope: str) -> bool:
        return envelope.startswith(envelopes_of(self.current))


def _bound_to(row: str, field: str) -> bytes:
    return f"secrets:{row}:{field}".encode()


def _derive(key: str, what_for: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=what_for).derive(key.encode())


def _fingerprint(key: str) -> str:
    return hashlib.sha256(b"postern key id\0" + key.encode()).hexdigest()[:FINGERPRINT_LENGTH]


def key_from_file(path: Path) -> str:
    """The generated key beside the database, for its owner alone, and never made twice."""
    if not path.exists():
        _make_key(path)
    try:
        key = path.read_text().strip()
    except UnicodeDecodeError:
        raise VaultError(f"{path} is not text, so it is no key: restore it from a backup") from None
    if not key:
        raise VaultError(f"{path} is empty: restore it from a backup, or the stored secrets cannot be opened")
    return key


def _make_key(path: Path) -> None:
    """It has its name when it is on disk, and not before: after a power cut an empty one would refuse every start."""
    descriptor, name = tempfile.mkstemp(prefix=path.name + ".", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(base64.urlsafe_b64encode(os.urandom(32)).decode() + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(name, path)
        except FileExistsError:
            pass  # another process was faster, and its key is the one
        except OSError:  # a file system that knows no links
            if not path.exists():
                os.rename(name, path)
    finally:
        Path(name).unlink(missing_ok=True)
    sync(path.parent)
