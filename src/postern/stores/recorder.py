"""Many calls, one transaction: invocations, deliveries, claimed duplicate keys, and the counts that go with them.

The statements are written once, by SQLAlchemy from the tables, and run with plain tuples: its per-row parameter
handling would cost more than everything else here together.
"""

from collections import Counter
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec
from sqlalchemy import Connection, Dialect, Table, bindparam, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from postern.core.invocation import Delivery, Entry, Invocation, Receipt
from postern.stores.tables import LATENCY_BOUNDS_MS, deliveries, duplicate_keys, invocations, samples, tallies, volumes, webhooks

_INVOCATION_COLUMNS = (
    "id", "webhook_id", "received_at", "outcome", "code", "status", "config_version", "method", "path", "query", "headers",
    "body_size", "address", "duration_us", "matched", "detail", "trace", "duplicate_of", "body",
)  # fmt: skip
_DELIVERY_COLUMNS = (
    "key", "invocation_id", "webhook_id", "emission", "state", "attempts", "next_at", "fields", "created_at", "deadline", "error", "answer_code",
)  # fmt: skip

_WITHIN = tuple(f"within_{bound}" for bound in LATENCY_BOUNDS_MS)


def milliseconds(seconds: float) -> int:
    return int(seconds * 1000)


def record_all(connection: Connection, entries: list[Entry], shard: int) -> list[Receipt]:
    """Inserts everything; whoever's duplicate key was taken already becomes a duplicate and starts nothing.

    The entries themselves are left as they are: when the commit fails, each is tried again alone, and may be first then.
    """
    firsts = claim_keys(connection, entries)
    waiting = [entry.delivery for entry in entries if entry.delivery is not None and entry.delivery.state == "held"]
    released = settle_holds(connection, waiting) if waiting else set()
    recorded = []
    starting = []
    for entry in entries:
        invocation, delivery = entry.invocation, entry.delivery
        first = firsts.get(invocation.id)
        if first is not None:
            invocation, delivery = replace(invocation, outcome="duplicate", code="duplicate", status=200, duplicate_of=first), None
        if delivery is not None:
            starting.append(_delivery_row(delivery if delivery.key not in released else replace(delivery, state="queued")))
            if entry.sample is not None:
                keep_sample(connection, delivery, entry.sample, invocation.received_at)
        recorded.append(invocation)
    insert_rows(connection, invocations, _INVOCATION_COLUMNS, [_invocation_row(invocation) for invocation in recorded])
    if starting:
        insert_rows(connection, deliveries, _DELIVERY_COLUMNS, starting)
    _count(connection, [(invocation, entry.secret_id) for invocation, entry in zip(recorded, entries, strict=True)], shard)
    return [Receipt(firsts.get(entry.invocation.id)) for entry in entries]


_invocation_values = attrgetter(*_INVOCATION_COLUMNS)


def _invocation_row(invocation: Invocation) -> tuple[Any, ...]:
    row = _invocation_values(invocation)
    return (*row[:2], milliseconds(row[2]), *row[3:])


def _delivery_row(delivery: Delivery) -> tuple[Any, ...]:
    return (
        delivery.key, delivery.invocation_id, delivery.webhook_id, delivery.emission, delivery.state, delivery.attempts,
        milliseconds(delivery.next_at), msgspec.json.encode(delivery.fields), milliseconds(delivery.created_at),
        None if delivery.deadline is None else milliseconds(delivery.deadline), delivery.error, delivery.answer_code,
    )  # fmt: skip


def settle_holds(connection: Connection, waiting: list[Delivery]) -> set[str]:
    """The keys of those whose webhooks are not on hold any more. Asked here, under a lock: what is written down as held after the release
    has gone through the others would wait for ever."""
    ids = {delivery.webhook_id for delivery in waiting}
    asked = select(webhooks.c.id).where(webhooks.c.id.in_(ids), webhooks.c.held.is_(True), webhooks.c.deleted_at.is_(None))
    held = set(connection.execute(asked.order_by(webhooks.c.id).with_for_update(read=True)).scalars())
    return {delivery.key for delivery in waiting if delivery.webhook_id not in held}


def keep_sample(connection: Connection, delivery: Delivery, trigger: bytes, now: float) -> None:
    """The first event after arming is the sample: taking it disarms, in every process at once."""
    armed = update(samples).where(samples.c.webhook_id == delivery.webhook_id, samples.c.armed_until > milliseconds(now))
    kept = {"armed_until": None, "stored_at": milliseconds(now), "invocation_id": delivery.invocation_id, "trigger": trigger}
    connection.execute(armed.values(kept))


def insert_delivery(connection: Connection, delivery: Delivery) -> None:
    insert_rows(connection, deliveries, _DELIVERY_COLUMNS, [_delivery_row(delivery)])


def insert_rows(connection: Connection, table: Table, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    if connection.dialect.name == "sqlite":
        # Many rows a statement, not executemany: the driver gives up the interpreter lock for every statement, and a busy
        # event loop takes up to a switch interval to give it back.
        start = 0
        for size in _ROWS_A_STATEMENT:
            while len(rows) - start >= size:
                statement = _insert_many_statement(table, columns, size, connection.dialect)
                connection.exec_driver_sql(statement, tuple(chain.from_iterable(rows[start : start + size])))
                start += size
    else:
        statement = _insert_statement(table, columns, connection.dialect)
        connection.exec_driver_sql(statement, [dict(zip(columns, row, strict=True)) for row in rows])


_ROWS_A_STATEMENT = (64, 16, 4, 1)


@lru_cache(maxsize=64)
def _insert_many_statement(table: Table, columns: tuple[str, ...], size: int, dialect: Dialect) -> str:
    head, values, row = _insert_statement(table, columns, dialect).partition("VALUES ")
    return head + values + ", ".join([row] * size)


@lru_cache(maxsize=64)
def _insert_statement(table: Table, columns: tuple[str, ...], dialect: Dialect) -> str:
    return str(insert(table).values({name: bindparam(name) for name in columns}).compile(dialect=dialect, column_keys=list(columns)))


def _upsert(connection: Connection, table: Table) -> Any:
    return (postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert)(table)


def claim_keys(connection: Connection, entries: list[Entry]) -> dict[str, str]:
    """Which of these invocations came second, and after which. The insert decides, never a look-up before it."""
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
    statement = _upsert(connection, duplicate_keys)
    statement = statement.on_conflict_do_update(
        index_elements=["webhook_id", "key"],
        set_={"invocation_id": statement.excluded.invocation_id, "expires_at": statement.excluded.expires_at},
        # An expired claim is taken over in the same statement.
        where=duplicate_keys.c.expires_at <= bindparam("now"),
    ).returning(duplicate_keys.c.webhook_id, duplicate_keys.c.key)
    won = set()
    for (webhook_id, key), entry in sorted(claims.items()):  # one order everywhere: two processes cannot deadlock
        row = connection.execute(
            statement,
            {
                "webhook_id": webhook_id,
                "key": key,
                "invocation_id": entry.invocation.id,
                "expires_at": milliseconds(entry.duplicate_until),
                "now": milliseconds(entry.invocation.received_at),
            },
        ).first()
        if row is not None:
            won.add((webhook_id, key))
    lost = {place: entry for place, entry in claims.items() if place not in won}
    for place in lost:
        holder = connection.execute(
            select(duplicate_keys.c.invocation_id).where(duplicate_keys.c.webhook_id == place[0], duplicate_keys.c.key == place[1])
        ).scalar_one()
        firsts[lost[place].invocation.id] = holder
        for invocation_id, first in firsts.items():
            if first == lost[place].invocation.id:  # third in the same batch: it follows the holder too
                firsts[invocation_id] = holder
    return firsts


def _count(connection: Connection, recorded: list[tuple[Invocation, str | None]], shard: int) -> None:
    calls: Counter[tuple[str, str]] = Counter()
    last: dict[tuple[str, str], float] = {}
    volume: Counter[tuple[str, int, str]] = Counter()
    within: Counter[tuple[str, int, str, str]] = Counter()
    for invocation, secret_id in recorded:
        names = ["calls"] if secret_id is None else ["calls", f"secret:{secret_id}"]
        for name in names:
            calls[invocation.webhook_id, name] += 1
            last[invocation.webhook_id, name] = max(last.get((invocation.webhook_id, name), 0.0), invocation.received_at)
        bucket = (invocation.webhook_id, int(invocation.received_at // 60), invocation.code)
        volume[bucket] += 1
        for bound, column in zip(LATENCY_BOUNDS_MS, _WITHIN, strict=True):
            if invocation.duration_us <= bound * 1000:
                within[(*bucket, column)] += 1
                break
    connection.execute(
        _tally_statement(connection.dialect.name),
        [
            {"webhook_id": webhook_id, "name": name, "shard": shard, "count": count, "last_at": milliseconds(last[webhook_id, name])}
            for (webhook_id, name), count in sorted(calls.items())
        ],
    )
    connection.execute(
        _volume_statement(connection.dialect.name),
        [
            {"webhook_id": bucket[0], "minute": bucket[1], "code": bucket[2], "shard": shard, "calls": count}
            | {column: within[(*bucket, column)] for column in _WITHIN}
            for bucket, count in sorted(volume.items())
        ],
    )


@lru_cache(maxsize=4)
def _tally_statement(dialect_name: str) -> Any:
    statement = (postgresql.insert if dialect_name == "postgresql" else sqlite.insert)(tallies)
    return statement.on_conflict_do_update(
        index_elements=["webhook_id", "name", "shard"],
        set_={"count": tallies.c.count + statement.excluded.count, "last_at": statement.excluded.last_at},
    )


@lru_cache(maxsize=4)
def _volume_statement(dialect_name: str) -> Any:
    statement = (postgresql.insert if dialect_name == "postgresql" else sqlite.insert)(volumes)
    added = ("calls", *_WITHIN)
    return statement.on_conflict_do_update(
        index_elements=["webhook_id", "minute", "code", "shard"],
        set_={column: volumes.c[column] + statement.excluded[column] for column in added},
    )
