"""Which keys the database's secrets are encrypted with. It knows them by their fingerprints, so that a process
that was given another key is refused before it has written anything with it.

``meta`` holds the fingerprint of every key that has been the first one of a gateway on this database.
"""

from sqlalchemy import Connection, func, select

from postern.stores.secrets.vault import FINGERPRINT_LENGTH, VERSION, Vault, VaultError
from postern.stores.sql.database import Database
from postern.stores.sql.tables import meta, secrets
from postern.stores.sql.upsert import insert_into

NAME = "keys"


def holds_secrets(url: str) -> bool:
    """Whether a key belongs to this database already; without one it must not be opened."""
    database = Database(url)
    try:
        return bool(database.read_now(_known))
    finally:
        database.close()


def check(database: Database, vault: Vault) -> None:
    """Raises ``VaultError`` unless one of the keys is known here, or none is. A new first key is noted."""
    known = database.read_now(_known)
    if known and not known & vault.fingerprints:
        raise VaultError(
            f"the secrets in this database are encrypted with the key {' or '.join(sorted(known))}, and the keys given here are "
            f"{', '.join(sorted(vault.fingerprints))}: set POSTERN_SECRET_KEYS as it was, or put a new key in front of the old "
            "one. Nothing was changed"
        )
    if vault.current not in known:
        with database.writer.begin() as connection:
            _write(connection, _noted(connection) | known | {vault.current})


def forget_unused(connection: Connection, vault: Vault) -> None:
    """Once everything is encrypted with the first key, the others do not belong to this database any more."""
    fingerprint = func.substr(secrets.c.envelope, len(f"{VERSION}.") + 1, FINGERPRINT_LENGTH)
    in_use = connection.execute(select(fingerprint).distinct()).scalars()
    _write(connection, {*in_use, vault.current})


def _write(connection: Connection, fingerprints: set[str]) -> None:
    statement = insert_into(meta, connection.dialect.name).values(
        name=NAME, value=" ".join(sorted(fingerprints))
    )
    connection.execute(
        statement.on_conflict_do_update(index_elements=["name"], set_={"value": statement.excluded.value})
    )


def _known(connection: Connection) -> set[str]:
    return _noted(connection) if connection.dialect.has_table(connection, "meta") else set()


def _noted(connection: Connection) -> set[str]:
    return set((connection.scalar(select(meta.c.value).where(meta.c.name == NAME)) or "").split())
