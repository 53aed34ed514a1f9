"""Deliveries that are due: claimed with a lease by the process that is first, and settled by the same."""

from itertools import accumulate
from operator import itemgetter
from typing import Any

import msgspec
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    ScalarSelect,
    bindparam,
    func,
    literal_column,
    select,
    update,
)

from postern.core.deliveries.delivery import DeliveryState, Logged, Started
from postern.core.documents import read_kept
from postern.core.history.invocation import Delivery
from postern.stores.calls.recorder import delivery_of
from postern.stores.sql.bulk import Parameters, execute_for_each, fetch
from postern.stores.sql.moments import milliseconds, seconds
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import ALIVE, QUEUED, UNUSUAL_DELIVERIES, deliveries, invocations, webhooks
from postern.stores.sql.wake import DUE, announce

LONGEST_LOG = 20
MOST_CAUGHT_UP = 1_000


class Deliveries(Repository):
    @writes
    def claim(
        self,
        connection: Connection,
        now: float,
        lease: float,
        limit: int,
        most_bytes: int | None = None,
        lane: str = "",
    ) -> list[Delivery]:
        """The due ones of a lane, now ours until the lease is over: a process that dies gives them back by doing nothing. Their bodies
        have as many bytes at most, or there is one only."""
        count = limit
        if most_bytes is not None:
            sizes = fetch(connection, _DUE_SIZES, {"now": milliseconds(now), "most": limit, "lane": lane})
            if not sizes:
                return []
            together = accumulate(size for (size,) in sizes)
            count = max(1, sum(size <= most_bytes for size in together))
        given = {"now": milliseconds(now), "until": milliseconds(now + lease), "most": count, "lane": lane}
        return [delivery_of(row) for row in sorted(fetch(connection, _CLAIM, given), key=itemgetter(0))]

    @reads
    def any_due(self, connection: Connection, now: float, lane: str = "") -> bool:
        """Whether ``claim`` would find something. Cheap enough to ask often: nothing touches the writer."""
        return bool(fetch(connection, _DUE_SIZES, {"now": milliseconds(now), "most": 1, "lane": lane}))

    @reads
    def lanes(self, connection: Connection) -> dict[str, float]:
        """Webhooks' own lanes in which something waits, each with the time at which its first is due."""
        return {lane: seconds(next_at) for lane, next_at in _lanes(connection) if lane}

    @reads
    def next_due(self, connection: Connection, lane: str) -> float | None:
        """When the first in a lane is due; None if nothing waits there."""
        first = fetch(connection, _FIRST_OF_LANE, {"lane": lane})
        return seconds(first[0][1]) if first else None

    @reads
    def get(self, connection: Connection, key: str) -> Delivery | None:
        row = connection.execute(select(deliveries).where(deliveries.c.key == key)).first()
        return None if row is None else delivery_of(row)

    async def started(
        self, delivery: Delivery, started: Started, now: float, ask_at: float | None = None
    ) -> None:
        """``ask_at``: when the engine, which can tell, is first asked how the runs ended."""
        attempt: Logged = {
            "at": now,
            "outcome": "started",
            "runs": started.runs,
            "workflows": list(started.workflows),
        }
        await self._settle(
            delivery,
            attempt,
            state="started",
            started_at=milliseconds(now),
            runs=started.runs,
            ask_at=None if ask_at is None else milliseconds(ask_at),
            # It is at work until its end where somebody tells that.
            at_work=None if ask_at is None else delivery.at_work,
        )

    async def again(
        self, delivery: Delivery, next_at: float, detail: str, now: float, may_run: bool = False
    ) -> None:
        """``may_run``: the engine may have taken it all the same, and so it is still at work."""
        attempt: Logged = {"at": now, "outcome": "unavailable", "detail": detail}
        at_work = delivery.at_work if may_run or delivery.may_run else None
        await self._settle(delivery, attempt, next_at=milliseconds(next_at), error=detail, at_work=at_work)

    async def failed(self, delivery: Delivery, detail: str, now: float) -> None:
        await self._settle(
            delivery,
            {"at": now, "outcome": "failed", "detail": detail},
            state="failed",
            error=detail,
            next_at=milliseconds(now),
        )

    async def _settle(self, delivery: Delivery, attempt: Logged, **values: Any) -> None:
        unchanged = {
            "state": "queued",
            "next_at": milliseconds(delivery.next_at),
            "started_at": None,
            "runs": None,
            "error": "",
            "ask_at": None,
            "lane": delivery.lane,
            "at_work": None,
        }
        log = msgspec.json.encode([*delivery.log, attempt][-LONGEST_LOG:])
        await self._writer.share(
            _settle_all,
            {**unchanged, **values, "of": delivery.key, "attempts": delivery.attempts + 1, "log": log},
            # A workflow often answers within milliseconds, and then both are one commit.
            urgent=False,
        )

    @writes
    def release(self, connection: Connection, now: float, lease: float) -> int:
        """Makes due at once what a process claimed that died. Only for the one process that serves this database."""
        claimed = update(deliveries).where(
            QUEUED,
            deliveries.c.next_at > milliseconds(now),
            deliveries.c.next_at <= milliseconds(now + lease),
        )
        due = claimed.values(next_at=milliseconds(now))
        lanes = [lane for lane, _ in _lanes(connection)]
        return sum(connection.execute(due.where(deliveries.c.lane == lane)).rowcount for lane in lanes)

    async def catch_up(self, now: float, lease: float, longest_wait: float) -> int:
        """Brings forward deliveries whose next try is further off than their wait is long: the clock was set back since. Returns
        how many. None comes sooner than a lease away: whoever has claimed it may be about to start it."""
        latest = milliseconds(now + lease + 5.0)
        far_off = QUEUED, deliveries.c.next_at > latest
        furthest = select(deliveries.c.key, deliveries.c.next_at, deliveries.c.log).where(*far_off)
        furthest = furthest.order_by(deliveries.c.next_at.desc()).limit(MOST_CAUGHT_UP)

        def look(connection: Connection) -> list[str]:
            keys: list[str] = []
            for lane, _ in _lanes(connection):
                rows = connection.execute(furthest.where(deliveries.c.lane == lane))
                keys += [row.key for row in rows if _is_too_far_off(row, now, lease, longest_wait)]
                if len(keys) >= MOST_CAUGHT_UP:
                    break
            return keys

        def job(connection: Connection) -> int:
            moved = update(deliveries).where(*far_off, deliveries.c.key.in_(keys))
            return connection.execute(moved.values(next_at=milliseconds(now + lease))).rowcount

        count = 0
        while keys := await self._database.read(look):
            count += await self._writer.write(job)
        return count

    async def bring_forward(
        self, now: float, after: float, under_way: list[str], most: int, lane: str = ""
    ) -> int:
        """Makes due at once what of a lane could not be started and would be tried again after that time. Returns how many."""
        waiting = (
            select(deliveries.c.key)
            .where(
                QUEUED,
                deliveries.c.lane == lane,
                deliveries.c.next_at > milliseconds(after),
                deliveries.c.error != "",
                deliveries.c.key.not_in(under_way),
            )
            .order_by(deliveries.c.key)
            .limit(most)
        )
        if not await self._database.read(lambda connection: connection.execute(waiting).first()):
            return 0
        chosen = waiting.with_for_update(skip_locked=True).scalar_subquery()
        due = update(deliveries).where(deliveries.c.key.in_(chosen)).values(next_at=milliseconds(now))
        return await self._writer.write(lambda connection: connection.execute(due).rowcount)

    @writes
    def unhold(
        self, connection: Connection, webhook_id: str, state: DeliveryState, now: float, limit: int
    ) -> int:
        """Makes the oldest of what is held due, or drops it. Returns how many. They keep their times and their order."""
        oldest = (
            select(deliveries.c.key)
            .where(deliveries.c.state == "held", UNUSUAL_DELIVERIES, deliveries.c.webhook_id == webhook_id)
            .order_by(deliveries.c.key)
            .limit(limit)
            .with_for_update()
        )
        # As a subquery, Postgres might ask it again for each row, and find others each time.
        keys = connection.scalars(oldest).all()
        moved = update(deliveries).where(deliveries.c.key.in_(keys), deliveries.c.state == "held")
        if state == "queued":
            announce(connection, DUE)
        return connection.execute(moved.values(state=state, released_at=milliseconds(now))).rowcount

    @reads
    def left_held(self, connection: Connection, before: float) -> list[str]:
        """The webhooks that have not been on hold since then at least, and have deliveries that are held."""
        waiting = select(deliveries.c.webhook_id).where(deliveries.c.state == "held", UNUSUAL_DELIVERIES)
        released = select(webhooks.c.id).where(webhooks.c.held.is_(False), webhooks.c.id.in_(waiting), ALIVE)
        released = released.where(webhooks.c.updated_at < milliseconds(before))
        return list(connection.scalars(released))

    @reads
    def held(self, connection: Connection, webhook_ids: list[str]) -> dict[str, int]:
        """Returns how many deliveries wait behind each hold."""
        among = deliveries.c.state == "held", UNUSUAL_DELIVERIES, deliveries.c.webhook_id.in_(webhook_ids)
        rows = connection.execute(
            select(deliveries.c.webhook_id, func.count()).where(*among).group_by(deliveries.c.webhook_id)
        )
        return {row[0]: row[1] for row in rows}

    @reads
    def backlog(self, connection: Connection, now: float, only: str | None = None) -> tuple[int, float]:
        """How many wait, up to 10,000, and for how long the oldest: one that was tried in vain, since its call or release.
        ``only``: of one lane."""
        firsts = {lane: first for lane, first in _lanes(connection) if only is None or lane == only}
        if not firsts:
            return 0, 0.0
        count = 0
        for lane in firsts:
            some = select(deliveries.c.key).where(QUEUED, deliveries.c.lane == lane).limit(10_000 - count)
            count += connection.scalar(select(func.count()).select_from(some.subquery())) or 0
            if count >= 10_000:
                break
        since = [row.released_at or row.created_at for row in waiting_longest(connection, list(firsts))]
        due = [first for lane, first in firsts.items() if not lane or not _waits_for_turn(connection, lane)]
        return count, max(0.0, now - seconds(min([*due, *since, milliseconds(now)])))

    @reads
    def tried_in_vain(self, connection: Connection, before: float) -> bool:
        """Whether one that is this old could not be started by the engine when it was last tried, by whichever process."""
        latest = milliseconds(before)
        return any(row.created_at <= latest for row in waiting_longest(connection, [""]))


def _waits_for_turn(connection: Connection, lane: str) -> bool:
    """Whether nothing but its turn keeps the first of a lane: so it is not due."""
    first = select(deliveries.c.turn).where(QUEUED, deliveries.c.lane == lane).order_by(deliveries.c.next_at)
    return connection.scalar(first.limit(1)) is not None


def waiting_longest(connection: Connection, lanes: list[str] | None = None) -> list[Any]:
    """Those among the last thousand that were tried in vain, or the last hundred of a webhook's own lane. More are not looked
    at: their next tries are the furthest off."""
    names = ("webhook_id", "invocation_id", "error", "attempts", "created_at", "released_at")
    query = (
        select(*(deliveries.c[name] for name in names)).where(QUEUED).order_by(deliveries.c.next_at.desc())
    )
    rows: list[Any] = []
    for lane in [lane for lane, _ in _lanes(connection)] if lanes is None else lanes:
        longest = query.where(deliveries.c.lane == lane).limit(100 if lane else 1_000)
        rows += [row for row in connection.execute(longest) if row.error]
    return rows


def _lanes(connection: Connection) -> list[tuple[str, int]]:
    """The lanes in which something waits, each with the time of its first."""
    return fetch(connection, _FIRST_OF_EACH_LANE, {})


# In the driver, as is what of their calls is read then: each start that is not waited for costs these, and SQLAlchemy
# takes longer for them than the database.
_ONE: ColumnElement[int] = literal_column("1")  # Postgres plans with it, and not with a parameter
_FIRST = select(deliveries.c.lane, deliveries.c.next_at).where(QUEUED).limit(_ONE)
_FIRST_OF_LANE = _FIRST.where(deliveries.c.lane == bindparam("lane")).order_by(deliveries.c.next_at)


def _lane(*conditions: ColumnElement[bool]) -> ScalarSelect[str]:
    first = select(deliveries.c.lane).where(QUEUED, *conditions)
    return first.order_by(deliveries.c.lane, deliveries.c.next_at).limit(_ONE).scalar_subquery()


# One look into the index for each lane, and one way to Postgres for all: there may be a thousand, and this is asked for each second.
_LANES = select(_lane(deliveries.c.lane >= "").label("lane")).cte("lanes", recursive=True)
_LANES = _LANES.union_all(select(_lane(deliveries.c.lane > _LANES.c.lane)).where(_LANES.c.lane.is_not(None)))
_ITS_FIRST = _FIRST.with_only_columns(deliveries.c.next_at).where(deliveries.c.lane == _LANES.c.lane)
_FIRST_OF_EACH_LANE = select(
    _LANES.c.lane, _ITS_FIRST.order_by(deliveries.c.next_at).scalar_subquery()
).where(_LANES.c.lane.is_not(None))
_IS_DUE = (
    QUEUED,
    deliveries.c.lane == bindparam("lane"),
    deliveries.c.next_at <= bindparam("now", type_=BigInteger),
)
_EARLIEST_FIRST = deliveries.c.next_at, deliveries.c.key
_DUE_SIZES = (
    select(func.coalesce(invocations.c.body_size, 0))
    .select_from(deliveries.outerjoin(invocations, invocations.c.id == deliveries.c.invocation_id))
    .where(*_IS_DUE)
    .order_by(*_EARLIEST_FIRST)
    .limit(bindparam("most", type_=BigInteger))
)
_CLAIM = (
    update(deliveries)
    .where(
        deliveries.c.key.in_(
            select(deliveries.c.key)
            .where(*_IS_DUE)
            .order_by(*_EARLIEST_FIRST)
            .limit(bindparam("most", type_=BigInteger))
            .with_for_update(skip_locked=True)
            .scalar_subquery()
        )
    )
    .values(next_at=bindparam("until"))
    .returning(deliveries)
)


def _is_too_far_off(row: Any, now: float, lease: float, longest_wait: float) -> bool:
    log = read_kept(row.log or b"[]", list[Logged], [])
    # One that was never tried is moved by a claim only, by a lease. Clocks of several machines may differ a little.
    return not log or log[-1]["at"] > now + lease or seconds(row.next_at) > now + longest_wait + lease


_SETTLED = ("state", "next_at", "started_at", "runs", "error", "attempts", "log", "ask_at", "lane", "at_work")
_SETTLE = (
    update(deliveries)
    .where(deliveries.c.key == bindparam("of"), deliveries.c.state == "queued")
    .values({name: bindparam(name) for name in _SETTLED})
)


def _settle_all(connection: Connection, settled: list[Parameters]) -> list[None]:
    execute_for_each(connection, _SETTLE, sorted(settled, key=key_of))
    return [None] * len(settled)


def key_of(parameters: Parameters) -> str:
    """All processes write in this order, so that no two wait for each other in a circle."""
    return str(parameters["of"])
