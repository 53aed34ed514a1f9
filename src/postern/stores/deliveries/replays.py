"""Replays of many calls. A step queues deliveries and moves the position in one commit: a crash repeats nothing."""

from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, and_, case, exists, func, insert, or_, select, update

from postern.core.access.audit import AuditEntry
from postern.core.deliveries.delivery import StartAgain
from postern.core.history.invocation import HistoryFilter
from postern.core.history.replay import Replay, ReplayState, Values
from postern.stores.access.audit import changed_one, write_note
from postern.stores.calls.recorder import emit
from postern.stores.history.filtering import (
    conditions_of,
    has_completed,
    was_so_at,
    was_started,
    was_superseded,
)
from postern.stores.history.looking import last_looked_at, look_up
from postern.stores.sql.bulk import Parameters
from postern.stores.sql.moments import milliseconds, row_of, value_of
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import bookmarks, deliveries, invocations, replays, webhooks
from postern.stores.sql.wake import DUE, announce

_filter = msgspec.json.Decoder(HistoryFilter)


class Replays(Repository):
    async def count(self, criteria: HistoryFilter, most: int) -> tuple[int, int]:
        """Returns how many calls the filter finds, and how many of them have completed."""

        def query(connection: Connection) -> tuple[int, int]:
            calls = (
                select(case((has_completed(), 1), else_=0).label("completed"))
                .where(*_replayable(connection, criteria, all_of_them=True))
                .limit(most)
                .subquery()
            )
            counted = select(func.count(), func.coalesce(func.sum(calls.c.completed), 0)).select_from(calls)
            every, completed = connection.execute(counted).one()
            return int(every), int(completed)

        return await look_up(self._database, criteria, query)

    @writes
    def add(self, connection: Connection, replay: Replay, note: AuditEntry) -> None:
        row = row_of(replay, wanted=msgspec.json.encode(replay.wanted), next_at=0)
        connection.execute(insert(replays).values(row))
        write_note(connection, note)

    @reads
    def get(self, connection: Connection, replay_id: str) -> Replay | None:
        row = connection.execute(select(replays).where(replays.c.id == replay_id)).first()
        return None if row is None else _replay_of(row)

    @reads
    def page(self, connection: Connection, limit: int, before: str | None = None) -> list[Replay]:
        statement = select(replays).order_by(replays.c.id.desc()).limit(limit)
        if before is not None:
            statement = statement.where(replays.c.id < before)
        return [_replay_of(row) for row in connection.execute(statement)]

    @reads
    def outcomes(self, connection: Connection, replay_ids: list[str]) -> dict[str, dict[str, int]]:
        """Returns by replay how many of its deliveries are in each state."""
        of_replay = deliveries.c.replay_id
        counted = (
            select(of_replay, deliveries.c.state, func.count())
            .where(of_replay.in_(replay_ids))
            .group_by(of_replay, deliveries.c.state)
        )
        counts: dict[str, dict[str, int]] = {each_id: {} for each_id in replay_ids}
        for replay_id, state, count in connection.execute(counted):
            counts[replay_id][state] = count
        return counts

    async def begin(self, replay_id: str, fields: Values, by: str, now: float, note: AuditEntry) -> bool:
        values = {
            "state": "running",
            "fields": fields,
            "started_at": milliseconds(now),
            "started_by": by,
            "next_at": milliseconds(now),
        }
        return await self._change_state(replay_id, ("planned",), values, note)

    async def end(
        self, replay_id: str, state: ReplayState, now: float, note: AuditEntry | None = None
    ) -> bool:
        values: Parameters = {"state": state, "ended_at": milliseconds(now)}
        if state == "done":
            # Also those that were not met any more: their webhook was disabled or deleted meanwhile, they are gone, or
            # have completed.
            passed_over = replays.c.total - replays.c.done
            values["skipped"] = case((passed_over > replays.c.skipped, passed_over), else_=replays.c.skipped)
        return await self._change_state(replay_id, ("planned", "running"), values, note)

    @writes
    def _change_state(
        self,
        connection: Connection,
        replay_id: str,
        states: tuple[str, ...],
        values: Parameters,
        note: AuditEntry | None,
    ) -> bool:
        changed = update(replays).where(replays.c.id == replay_id, replays.c.state.in_(states))
        return changed_one(connection, changed.values(values), note)

    async def claim(self, now: float, lease: float) -> Replay | None:
        # One that ends later than any lease can was taken before the clock was set back.
        free = or_(replays.c.next_at <= milliseconds(now), replays.c.next_at > milliseconds(now + 2 * lease))
        due = select(replays.c.id).where(replays.c.state == "running", free)

        def look(connection: Connection) -> bool:
            return connection.execute(due.limit(1)).first() is not None

        def job(connection: Connection) -> Replay | None:
            first = due.order_by(replays.c.next_at).limit(1).with_for_update(skip_locked=True)
            claimed = (
                update(replays)
                .where(replays.c.id.in_(first.scalar_subquery()))
                .values(next_at=milliseconds(now + lease))
            )
            row = connection.execute(claimed.returning(replays)).first()
            return None if row is None else _replay_of(row)

        return await self._writer.write(job) if await self._database.read(look) else None

    @writes
    def release(self, connection: Connection, now: float) -> None:
        """Lets running replays go on at once. Only for the one process that serves this database, after a crash."""
        under_way = update(replays).where(replays.c.state == "running", replays.c.next_at > milliseconds(now))
        connection.execute(under_way.values(next_at=milliseconds(now)))

    async def next_of(self, replay: Replay, limit: int, now: float) -> tuple[list[str], str | None]:
        """Looks through a bounded part of the history at a time, however rare what is wanted is in it."""

        def query(connection: Connection) -> tuple[list[str], str | None]:
            after = invocations.c.id > replay.position
            not_meant = [] if replay.include_completed else [~has_completed()]
            # Calls that another plan, made of the same list, has started meanwhile are not started once more, and those that have
            # failed since are not among those that were counted.
            planned_at = milliseconds(replay.created_at)
            not_meant.append(was_so_at(planned_at, replay.wanted, milliseconds(now)))
            if replay.wanted.bookmarked:
                marked = bookmarks.c.at <= planned_at
                not_meant.append(invocations.c.id.in_(select(bookmarks.c.invocation_id).where(marked)))
            ids = select(invocations.c.id).order_by(invocations.c.id)
            if replay.wanted.webhook_id is not None:
                ids = ids.where(invocations.c.webhook_id == replay.wanted.webhook_id)
            horizon = last_looked_at(connection, replay.wanted, ids.where(after))
            statement = (
                select(invocations.c.id)
                .where(after, *_replayable(connection, replay.wanted), *not_meant)
                .order_by(invocations.c.id)
            )
            if horizon is not None:
                statement = statement.where(invocations.c.id <= horizon)
            next_ids = list(connection.execute(statement.limit(limit)).scalars())
            return next_ids, next_ids[-1] if len(next_ids) == limit else horizon

        return await look_up(self._database, replay.wanted, query)

    @writes
    def step(
        self,
        connection: Connection,
        replay: Replay,
        starts: list[StartAgain],
        skipped: int,
        position: str,
        now: float,
        lease: float,
    ) -> bool:
        here = update(replays).where(
            replays.c.id == replay.id, replays.c.state == "running", replays.c.position == replay.position
        )
        if not changed_one(connection, here.values(position=position, next_at=milliseconds(now + lease))):
            return False
        asked_by = replay.started_by or replay.created_by
        made = [emit(connection, start, now, asked_by, replay.id) for start in starts]
        done = sum(delivery is not None for delivery in made)
        counted = {"done": replays.c.done + done, "skipped": replays.c.skipped + skipped + len(made) - done}
        connection.execute(update(replays).where(replays.c.id == replay.id).values(counted))
        if done:
            announce(connection, DUE)
        return True


def _replayable(
    connection: Connection, criteria: HistoryFilter, all_of_them: bool = False
) -> list[ColumnElement[bool]]:
    conditions, _ = conditions_of(connection, criteria, all_of_them)
    admitted = and_(invocations.c.outcome.in_(("rejected", "filtered")), was_started())
    meant = "filtered" if "filtered" in (criteria.status, criteria.code) else "accepted"
    conditions.append(or_(invocations.c.outcome == "accepted", invocations.c.outcome == meant, admitted))
    if criteria.status != "superseded":  # newer ones were started in their place
        conditions.append(~was_superseded())
    if criteria.webhook_id is None:  # the plan for one that starts nothing is refused
        starts_nothing = exists().where(
            webhooks.c.id == invocations.c.webhook_id,
            or_(webhooks.c.enabled.is_(False), webhooks.c.deleted_at.is_not(None)),
        )
        conditions.append(~starts_nothing)
    return conditions


def _replay_of(row: Row[Any]) -> Replay:
    return value_of(Replay, row, wanted=_filter.decode(row.wanted))
