"""Deleting what is old, in steps so small that nobody who is being answered notices."""

from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import islice

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    and_,
    delete,
    exists,
    func,
    literal,
    not_,
    select,
    update,
)

from postern.core.history.volume import UNKEPT
from postern.core.operations.retention import ROW_SIZE, OwnRetention, Rejected, rejected_to_delete
from postern.identity import first_id_at
from postern.stores.calls.recorder import count_volume
from postern.stores.history.locking import lock_calls
from postern.stores.sql.moments import milliseconds
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import (
    LATENCY_BOUNDS_MS,
    OF_A_CALL,
    UNUSUAL_INVOCATIONS,
    audit,
    belongs,
    deliveries,
    duplicate_keys,
    engine_deletions,
    idempotency,
    incidents,
    invocations,
    replays,
    sessions,
    volume_rollups,
    volumes,
    webhooks,
)
from postern.stores.sql.upsert import insert_missing

STEP = 500
STEP_BYTES = 8 * 1024 * 1024
"""A large body lies on many pages, and each has to be given back."""

FORGOTTEN_AT_ONCE = 100

_UNFINISHED = ("queued", "held")


def _one_step(oldest_first: Iterable[tuple[str, int]]) -> list[str]:
    """Returns as many ids as may be deleted at once."""
    ids: list[str] = []
    size = 0
    for invocation_id, body_size in islice(oldest_first, STEP):
        ids.append(invocation_id)
        size += body_size
        if size > STEP_BYTES:
            break
    return ids


class Retention(Repository):
    @reads
    def webhooks(self, connection: Connection) -> dict[str, OwnRetention | None]:
        """Every webhook with its own rule, deleted ones too: their history outlives them. None: it cannot be read."""
        rows = connection.execute(select(webhooks.c.id, webhooks.c.document))
        return {row.id: _own(row.document) for row in rows}

    @reads
    def own_rule(self, connection: Connection, webhook_id: str) -> OwnRetention | None:
        """Returns the rule of one webhook, or None if it cannot be read."""
        document = connection.scalar(select(webhooks.c.document).where(webhooks.c.id == webhook_id))
        return None if document is None else _own(document)

    async def before(self, webhook_id: str, moment: float, after: str) -> list[str]:
        """The oldest invocations from before that moment, beginning behind ``after``: one step's worth."""
        return await self._step(after, *_older(webhook_id, moment))

    @reads
    def horizon(self, connection: Connection, rows: int) -> str | None:
        """The newest invocation that is one too many, over all webhooks. Reads as many index entries as rows may stay."""
        newest = select(invocations.c.id).order_by(invocations.c.id.desc()).offset(rows).limit(1)
        return connection.execute(newest).scalar_one_or_none()

    async def up_to(self, last: str, after: str) -> list[str]:
        """The oldest of all webhooks, up to that one: one step's worth."""
        return await self._step(after, invocations.c.id <= last)

    @reads
    def rejected_beyond(self, connection: Connection, webhook_id: str, room: int) -> list[list[str]]:
        """A webhook's rejected calls that are too many, in steps, without those that were admitted since."""
        parts = ("path", "query", "headers", "trace", "body")
        size = sum((func.coalesce(func.length(invocations.c[part]), 0) for part in parts), literal(ROW_SIZE))
        query = select(invocations.c.id, invocations.c.address, invocations.c.code, size).where(
            invocations.c.webhook_id == webhook_id,
            invocations.c.outcome == "rejected",
            UNUSUAL_INVOCATIONS,
            not_(exists().where(belongs())),
        )
        rows = [Rejected(*row) for row in connection.execute(query.order_by(invocations.c.id))]
        beyond = iter([(call.id, call.size) for call in rejected_to_delete(rows, room)])
        return list(iter(lambda: _one_step(beyond), []))

    async def with_bodies(
        self, webhook_id: str, moment: float, after: str, filtered: bool = False
    ) -> list[str]:
        """The oldest that still have a body, from before that moment and behind ``after``; filtered calls alone where those are
        asked for."""
        return await self._step(after, *_older(webhook_id, moment), *_bodies(filtered))

    @reads
    def _step(self, connection: Connection, after: str, *conditions: ColumnElement[bool]) -> list[str]:
        query = select(invocations.c.id, invocations.c.body_size).where(*conditions, invocations.c.id > after)
        rows = connection.execute(query.order_by(invocations.c.id).limit(STEP))
        return _one_step((row.id, row.body_size) for row in rows)

    async def delete(self, invocation_ids: list[str]) -> int:
        """Deletes these, but not what is still to be started, and notes that the engine's copies are to be deleted too."""
        return await self._writer.write(partial(self._delete, invocation_ids))

    @writes
    def delete_rejected(self, connection: Connection, invocation_ids: list[str], now: float) -> int:
        """Deletes those that are there and were not admitted meanwhile, and counts them as not kept."""
        lock_calls(connection, invocation_ids)
        query = select(invocations.c.id, invocations.c.webhook_id, invocations.c.code)
        gone = connection.execute(
            query.where(invocations.c.id.in_(invocation_ids), not_(exists().where(belongs())))
        ).all()
        counted = Counter((row.webhook_id, int(now // 60), UNKEPT + row.code) for row in gone)
        count_volume(
            connection,
            {name: [number, number, *[0] * len(LATENCY_BOUNDS_MS)] for name, number in counted.items()},
        )
        return self._delete([row.id for row in gone], connection)

    def _delete(self, invocation_ids: list[str], connection: Connection) -> int:
        kept, keys = self._let_go(connection, invocation_ids)
        if keys:
            connection.execute(delete(deliveries).where(deliveries.c.key.in_(keys)))
        gone = [call_id for call_id in invocation_ids if call_id not in kept]
        if not gone:
            return 0
        for table in OF_A_CALL:
            connection.execute(delete(table).where(table.c.invocation_id.in_(gone)))
        return connection.execute(delete(invocations).where(invocations.c.id.in_(gone))).rowcount

    @writes
    def strip(self, connection: Connection, invocation_ids: list[str]) -> tuple[int, str | None]:
        """Take the bodies away, and the answers' bodies. How many, and the first that had to keep its own."""
        kept, keys = self._let_go(connection, invocation_ids)
        bare = [call_id for call_id in invocation_ids if call_id not in kept]
        stripped = update(invocations).where(invocations.c.id.in_(bare)).values(body=None)
        count = connection.execute(stripped).rowcount if bare else 0
        if keys:
            connection.execute(
                update(deliveries).where(deliveries.c.key.in_(keys)).values(response_body=None)
            )
        return count, min(kept, default=None)

    @staticmethod
    def _let_go(connection: Connection, invocation_ids: list[str]) -> tuple[set[str], list[str]]:
        """Returns the invocations that must stay because something is still to be started, and the keys of the others'
        deliveries. Notes those that the engine has seen. A request that adds a replay or a note to one of them meanwhile waits,
        and then finds it gone."""
        lock_calls(connection, invocation_ids)
        query = select(
            deliveries.c.key, deliveries.c.invocation_id, deliveries.c.state, deliveries.c.attempts
        )
        query = query.select_from(invocations.join(deliveries, belongs()))
        rows = connection.execute(query.where(invocations.c.id.in_(invocation_ids))).all()
        kept = {row.invocation_id for row in rows if row.state in _UNFINISHED}
        gone = [row for row in rows if row.invocation_id not in kept]
        if handed_over := [{"delivery_key": row.key} for row in gone if row.attempts]:
            connection.execute(insert_missing(engine_deletions, connection.dialect.name), handed_over)
        return kept, [row.key for row in gone]

    @reads
    def to_forget(self, connection: Connection, after: str) -> list[str]:
        """Returns deliveries whose copies the engine may still have."""
        noted = (
            select(engine_deletions.c.delivery_key)
            .where(engine_deletions.c.delivery_key > after)
            .order_by(engine_deletions.c.delivery_key)
            .limit(FORGOTTEN_AT_ONCE)
        )
        return list(connection.execute(noted).scalars())

    @writes
    def forgot(self, connection: Connection, keys: list[str]) -> None:
        connection.execute(delete(engine_deletions).where(engine_deletions.c.delivery_key.in_(keys)))

    @writes
    def expire(
        self, connection: Connection, now: float, idle_sessions_before: float, records_before: float
    ) -> int:
        """One step of what belongs to no webhook's history: duplicate keys, idempotency keys, sessions, audit
        notes, incidents that are closed, and replays of many that are over, or were planned and never begun."""
        replay_over = func.coalesce(replays.c.ended_at, replays.c.created_at) < milliseconds(records_before)
        gone = 0
        for table, key, over in (
            (audit, audit.c.id, audit.c.id < first_id_at("aud", records_before)),
            (incidents, incidents.c.id, incidents.c.closed_at < milliseconds(records_before)),
            (replays, replays.c.id, and_(replays.c.state != "running", replay_over)),
            (duplicate_keys, duplicate_keys.c.key, duplicate_keys.c.expires_at <= milliseconds(now)),
            (idempotency, idempotency.c.key, idempotency.c.expires_at <= milliseconds(now)),
            (sessions, sessions.c.id, sessions.c.seen_at < milliseconds(idle_sessions_before)),
        ):
            some = select(key).where(over).limit(STEP).scalar_subquery()
            gone += connection.execute(delete(table).where(over, key.in_(some))).rowcount
        return gone

    @writes
    def forget_volumes(self, connection: Connection, webhook_id: str, before: float) -> int:
        """One step of a webhook's counts, and of their sums; without an id the sums over all webhooks."""

        def some(connection: Connection, table: Table) -> int:
            old = table.c.webhook_id == webhook_id, table.c.minute < int(before // 60)
            last = select(table.c.minute).where(*old).order_by(table.c.minute).offset(STEP).limit(1)
            until = connection.execute(last).scalar_one_or_none()
            within = old if until is None else (*old, table.c.minute <= until)
            return connection.execute(delete(table).where(*within)).rowcount

        return some(connection, volumes) + some(connection, volume_rollups)

    async def count_before(self, webhook_id: str, moment: float) -> int:
        return await self._count(*_older(webhook_id, moment))

    async def count_bodies(
        self, webhook_id: str, since: float, moment: float, after: str, filtered: bool = False
    ) -> int:
        there = invocations.c.id > max(after, first_id_at("inv", since))
        return await self._count(*_older(webhook_id, moment), there, *_bodies(filtered))

    async def count_rows(self) -> int:
        return await self._count()

    @reads
    def _count(self, connection: Connection, *conditions: ColumnElement[bool]) -> int:
        return connection.scalar(select(func.count()).select_from(invocations).where(*conditions)) or 0


def _older(webhook_id: str, moment: float) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return invocations.c.webhook_id == webhook_id, invocations.c.id < first_id_at("inv", moment)


def _bodies(filtered: bool) -> list[ColumnElement[bool]]:
    of_these = [invocations.c.outcome == "filtered", UNUSUAL_INVOCATIONS] if filtered else []
    return [*of_these, invocations.c.body.is_not(None)]


def _own(document: str) -> OwnRetention | None:
    try:
        return msgspec.json.decode(document, type=OwnRetention)
    except (msgspec.ValidationError, msgspec.DecodeError):
        return None
