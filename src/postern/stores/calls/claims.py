"""Duplicate keys: claimed by insert, in the transaction of the invocation. No look-up comes before it."""

from functools import cache
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Connection,
    LargeBinary,
    String,
    bindparam,
    cast,
    func,
    select,
    tuple_,
)

from postern.core.history.invocation import Entry
from postern.stores.sql.moments import milliseconds
from postern.stores.sql.tables import duplicate_keys
from postern.stores.sql.upsert import insert_into

Claims = dict[tuple[str, bytes], Entry]


def claim_keys(connection: Connection, entries: list[Entry]) -> dict[str, str]:
    """Returns the invocations that came second, each with the first one. The insert decides."""
    claims: dict[tuple[str, bytes], Entry] = {}
    firsts: dict[str, str] = {}
    for entry in entries:
        if entry.duplicate_key is not None:
            place = (entry.invocation.webhook_id, entry.duplicate_key)
            if place in claims:
                firsts[entry.invocation.id] = claims[place].invocation.id
            else:
                claims[place] = entry
    if not claims:
        return firsts
    won = (
        _won_on_postgres(connection, claims)
        if connection.dialect.name == "postgresql"
        else _won_on_sqlite(connection, claims)
    )
    lost = {place: entry for place, entry in claims.items() if place not in won}
    holders = _holders(connection, list(lost))
    for place in lost:
        holder = holders[place]
        firsts[lost[place].invocation.id] = holder
        for invocation_id, first in firsts.items():
            if first == lost[place].invocation.id:  # third in the same batch: it follows the holder too
                firsts[invocation_id] = holder
    return firsts


def _take_over(statement: Any, now: Any) -> Any:
    """An expired claim is taken over in the same statement that makes one."""
    return statement.on_conflict_do_update(
        index_elements=["webhook_id", "key"],
        set_={"invocation_id": statement.excluded.invocation_id, "expires_at": statement.excluded.expires_at},
        where=duplicate_keys.c.expires_at <= now,
    ).returning(duplicate_keys.c.webhook_id, duplicate_keys.c.key)


_CLAIM = _take_over(insert_into(duplicate_keys, "sqlite"), bindparam("now"))


@cache
def _claim_all() -> Any:
    """Made when it is first needed: on SQLite it never is, nor what it would load (`upsert.py`)."""
    kinds = {"webhook_ids": String, "keys": LargeBinary, "invocation_ids": String, "expiries": BigInteger}
    arrays = func.unnest(*(cast(bindparam(name), ARRAY(kind)) for name, kind in kinds.items()))
    claimed = arrays.table_valued("webhook_id", "key", "invocation_id", "expires_at").render_derived()
    return _take_over(
        insert_into(duplicate_keys, "postgresql").from_select(list(claimed.c.keys()), select(claimed)),
        bindparam("now"),
    )


def _won_on_sqlite(connection: Connection, claims: Claims) -> set[tuple[str, bytes]]:
    won = set()
    for (webhook_id, key), entry in claims.items():
        until, now = milliseconds(entry.duplicate_until), milliseconds(entry.invocation.received_at)
        claim = {
            "webhook_id": webhook_id,
            "key": key,
            "invocation_id": entry.invocation.id,
            "expires_at": until,
            "now": now,
        }
        if connection.execute(_CLAIM, claim).first() is not None:
            won.add((webhook_id, key))
    return won


def _won_on_postgres(connection: Connection, claims: Claims) -> set[tuple[str, bytes]]:
    ordered = sorted(claims.items())  # one order everywhere: two processes cannot deadlock
    wanted = {
        "webhook_ids": [webhook_id for (webhook_id, _), _ in ordered],
        "keys": [key for (_, key), _ in ordered],
        "invocation_ids": [entry.invocation.id for _, entry in ordered],
        "expiries": [milliseconds(entry.duplicate_until) for _, entry in ordered],
        "now": milliseconds(min(entry.invocation.received_at for _, entry in ordered)),
    }
    return {(webhook_id, key) for webhook_id, key in connection.execute(_claim_all(), wanted)}


def _holders(connection: Connection, lost: list[tuple[str, bytes]]) -> dict[tuple[str, bytes], str]:
    held = select(duplicate_keys.c.webhook_id, duplicate_keys.c.key, duplicate_keys.c.invocation_id)
    place = tuple_(duplicate_keys.c.webhook_id, duplicate_keys.c.key)
    return (
        {(row[0], row[1]): row[2] for row in connection.execute(held.where(place.in_(lost)))} if lost else {}
    )
