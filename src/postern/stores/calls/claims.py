"""Duplicate keys: claimed by insert, in the transaction of the invocation. No look-up comes before it."""

from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from itertools import islice
from typing import Any

from sqlalchemy import ARRAY, BigInteger, Connection, LargeBinary, bindparam, cast, delete, func, select

from postern.core.history.invocation import Entry
from postern.identity import packed, unpacked
from postern.stores.sql.bulk import ValueRows, execute_for_each, insert_new_rows
from postern.stores.sql.moments import milliseconds
from postern.stores.sql.tables import duplicate_keys
from postern.stores.sql.upsert import insert_into

_COLUMNS = ("key", "invocation_id", "expires_at")
AT_ONCE = 500
"""Keys that one statement asks about."""


def stored_key(webhook_id: str, key: bytes) -> bytes:
    """Half of a hash: nobody finds two keys with the same one, and the shorter it is, the fewer pages are read and written."""
    return sha256(webhook_id.encode() + key).digest()[:16]


def claim_keys(connection: Connection, entries: list[Entry]) -> dict[str, str]:
    """Returns the invocations that came second, each with the first one. The insert decides."""
    pairs = [
        (stored_key(entry.invocation.webhook_id, entry.duplicate_key), entry)
        for entry in entries
        if entry.duplicate_key is not None
    ]
    if not pairs:
        return {}
    firsts = dict(reversed(pairs))
    # One order everywhere: two processes cannot deadlock.
    claims = [
        (key, packed(entry.invocation.id), milliseconds(entry.duplicate_until))
        for key, entry in sorted(firsts.items())
    ]
    now = milliseconds(min(entry.invocation.received_at for entry in firsts.values()))
    on_postgres = connection.dialect.name == "postgresql"
    if (_claim_on_postgres if on_postgres else _claim_on_sqlite)(connection, claims, now) == len(pairs):
        return {}  # nearly always
    holders = holders_of(connection, list(firsts))
    of_each = [(entry.invocation.id, holders[key][0]) for key, entry in pairs]
    return {invocation_id: first for invocation_id, first in of_each if first != invocation_id}


def holders_of(connection: Connection, keys: list[bytes]) -> dict[bytes, tuple[str, int]]:
    """The invocation that has each of these stored keys, and until when."""
    holders: dict[bytes, tuple[str, int]] = {}
    for some in _portions(keys):
        query = select(duplicate_keys).where(duplicate_keys.c.key.in_(some))
        holders |= {key: (unpacked("inv", holder), until) for key, holder, until in connection.execute(query)}
    return holders


def _portions(keys: list[bytes]) -> Iterator[list[bytes]]:
    left = iter(keys)
    return iter(lambda: list(islice(left, AT_ONCE)), [])


def _claim_on_sqlite(connection: Connection, claims: ValueRows, now: int) -> int:
    """Returns how many are new. Nobody else writes meanwhile."""
    new = insert_new_rows(connection, duplicate_keys, _COLUMNS, claims)
    if new < len(claims):
        over = duplicate_keys.c.expires_at <= now
        for some in _portions([key for key, _, _ in claims]):
            connection.execute(delete(duplicate_keys).where(duplicate_keys.c.key.in_(some), over))
        new += insert_new_rows(connection, duplicate_keys, _COLUMNS, claims)
    return new


@cache
def _claim_all() -> Any:
    """Made when it is first needed: on SQLite it never is, nor what it would load (`upsert.py`). An expired claim is taken
    over in the statement that makes one."""
    kinds = {"key": LargeBinary, "invocation_id": LargeBinary, "expires_at": BigInteger}
    arrays = func.unnest(*(cast(bindparam(name), ARRAY(kind)) for name, kind in kinds.items()))
    claimed = arrays.table_valued(*kinds).render_derived()
    statement = insert_into(duplicate_keys, "postgresql").from_select(list(kinds), select(claimed))
    return statement.on_conflict_do_update(
        index_elements=["key"],
        set_={name: statement.excluded[name] for name in ("invocation_id", "expires_at")},
        where=duplicate_keys.c.expires_at <= bindparam("now"),
    )


def _claim_on_postgres(connection: Connection, claims: ValueRows, now: int) -> int:
    columns = dict(zip(_COLUMNS, map(list, zip(*claims, strict=True)), strict=True))
    (changed,) = execute_for_each(connection, _claim_all(), [{**columns, "now": now}])
    return changed
