"""Many calls, one transaction: invocations, deliveries, claimed duplicate keys, and the counts that go with
them.

Rows go in as plain tuples (`bulk.py`): SQLAlchemy's per-row parameter handling would cost more than
everything else here together.
"""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import astuple, replace
from sqlalchemy import Connection, func, select, update

from postern.core.answer import WorkflowResponse
from postern.core.deliveries.delivery import Logged, StartAgain, delivery_key
from postern.core.documents import DAMAGED, read_kept
from postern.core.history.invocation import Delivery, Entry, Invocation, Receipt
from postern.core.history.volume import UNKEPT
from postern.stores.calls.claims import claim_keys
from postern.stores.sql.bulk import execute_for_each, in_the_driver, insert_rows
from postern.stores.sql.moments import milliseconds, seconds
from postern.stores.sql.tables import (
    ALIVE,
    LATENCY_BOUNDS_MS,
    belongs,
    deliveries,
    invocations,
    masked_tokens,
    samples,
    tallies,
    volumes,
    webhooks,
)
from postern.stores.sql.upsert import insert_into

_INVOCATION_COLUMNS = Invocation.__struct_fields__
_DELIVERY_COLUMNS = (
    "key", "invocation_id", "webhook_id", "emission", "state", "attempts", "next_at", "fields", "created_at", "deadline", "asked_by",
    "replay_id", "lane", "turn", "place",
)  # fmt: skip
"""The columns that a new delivery has. The others are filled later."""

_encode = msgspec.json.Encoder().encode
_RECEIVED_AT = _INVOCATION_COLUMNS.index("received_at")
_RECORDED = Receipt()
_WITHIN = tuple(f"within_{bound}" for bound in LATENCY_BOUNDS_MS)
_BOUNDS_US = tuple(bound * 1000 for bound in LATENCY_BOUNDS_MS)


def record_all(connection: Connection, entries: list[Entry], counted: bool = True) -> list[Receipt]:
    """Inserts everything; whoever's duplicate key was taken already becomes a duplicate and starts nothing.

    The entries themselves are left as they are: when the commit fails, each is tried again alone, and may be
    first then.
    """
    originals = entries
    if any(entry.others for entry in originals):
        entries = [item for entry in originals for item in (entry, *entry.others)]
    firsts = claim_keys(connection, entries)
    waiting = [
        entry.delivery for entry in entries if entry.delivery is not None and entry.delivery.state == "held"
    ]
    released = no_longer_held(connection, waiting) if waiting else set()
    if in_turn := [
        item.delivery for item in entries if item.delivery is not None and item.delivery.turn is not None
    ]:
        give_places(connection, in_turn)
    recorded = []
    starting = []
    for entry in entries:
        invocation, delivery = entry.invocation, entry.delivery
        first = firsts.get(invocation.id)
        if first is not None:
            status, delivery = invocation.status or 200, None
            as_one = {"outcome": "duplicate", "code": "duplicate", "status": status, "duplicate_of": first}
            invocation = replace(invocation, **as_one)
        if delivery is not None:
            starting.append(
                _delivery_row(delivery if delivery.key not in released else replace(delivery, state="queued"))
            )
            if entry.sample is not None:
                keep_sample(connection, delivery, entry.sample, invocation.received_at)
        recorded.append(invocation)
    insert_rows(
        connection, invocations, _INVOCATION_COLUMNS, [_invocation_row(invocation) for invocation in recorded]
    )
    if starting:
        insert_rows(connection, deliveries, _DELIVERY_COLUMNS, starting)
    if shown := [
        (entry.invocation.id, entry.token_fingerprint) for entry in entries if entry.token_fingerprint
    ]:
        insert_rows(connection, masked_tokens, ("invocation_id", "fingerprint"), shown)
    if counted:
        _count(
            connection,
            [(invocation, entry.secret_id) for invocation, entry in zip(recorded, entries, strict=True)],
        )
    return (
        [Receipt(_first_of(entry, firsts)) for entry in originals] if firsts else [_RECORDED] * len(originals)
    )


def _first_of(entry: Entry, firsts: dict[str, str]) -> str | None:
    """Returns the earlier call only if everything that this call brought was there before."""
    is_new = any(other.delivery is not None and other.invocation.id not in firsts for other in entry.others)
    return None if is_new else firsts.get(entry.invocation.id)


def insert_invocation(connection: Connection, invocation: Invocation) -> None:
    """Inserts an invocation that no call brought."""
    insert_rows(connection, invocations, _INVOCATION_COLUMNS, [_invocation_row(invocation)])


def _invocation_row(invocation: Invocation) -> list[Any]:
    row = list(astuple(invocation))
    row[_RECEIVED_AT] = milliseconds(invocation.received_at)
    return row


def _delivery_row(delivery: Delivery) -> tuple[Any, ...]:
    return (
        delivery.key, delivery.invocation_id, delivery.webhook_id, delivery.emission, delivery.state, delivery.attempts,
        milliseconds(delivery.next_at), _encode(delivery.fields), milliseconds(delivery.created_at),
        None if delivery.deadline is None else milliseconds(delivery.deadline), delivery.asked_by, delivery.replay_id,
        delivery.lane, delivery.turn, delivery.place,
    )  # fmt: skip


def no_longer_held(connection: Connection, waiting: list[Delivery]) -> set[str]:
    """The keys of those whose webhooks are not on hold any more. Asked here, under a lock: what is written
    down as held after the release has gone through the others would wait for ever."""
    ids = {delivery.webhook_id for delivery in waiting}
    query = select(webhooks.c.id).where(webhooks.c.id.in_(ids), webhooks.c.held.is_(True), ALIVE)
    held = set(connection.execute(query.order_by(webhooks.c.id).with_for_update(read=True)).scalars())
    return {delivery.key for delivery in waiting if delivery.webhook_id not in held}


def give_places(connection: Connection, in_turn: list[Delivery]) -> None:
    """Places behind all that wait with the same turn: so their order is not that of any clock."""
    pairs = {(delivery.lane, delivery.turn or ""): 0 for delivery in in_turn}
    text = _LAST_PLACES[connection.dialect.name]
    is_sqlite = connection.dialect.name == "sqlite"
    arguments = (json.dumps([*pairs]),) if is_sqlite else tuple(map(list, zip(*pairs, strict=True)))
    with in_the_driver(connection, text) as driver:
        for lane, turn, place in driver.execute(text, arguments):
            pairs[lane, turn] = place or 0
    for delivery in in_turn:
        pairs[delivery.lane, delivery.turn or ""] += 1
        delivery.place = pairs[delivery.lane, delivery.turn or ""]


_LAST_PLACE = """SELECT asked.lane, asked.turn, (SELECT place FROM deliveries AS d WHERE d.lane = asked.lane AND d.turn = asked.turn
AND d.state IN ('queued', 'held') AND d.lane <> '' ORDER BY d.place DESC LIMIT 1) FROM """
_LAST_PLACES = {
    "sqlite": _LAST_PLACE + "(SELECT value ->> 0 AS lane, value ->> 1 AS turn FROM json_each(?)) AS asked",
    "postgresql": _LAST_PLACE + "unnest(%s::text[], %s::text[]) AS asked(lane, turn)",
}


def keep_sample(connection: Connection, delivery: Delivery, trigger: bytes, now: float) -> None:
    """The first event after arming is the sample: taking it disarms, in every process at once."""
    armed = update(samples).where(
        samples.c.webhook_id == delivery.webhook_id, samples.c.armed_until > milliseconds(now)
    )
    kept = {
        "armed_until": None,
        "stored_at": milliseconds(now),
        "invocation_id": delivery.invocation_id,
        "trigger": trigger,
    }
    connection.execute(armed.values(kept))


_READ_COLUMNS = tuple(deliveries.c.keys())
_READ_TIMES = (
    *("next_at", "created_at", "deadline", "started_at"),
    *("responded_at", "released_at", "ended_at", "ask_at"),
)


def delivery_of(row: Sequence[Any]) -> Delivery:
    """All columns in the table's order, as the driver gives them."""
    values = dict(zip(_READ_COLUMNS, row, strict=True))
    for name in _READ_TIMES:
        values[name] = seconds(values[name])
    status, headers, body = (values.pop(f"response_{part}") for part in ("status", "headers", "body"))
    if status is not None:
        pairs = tuple(read_kept(headers or b"[]", list[tuple[str, str]], []))
        values["response"] = WorkflowResponse(status, pairs, body or b"")
    values["log"] = read_kept(values["log"] or b"[]", list[Logged], [])
    if (fields := read_kept(values["fields"], dict[str, str], None)) is None:
        values["error"] = DAMAGED
    values["fields"] = fields or {}
    return Delivery(**values)


def insert_delivery(connection: Connection, delivery: Delivery) -> None:
    """Held only if its webhook still is."""
    if delivery.turn is not None:
        give_places(connection, [delivery])
    if delivery.state == "held" and no_longer_held(connection, [delivery]):
        delivery.state = "queued"
    insert_rows(connection, deliveries, _DELIVERY_COLUMNS, [_delivery_row(delivery)])


def emit(
    connection: Connection, start: StartAgain, now: float, asked_by: str, replay_id: str | None = None
) -> Delivery | None:
    """One more emission of an invocation, numbered in the transaction; None if retention has just taken that."""
    # Locked first: a replay in another process waits here, and then counts this one.
    invocation_id = start.invocation_id
    query = select(invocations.c.webhook_id).where(invocations.c.id == invocation_id).with_for_update()
    webhook_id = connection.scalar(query)
    if webhook_id is None:
        return None
    emission = (
        connection.scalar(select(func.max(deliveries.c.emission)).where(belongs(invocation_id))) or 0
    ) + 1
    key = delivery_key(invocation_id, emission)
    delivery = Delivery(
        key,
        invocation_id,
        webhook_id,
        emission,
        start.state,
        0,
        now,
        start.fields,
        now,
        asked_by=asked_by,
        replay_id=replay_id,
        lane=start.lane,
        turn=start.turn,
    )
    insert_delivery(connection, delivery)
    return delivery


def _count(connection: Connection, recorded: list[tuple[Invocation, str | None]]) -> None:
    # Nearly always all of a batch are alike in everything that is counted: so they are put together before
    # anything is.
    alike: dict[tuple[str, str | None, int, str, int], int] = {}
    latest: dict[tuple[str, str | None], float] = {}
    for invocation, secret_id in recorded:
        webhook_id, at = invocation.webhook_id, invocation.received_at
        # One that was slower than the largest bound falls behind the last column, and into none.
        kind = (
            webhook_id,
            secret_id,
            int(at // 60),
            invocation.code,
            bisect_left(_BOUNDS_US, invocation.duration_us),
        )
        alike[kind] = alike.get(kind, 0) + 1
        latest[webhook_id, secret_id] = at
    calls: Counter[tuple[str, str]] = Counter()
    last: dict[tuple[str, str], float] = {}
    volume: dict[tuple[str, int, str], list[int]] = {}
    for (webhook_id, secret_id, minute, code, within), count in alike.items():
        for name in ("calls",) if secret_id is None else ("calls", f"secret:{secret_id}"):
            calls[webhook_id, name] += count
            last[webhook_id, name] = max(last.get((webhook_id, name), 0.0), latest[webhook_id, secret_id])
        counts = volume.setdefault((webhook_id, minute, code), [0] * (len(_WITHIN) + 2))
        counts[0] += count
        counts[1 + within] += count
    _add(connection, calls, last, volume)


def count_unrecorded(connection: Connection, counted: Mapping[tuple[str, int, str], int], now: float) -> None:
    """Calls by webhook, minute and code, of which nothing else is written down."""
    calls: Counter[tuple[str, str]] = Counter()
    volume: dict[tuple[str, int, str], list[int]] = {}
    for (webhook_id, minute, code), count in counted.items():
        calls[webhook_id, "calls"] += count
        # They were answered at once, so they fall within the first bound.
        at_once = [count, count, *[0] * len(_WITHIN)]
        volume[webhook_id, minute, code] = volume[webhook_id, minute, UNKEPT + code] = at_once
    _add(connection, calls, dict.fromkeys(calls, now), volume)


def _add(
    connection: Connection,
    calls: Mapping[tuple[str, str], int],
    last: Mapping[tuple[str, str], float],
    volume: Mapping[tuple[str, int, str], list[int]],
) -> None:
    shard = connection.info.get("shard", 0)
    execute_for_each(
        connection,
        _tally_statement(connection.dialect.name),
        [
            {
                "webhook_id": webhook_id,
                "name": name,
                "shard": shard,
                "count": count,
                "last_at": milliseconds(last[webhook_id, name]),
            }
            for (webhook_id, name), count in sorted(calls.items())
        ],
    )
    count_volume(connection, volume)


def count_volume(connection: Connection, volume: Mapping[tuple[str, int, str], list[int]]) -> None:
    """Adds to the counts of each webhook, minute and name: all calls, those within each bound, the slower ones."""
    shard = connection.info.get("shard", 0)
    execute_for_each(
        connection,
        _volume_statement(connection.dialect.name),
        [
            {"webhook_id": webhook_id, "minute": minute, "code": code, "shard": shard, "calls": counts[0]}
            | dict(zip(_WITHIN, counts[1:-1], strict=True))
            for (webhook_id, minute, code), counts in sorted(volume.items())
        ],
    )


@lru_cache(maxsize=4)
def _tally_statement(dialect_name: str) -> Any:
    statement = insert_into(tallies, dialect_name)
    return statement.on_conflict_do_update(
        index_elements=["webhook_id", "name", "shard"],
        set_={"count": tallies.c.count + statement.excluded.count, "last_at": statement.excluded.last_at},
    )


@lru_cache(maxsize=4)
def _volume_statement(dialect_name: str) -> Any:
    statement = insert_into(volumes, dialect_name)
    added = ("calls", *_WITHIN)
    return statement.on_conflict_do_update(
        index_elements=["webhook_id", "minute", "code", "shard"],
        set_={column: volumes.c[column] + statement.excluded[column] for column in added},
    )
