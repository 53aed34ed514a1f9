"""Claims in a lane whose webhook has turns (`core/webhooks/turns.py`). Those at work are counted in the rows, in the transaction of
the claim: so it is exact over several processes, and after one was killed."""

from hashlib import blake2s
from itertools import accumulate
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    and_,
    bindparam,
    case,
    exists,
    func,
    literal_column,
    or_,
    select,
    true,
    update,
)

from postern.core.access.audit import AuditEntry
from postern.core.history.invocation import Delivery
from postern.core.webhooks.turns import TurnRules, WaitsBehind
from postern.stores.access.audit import changed_one
from postern.stores.calls.recorder import delivery_of
from postern.stores.sql.bulk import Parameters, fetch
from postern.stores.sql.moments import milliseconds, seconds
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import QUEUED, deliveries, invocations
from postern.stores.sql.wake import DUE, announce

MOST_SUPERSEDED = 1_000
"""Rows in one step: calls are stored between the steps."""
MOST_COUNTED = 1_000


class TurnStore(Repository):
    @reads
    def any_due(self, connection: Connection, lane: str, turns: TurnRules, tells: bool, now: float) -> bool:
        """Whether ``claim`` would find something."""
        return bool(_next(connection, lane, turns, tells, now, 1))

    @writes
    def claim(
        self,
        connection: Connection,
        lane: str,
        turns: TurnRules,
        tells: bool,
        now: float,
        lease: float,
        most: int,
        most_bytes: int,
    ) -> list[Delivery]:
        """Those whose turn it is, now ours until the lease is over. ``tells``: the engine says when runs end, and until then they
        are at work."""
        if connection.dialect.name != "sqlite":
            number = int.from_bytes(blake2s(lane.encode(), digest_size=8).digest(), "big", signed=True)
            connection.execute(select(func.pg_advisory_xact_lock(number)))
        due = _next(connection, lane, turns, tells, now, most)
        together = accumulate(size for _, size, _ in due)
        count = max(1, sum(size <= most_bytes for size in together))
        given = {"now": milliseconds(now), "until": milliseconds(now + lease)}
        claimed = []
        for key, _, may_run in sorted(due[:count]):
            for row in fetch(connection, _TAKE, given | {"of": key}):
                claimed.append(delivery_of(row))
                claimed[-1].may_run = may_run
        return claimed

    @writes
    def supersede(self, connection: Connection, by: Delivery) -> list[str]:
        """Records that some of those before it are not started, because this one is. Returns the invocations."""
        older = (
            select(deliveries.c.key)
            .where(*_WAITS_WITH, deliveries.c.place <= by.place, deliveries.c.key != by.key)
            .order_by(deliveries.c.key)
            .limit(MOST_SUPERSEDED)
            .with_for_update()
        )
        keys = connection.scalars(older, {"lane": by.lane, "turn": by.turn}).all()
        given_up = update(deliveries).where(deliveries.c.key.in_(keys))
        given_up = given_up.values(state="superseded", superseded_by=by.key)
        return list(connection.scalars(given_up.returning(deliveries.c.invocation_id))) if keys else []

    @writes
    def start_now(self, connection: Connection, key: str, now: float, note: AuditEntry) -> bool:
        """Lets it go out of its turn. False if it waits for none."""
        waits = update(deliveries).where(
            deliveries.c.key == key, QUEUED, deliveries.c.turn.is_not(None), _IS_FREE
        )
        announce(connection, DUE)
        return changed_one(connection, waits.values(turn=None, next_at=milliseconds(now)), note)

    @reads
    def ahead(self, connection: Connection, delivery: Delivery, tells: bool) -> WaitsBehind:
        """Says for which others a waiting delivery waits."""
        given: Parameters = {"lane": delivery.lane, "turn": delivery.turn, "tells": int(tells)}
        before = select(deliveries.c.key).where(*_WAITS_WITH, deliveries.c.place < delivery.place)
        newer = select(deliveries.c.key).where(*_WAITS_WITH, deliveries.c.place > delivery.place)
        counted = [
            connection.scalar(select(func.count()).select_from(some.limit(MOST_COUNTED).subquery()), given)
            or 0
            for some in (before, newer)
        ]
        first = connection.scalar(
            select(func.min(deliveries.c.created_at)).where(
                *_WAITS_WITH, deliveries.c.place <= delivery.place
            ),
            given,
        )
        holder = connection.execute(
            select(deliveries.c.key, deliveries.c.started_at).where(
                _at_work(deliveries), deliveries.c.turn == bindparam("turn")
            ),
            given,
        ).first()
        return WaitsBehind(
            before=counted[0],
            newer=counted[1],
            at_work=fetch(connection, _COUNT, {"lane": delivery.lane, "tells": int(tells)})[0][0],
            first_at=seconds(first) if first is not None else delivery.created_at,
            holder=None if holder is None else holder.key,
        )


def _next(
    connection: Connection, lane: str, turns: TurnRules, tells: bool, now: float, most: int
) -> list[tuple[str, int, bool]]:
    """The keys of those that go next, with the sizes of their bodies, and whether their process died while they were started."""
    given: Parameters = {"lane": lane, "now": milliseconds(now), "tells": int(tells), "most": most}
    going = [(key, size, True) for key, _, size in fetch(connection, _RAN_OUT, given)]
    going += [(key, size, False) for key, _, size in fetch(connection, _NO_TURN, given)]
    room = most - len(going)
    if turns.at_once is not None and room > 0:
        room = min(room, turns.at_once - fetch(connection, _COUNT, given)[0][0])
    if room <= 0:
        return going[:most]
    given["most"] = room
    if turns.quiet is not None:
        # A time that is further off than any wait was written by a clock that was set back since.
        soon, late = milliseconds(now - turns.quiet), milliseconds(now + turns.quiet)
        first = milliseconds(now - turns.longest)
        rows = fetch(
            connection, _NEWEST, given | {"quiet_since": soon, "not_after": late, "first_before": first}
        )
    else:
        rows = fetch(connection, _HEADS if turns.in_order else _ANY, given)
    # Two processes may have given the same place: the first by its key goes, or with `_NEWEST` the last.
    chosen: dict[str, tuple[str, int, bool]] = {}
    for key, turn, size in rows:
        if not turns.in_order:
            going.append((key, size, False))
        elif turn not in chosen or (turns.quiet is not None and key > chosen[turn][0]):
            chosen[turn] = key, size, False
    return [*going, *chosen.values()]


def _in_turn(rows: Any) -> Any:
    """All that waits, also behind a hold: while that ends, step by step, the order is that of all. It is the condition of an index, to
    be repeated in what is to use it."""
    states: list[Any] = [literal_column("'queued'"), literal_column("'held'")]
    return and_(rows.c.state.in_(states), rows.c.lane != literal_column("''"))


_SIZE = func.coalesce(
    select(invocations.c.body_size).where(invocations.c.id == deliveries.c.invocation_id).scalar_subquery(), 0
)
_MOST = bindparam("most", type_=BigInteger)
_IS_FREE = or_(deliveries.c.at_work.is_(None), deliveries.c.at_work.is_not(true()))
_HERE = deliveries.c.lane == bindparam("lane")
# A sum, so that no index of times is used: all that waits is due.
_IS_DUE = deliveries.c.next_at + 0 <= bindparam("now", type_=BigInteger)
_IS_AT_WORK: Any = literal_column("deliveries.at_work")
_IN_LINE = _in_turn(deliveries), _HERE
_WAITS_WITH = *_IN_LINE, deliveries.c.turn == bindparam("turn"), _IS_FREE


def _at_work(rows: Any) -> Any:
    """A lease that ran out still counts: its run may be at work, and it goes on before any other."""
    tells = bindparam("tells", type_=Integer) == 1
    # As the index says it: SQLAlchemy would compare it with 1, and SQLite read the whole table.
    at_work: Any = literal_column(f"{rows.name}.at_work")
    return and_(at_work, rows.c.lane == bindparam("lane"), or_(rows.c.state == "queued", tells))


_other = deliveries.alias("other")
_HAS_ONE_AT_WORK = exists().where(_at_work(_other), _other.c.turn == deliveries.c.turn)
_COUNT = select(func.count()).select_from(deliveries).where(_at_work(deliveries))
_CHOSEN = select(deliveries.c.key, deliveries.c.turn, _SIZE)
_RAN_OUT = (
    # Not `state = ?`, for which the index of all that waits would be used.
    _CHOSEN.where(_IS_AT_WORK, _HERE, func.coalesce(deliveries.c.state, "") == "queued", _IS_DUE)
    .order_by(deliveries.c.key)
    .limit(_MOST)
)
_NO_TURN = (
    _CHOSEN.where(*_IN_LINE, QUEUED, deliveries.c.turn.is_(None), _IS_DUE)
    .order_by(deliveries.c.place, deliveries.c.key)
    .limit(_MOST)
)
_WAITING = _CHOSEN.where(_in_turn(deliveries), QUEUED, _IS_DUE, _IS_FREE)
_ANY = (
    _WAITING.where(_HERE, deliveries.c.turn.is_not(None))
    .order_by(deliveries.c.turn, deliveries.c.place, deliveries.c.key)
    .limit(_MOST)
)


_ends = (  # the first and the last place of each turn: one pass over the index
    select(
        deliveries.c.lane,
        deliveries.c.turn,
        func.min(deliveries.c.place).label("first"),
        func.max(deliveries.c.place).label("last"),
    )
    .where(*_IN_LINE, deliveries.c.turn.is_not(None))
    .group_by(deliveries.c.lane, deliveries.c.turn)
    .subquery("ends")
)


def _at(place: Any) -> Any:
    """The lane is that of the turn, and not given: so each is looked up, and not all that wait."""
    is_there = and_(
        _ends.c.lane == deliveries.c.lane, _ends.c.turn == deliveries.c.turn, place == deliveries.c.place
    )
    return _WAITING.join_from(_ends, deliveries, is_there).where(~_HAS_ONE_AT_WORK)


_HEADS = _at(_ends.c.first).order_by(deliveries.c.key).limit(_MOST)
_first = deliveries.alias("first")
_WAITS_FOR_LONG = exists().where(
    _in_turn(_first), _first.c.lane == bindparam("lane"), _first.c.turn == deliveries.c.turn,
    _first.c.place == _ends.c.first, _first.c.created_at <= bindparam("first_before", type_=BigInteger),
)  # fmt: skip
_NEWEST = (
    _at(_ends.c.last)
    .where(
        or_(
            deliveries.c.created_at <= bindparam("quiet_since", type_=BigInteger),
            deliveries.c.created_at >= bindparam("not_after", type_=BigInteger),
            _WAITS_FOR_LONG,
        )
    )
    .order_by(deliveries.c.key)
    .limit(_MOST)
)
_TAKE = (
    update(deliveries)
    .where(deliveries.c.key == bindparam("of"), QUEUED, _IS_DUE)
    .values(
        next_at=bindparam("until"),
        at_work=case((deliveries.c.turn.is_not(None), true())),
        # From now on it may be tried, as if it had been on hold before.
        released_at=case(
            (and_(deliveries.c.turn.is_not(None), deliveries.c.attempts == 0, _IS_FREE), bindparam("now")),
            else_=deliveries.c.released_at,
        ),
    )
    .returning(deliveries)
)
