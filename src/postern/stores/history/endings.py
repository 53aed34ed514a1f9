"""Facts known after a call was recorded: the answer that its caller heard, and how its runs ended."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import Connection, String, bindparam, case, func, literal_column, null, select, update

from postern.core.deliveries.delivery import DeliveryState, End
from postern.core.history.invocation import AnswerHeard, HistoryFilter
from postern.core.history.volume import LATENCY_BOUNDS_MS, end_name, latency_bucket
from postern.stores.calls.recorder import count_volume
from postern.stores.history.filtering import conditions_of
from postern.stores.sql.bulk import Parameters, among, execute_for_each, in_the_driver
from postern.stores.sql.moments import milliseconds, row_of, seconds
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import answers, deliveries, invocations
from postern.stores.sql.upsert import insert_missing

EndCounts = Mapping[tuple[str, str, int], int]
"""Counts by webhook, name and latency bucket."""

_NOT_OVER = deliveries.c.state.in_([literal_column("'started'"), literal_column("'lost'")])
_END = (
    update(deliveries)
    .where(deliveries.c.key == bindparam("of"), _NOT_OVER)
    .values(
        state=bindparam("to"), ended_at=bindparam("at"), error=bindparam("why"), ask_at=null(), at_work=null()
    )
)
_ASKED = (
    update(deliveries)
    .where(deliveries.c.key == bindparam("of"), deliveries.c.ask_at.is_not(None))
    .values(
        state=bindparam("to"),
        ask_at=bindparam("at"),
        at_work=case((bindparam("to", type_=String) != "lost", deliveries.c.at_work)),
    )
)
MOST_COUNTED = 1_000


class Claimed(NamedTuple):
    state: DeliveryState
    started_at: float


class EndingsWritten(NamedTuple):
    """Keys of deliveries."""

    early: set[str]
    """Not written, because the start is not written yet: the end is to be noted again."""
    now: set[str]
    """Written now. A delivery in neither set had ended before, or was never started."""
    lanes: set[str]
    """Where others may go now: the turn of one is over."""


class EndingStore(Repository):
    @writes
    def note(
        self,
        connection: Connection,
        answered: list[AnswerHeard],
        ends: Mapping[str, End],
        counted: EndCounts,
        now: float,
    ) -> EndingsWritten:
        if answered:
            _keep(connection, answered)
        return write_ends(connection, ends, now, counted)

    async def claim_to_ask(self, now: float, lease: float, limit: int) -> dict[str, Claimed]:
        due = deliveries.c.ask_at <= milliseconds(now), deliveries.c.ask_at.is_not(None)
        first = select(deliveries.c.key).where(*due).order_by(deliveries.c.ask_at).limit(limit)
        keys = await self._database.read(lambda connection: list(connection.execute(first).scalars()))
        if not keys:
            return {}
        claimed = (
            update(deliveries)
            .where(*due, deliveries.c.key.in_(keys))
            .values(ask_at=milliseconds(now + lease))
            .returning(deliveries.c.key, deliveries.c.state, deliveries.c.started_at)
        )

        def job(connection: Connection) -> dict[str, Claimed]:
            return {key: Claimed(state, seconds(at)) for key, state, at in connection.execute(claimed)}

        return await self._writer.write(job)

    @writes
    def ask_again(self, connection: Connection, states: Mapping[str, tuple[DeliveryState, float]]) -> None:
        """Writes down that these have not ended: their states, and when the engine is asked again."""
        values = [{"of": key, "to": to, "at": milliseconds(at)} for key, (to, at) in sorted(states.items())]
        connection.execute(_ASKED, values)

    @reads
    def lost(self, connection: Connection) -> int:
        """Returns how many calls are lost now, counted up to 1,000, without those that were replayed."""
        conditions, _ = conditions_of(connection, HistoryFilter(status="lost"), all_of_them=True)
        calls = select(invocations.c.id).where(*conditions).limit(MOST_COUNTED).subquery()
        return connection.scalar(select(func.count()).select_from(calls)) or 0


def write_ends(
    connection: Connection, ends: Mapping[str, End], now: float, counted: EndCounts | None = None
) -> EndingsWritten:
    written, ended = _end(connection, ends, now) if ends else (EndingsWritten(set(), set(), set()), Counter())
    _count(connection, counted or {}, ended, int(now // 60))
    return written


def _keep(connection: Connection, answered: list[AnswerHeard]) -> None:
    inserting = insert_missing(answers, connection.dialect.name)
    execute_for_each(connection, inserting, list(map(row_of, answered)))


def _end(
    connection: Connection, ends: Mapping[str, End], now: float
) -> tuple[EndingsWritten, Counter[tuple[str, str, int]]]:
    written = EndingsWritten(set(), set(), set())
    ended: Counter[tuple[str, str, int]] = Counter()
    values: list[Parameters] = []
    for key, webhook_id, state, started_at, lane in _as_they_are(connection, list(ends)):
        end = ends[key]
        if state == "queued":
            written.early.add(key)
        elif state in ("started", "lost"):
            written.now.add(key)
            written.lanes.update([lane] if lane else [])
            at = min(end.at, now)  # the clock of the engine's machine may be ahead
            values.append({"of": key, "to": end.state, "at": milliseconds(at), "why": end.error})
            ended[webhook_id, end_name(end.state), latency_bucket(at - seconds(started_at))] += 1
    execute_for_each(connection, _END, values)
    return written, ended


def _as_they_are(connection: Connection, keys: list[str]) -> list[tuple[str, str, str, int, str | None]]:
    """Key, webhook, state, time of the start and lane if its turn is not over, in the order of the keys, and nobody else writes to them meanwhile. In
    the driver: hundreds are asked for ten times a second, and SQLAlchemy takes longer for that than the database."""
    are_these, argument = among(connection, keys)
    lane = "CASE WHEN at_work THEN lane END"
    text = f"SELECT key, webhook_id, state, started_at, {lane} FROM deliveries WHERE key {are_these} ORDER BY key"
    if connection.dialect.name != "sqlite":
        text += " FOR UPDATE"
    with in_the_driver(connection, text) as driver:
        rows: list[tuple[str, str, str, int, str | None]] = driver.execute(text, (argument,)).fetchall()
    return rows


def _count(
    connection: Connection, counted: EndCounts, ended: Counter[tuple[str, str, int]], minute: int
) -> None:
    volume: dict[tuple[str, int, str], list[int]] = {}
    for (webhook_id, name, bucket), count in (Counter(counted) + ended).items():
        counts = volume.setdefault((webhook_id, minute, name), [0] * (len(LATENCY_BOUNDS_MS) + 2))
        counts[0] += count
        counts[1 + bucket] += count
    if volume:
        count_volume(connection, volume)
