"""The traces of a clock that was ahead: calls with ids of a time that is yet to come, and times for which nobody may wait.

Calls stay as they are recorded. Until their time has come, they count as received when it was noticed.
"""

from collections.abc import Iterator

from sqlalchemy import Connection, delete, exists, func, select, update

from postern import identity
from postern.identity import first_id_at
from postern.stores.calls.recorder import count_volume
from postern.stores.chores import put_down
from postern.stores.history.volumes import WITHIN, take_sums_back
from postern.stores.sql.moments import milliseconds, seconds
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import (
    chores,
    deliveries,
    incidents,
    invocations,
    listeners,
    tallies,
    volumes,
    webhooks,
)
from postern.stores.sql.upsert import insert_first
from postern.stores.webhooks.versions import next_epoch

CHORE, FINDABLE = "clock", "findable"
LONGEST_LEASE = 3_600.0
"""Seconds: nothing that is claimed, or is to be tried or asked again, waits for longer."""
_NOT_LATER = (
    *((incidents.c[name], 0.0) for name in ("opened_at", "first_at", "last_at", "closed_at", "acknowledged_at")),
    (tallies.c.last_at, 0.0),
    (incidents.c.tell_at, LONGEST_LEASE),
    (listeners.c.lease_until, 600.0),
    (deliveries.c.ask_at, 900.0),
)  # fmt: skip
"""Columns, and by how much they may be ahead."""
_COUNTED = volumes.c.webhook_id.in_(select(webhooks.c.id))


class Ahead(Repository):
    @reads
    def newest(self, connection: Connection, after: float) -> str | None:
        """The newest call, if its time is after that one and nobody has noticed so."""
        return _unnoticed(connection, after)

    @writes
    def take_back(self, connection: Connection, now: float, since: float) -> None:
        """Has nobody wait for a time that only a wrong clock could have set, and counts as of now what is counted later.
        ``since``: the earliest time that calls may have had after it was set back."""
        newest = _unnoticed(connection, now)
        if newest is not None:
            put_down(connection, CHORE, newest, now)
        # Also if one that is further ahead was noticed before.
        are_ahead = times_ahead(connection) is not None
        _make_findable_again(
            connection, first_id_at("inv", since), first_id_at("inv", now) if are_ahead else ""
        )
        for column, ahead in _NOT_LATER:
            later = update(column.table).where(column > milliseconds(now + ahead))
            connection.execute(later.values({column.name: milliseconds(now)}))
        changed_later = webhooks.c.updated_at > milliseconds(now)
        if connection.scalar(select(exists().where(changed_later))):
            values = {"updated_at": milliseconds(now), "epoch": next_epoch(connection)}
            connection.execute(update(webhooks).where(changed_later).values(values))
        minute = int(now // 60)
        take_sums_back(connection, minute)
        later_ones = _COUNTED, volumes.c.minute > minute
        counts = (func.sum(volumes.c[name]) for name in ("calls", *WITHIN))
        query = select(volumes.c.webhook_id, volumes.c.code, *counts).where(*later_ones)
        rows = connection.execute(query.group_by(volumes.c.webhook_id, volumes.c.code)).all()
        connection.execute(delete(volumes).where(*later_ones))
        count_volume(connection, {(owner, minute, code): [*map(int, sums), 0] for owner, code, *sums in rows})


def _make_findable_again(connection: Connection, since: str, later: str) -> None:
    """The calls with later times come first, and then the others, from where it was left, or from the first since then."""
    insert_first(connection, chores, {"name": FINDABLE, "at": 0, "reached": ""})
    query = select(chores.c.reached, chores.c.summary).where(chores.c.name == FINDABLE).with_for_update()
    row = connection.execute(query).one()
    left_at = min(row.summary or row.reached or "inv_", since)
    values = {"reached": later, "summary": left_at} if later else {"reached": left_at}
    if later or row.reached > left_at:
        connection.execute(update(chores).where(chores.c.name == FINDABLE).values(values))


def _unnoticed(connection: Connection, after: float) -> str | None:
    newest: str = connection.scalar(select(func.max(invocations.c.id))) or ""
    noticed = select(chores.c.reached).where(chores.c.name == CHORE, chores.c.at <= milliseconds(after))
    return newest if newest > max(first_id_at("inv", after), connection.scalar(noticed) or "") else None


def times_ahead(connection: Connection) -> tuple[str, str] | None:
    """If there are calls whose time is yet to come: the first id of when that was noticed, and the first id of theirs."""
    row = connection.execute(select(chores.c.at, chores.c.reached).where(chores.c.name == CHORE)).first()
    yet_to_come = first_id_at("inv", identity.clock() + 1.0)
    return (
        None
        if row is None or row.reached < yet_to_come
        else (first_id_at("inv", seconds(row.at)), yet_to_come)
    )


Stretch = tuple[str | None, str | None]
"""The ids from the first on, and before the second."""


def newest_first(connection: Connection, before: str | None) -> Iterator[Stretch]:
    """The stretches of the history in the order in which calls came, the newest first, from before that call on."""
    ahead = times_ahead(connection)
    if ahead is None:
        yield None, before
        return
    noticed, yet_to_come = ahead
    since = before is None or noticed < before < yet_to_come
    if since:
        yield noticed, before or yet_to_come
    if since or (before is not None and before >= yet_to_come):
        yield yet_to_come, None if since else before
    yield None, noticed if before is None else min(before, noticed)
