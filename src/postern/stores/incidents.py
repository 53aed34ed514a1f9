"""Incidents, and what alarms are judged by: counts of the last minutes, starts that failed, the last call."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    case,
    false,
    func,
    literal_column,
    or_,
    select,
    update,
)

from postern.core.access.audit import AuditEntry
from postern.core.alarms import REFUSED, RUN_FAILED, Found, Incident, Minutes
from postern.core.channels import Told
from postern.core.history.volume import ANSWER, OUTCOMES
from postern.identity import first_id_at, new_id, time_of
from postern.stores.access.audit import changed_one
from postern.stores.activity import called_since
from postern.stores.deliveries.deliveries import waiting_longest
from postern.stores.history.volumes import QUARTER, parts
from postern.stores.sql.bulk import Parameters
from postern.stores.sql.moments import milliseconds, row_of, seconds, stored, value_of
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import (
    ALIVE,
    UNUSUAL_DELIVERIES,
    deliveries,
    incidents,
    secrets,
    volume_rollups,
    volumes,
    webhooks,
)
from postern.stores.sql.upsert import insert_first

MOST_OPEN = 2_000
TELL_LEASE = 60.0
"""Seconds after which another process may tell an incident that this one has begun to tell."""

_OPEN = incidents.c.closed_at.is_(None)
_TOLD = msgspec.json.Decoder(dict[str, Told])
_GOOD = volumes.c.code.in_(["accepted", "duplicate"])


class Incidents(Repository):
    @reads
    def open(self, connection: Connection) -> list[Incident]:
        found = select(incidents).where(_OPEN).order_by(incidents.c.id.desc()).limit(MOST_OPEN)
        return _all(connection, found)

    @reads
    def page(
        self, connection: Connection, limit: int, before: str | None, webhook_id: str | None, only_open: bool
    ) -> list[Incident]:
        """Newest first."""
        wanted: list[ColumnElement[bool]] = [_OPEN] if only_open else []
        if webhook_id is not None:
            wanted.append(incidents.c.webhook_id == webhook_id)
        if before is not None:
            wanted.append(incidents.c.id < before)
        return _all(connection, select(incidents).where(*wanted).order_by(incidents.c.id.desc()).limit(limit))

    @reads
    def get(self, connection: Connection, incident_id: str) -> Incident | None:
        found = _all(connection, select(incidents).where(incidents.c.id == incident_id))
        return found[0] if found else None

    @reads
    def last_closed(self, connection: Connection, webhook_id: str, kind: str) -> float:
        """When the last incident of this kind closed; 0.0 if there was none."""
        closed = select(func.max(incidents.c.closed_at))
        closed = closed.where(incidents.c.webhook_id == webhook_id, incidents.c.kind == kind)
        return seconds(connection.scalar(closed) or 0)

    @writes
    def begin(
        self, connection: Connection, webhook_id: str, kind: str, found: Found, now: float
    ) -> str | None:
        """The new incident's id, or None if one is open already: another process may have been first."""
        made = new_id("inc")
        row: Parameters = {"id": made, "webhook_id": webhook_id, "kind": kind, "opened_at": milliseconds(now)}
        row["tell_at"] = row["opened_at"]
        return made if insert_first(connection, incidents, row | _gathered(found)) else None

    @writes
    def gather(self, connection: Connection, incident_id: str, found: Found) -> None:
        connection.execute(
            update(incidents).where(incidents.c.id == incident_id, _OPEN).values(_gathered(found))
        )

    @writes
    def close(self, connection: Connection, incident_id: str, now: float, because: str) -> bool:
        over = update(incidents).where(incidents.c.id == incident_id, _OPEN)
        soon, waits = milliseconds(now + TELL_LEASE), incidents.c.tell_at
        values = {
            "closed_at": milliseconds(now),
            "closed_because": because,
            # A process that is telling the opening goes on with the end; the end does not wait for a channel that is tried later.
            "tell_at": case((waits.is_(None), milliseconds(now)), (waits > soon, soon), else_=waits),
        }
        return changed_one(connection, over.values(values))

    @writes
    def acknowledge(
        self, connection: Connection, incident_id: str, now: float, by: str, note: AuditEntry
    ) -> bool:
        """False if it is over, or was acknowledged before."""
        unseen = incidents.c.id == incident_id, _OPEN, incidents.c.acknowledged_at.is_(None)
        values = {"acknowledged_at": milliseconds(now), "acknowledged_by": by}
        return changed_one(connection, update(incidents).where(*unseen).values(values), note)

    @writes
    def claim_to_tell(self, connection: Connection, now: float, most: int) -> list[Incident]:
        """The incidents to be told now. Until the lease ends they are this process's alone."""
        waits = incidents.c.tell_at
        due = select(incidents).where(waits <= milliseconds(now)).order_by(waits).limit(most)
        until, mine = milliseconds(now + TELL_LEASE), []
        for one in _all(connection, due):
            claim = update(incidents).where(incidents.c.id == one.id, waits == stored(one.tell_at or 0))
            if changed_one(connection, claim.values(tell_at=until)):
                mine.append(replace(one, tell_at=seconds(until)))
        return mine

    @writes
    def have_told(
        self, connection: Connection, one: Incident, told: dict[str, Told], next_at: float | None, now: float
    ) -> None:
        """``one`` is the incident as it was claimed. If it was closed meanwhile, the end is told next."""
        next_one = None if next_at is None else milliseconds(next_at)
        over = incidents.c.closed_at.is_not(None) if one.closed_at is None else false()
        values = {
            "told": msgspec.json.encode(told),
            "tell_at": case((over, milliseconds(now)), else_=next_one),
        }
        mine = incidents.c.id == one.id, incidents.c.tell_at == stored(one.tell_at or 0)
        connection.execute(update(incidents).where(*mine).values(values))

    # --- what is judged ------------------------------------------------------------------------------------------------

    @reads
    def in_trouble(self, connection: Connection, since: int) -> set[str]:
        """The webhooks with a call that may have gone wrong since that minute."""
        called = called_since(since)
        name = volumes.c.code
        bad = or_(
            and_(name.not_in(["webhook_disabled", *OUTCOMES[:3]]), name.not_like("%:%")),
            name.like(f"{ANSWER}5%"),
            name == RUN_FAILED,
        )
        found = select(volumes.c.webhook_id).where(
            volumes.c.webhook_id.in_(called), volumes.c.minute >= since
        )
        in_trouble = set(connection.scalars(found.where(bad).distinct()))
        refused = _refused(since).where(deliveries.c.webhook_id.in_(called)).distinct()
        return in_trouble | set(connection.scalars(refused))

    @reads
    def waiting(self, connection: Connection) -> dict[str, list[float]]:
        """By webhook: since when its deliveries wait that were tried in vain."""
        found: dict[str, list[float]] = defaultdict(list)
        for one in waiting_longest(connection):
            found[one.webhook_id].append(seconds(one.released_at or one.created_at))
        return dict(found)

    @reads
    def minutes(
        self, connection: Connection, webhook_ids: Sequence[str], since: int, until: int
    ) -> dict[str, Minutes]:
        """By webhook: its counts, those of long ago by the quarter of an hour."""
        found: dict[str, dict[int, dict[str, int]]] = {webhook_id: {} for webhook_id in webhook_ids}
        exact = min(since + -since % QUARTER, until)
        for table, first, end in [(volumes, since, exact), *parts(connection, exact, until, QUARTER)]:
            asked = select(table.c.webhook_id, table.c.minute, table.c.code, func.sum(table.c.calls))
            asked = asked.where(
                table.c.webhook_id.in_(webhook_ids), table.c.minute >= first, table.c.minute < end
            )
            asked = asked.group_by(table.c.webhook_id, table.c.minute, table.c.code)
            for webhook_id, minute, name, count in connection.execute(asked):
                found[webhook_id].setdefault(int(minute), {})[name] = int(count)
        refused = _refused(since).where(deliveries.c.webhook_id.in_(webhook_ids))
        for webhook_id, key in connection.execute(refused.add_columns(deliveries.c.key)):
            counted = found[webhook_id].setdefault(int(time_of(key.partition(".")[0]) // 60), {})
            counted[REFUSED] = counted.get(REFUSED, 0) + 1
        return dict(found)

    @reads
    def has_been(self, connection: Connection, webhook_id: str, code: str, since: int, until: int) -> bool:
        """Whether calls were counted under this code between these minutes."""
        ago = volume_rollups.c
        found = select(ago.minute).where(ago.webhook_id == webhook_id, ago.code == code)
        return connection.scalar(found.where(ago.minute >= since, ago.minute < until).limit(1)) is not None

    @reads
    def last_calls(self, connection: Connection, webhook_ids: Sequence[str]) -> dict[str, int]:
        """By webhook: the minute of its last good call."""
        newest = select(volumes.c.minute).where(volumes.c.webhook_id == bindparam("of"), _GOOD)
        newest = newest.order_by(volumes.c.minute.desc()).limit(1)
        found = {one: connection.scalar(newest, {"of": one}) for one in webhook_ids}
        return {one: int(minute) for one, minute in found.items() if minute is not None}

    @reads
    def call_minutes(self, connection: Connection, webhook_id: str, since: int, until: int) -> list[int]:
        """The minutes with good calls, in order."""
        asked = select(volumes.c.minute).where(volumes.c.webhook_id == webhook_id, _GOOD).distinct()
        asked = asked.where(volumes.c.minute >= since, volumes.c.minute < until).order_by(volumes.c.minute)
        return [int(minute) for minute in connection.scalars(asked)]

    @reads
    def second_secrets(self, connection: Connection, before: float) -> dict[str, float]:
        """By webhook: since when its second secret is valid, if that began before this time."""
        asked = select(secrets.c.webhook_id, secrets.c.created_at).join(
            webhooks, webhooks.c.id == secrets.c.webhook_id
        )
        asked = asked.where(secrets.c.field == "second", secrets.c.created_at < milliseconds(before), ALIVE)
        return {webhook_id: seconds(created_at) for webhook_id, created_at in connection.execute(asked)}

    @reads
    def counted_since(self, connection: Connection, minute: int) -> int:
        """How many recorded calls came to all webhooks, in the minutes that are summed up."""
        ago = volume_rollups.c
        among = ago.webhook_id == "", ago.minute >= minute, ago.code.not_like("%:%")
        return int(connection.scalar(select(func.sum(ago.calls)).where(*among)) or 0)


def _refused(since: int) -> Select[tuple[str]]:
    """Selects the webhooks of deliveries whose start has failed for good."""
    failed = deliveries.c.state == literal_column("'failed'"), UNUSUAL_DELIVERIES
    recent = deliveries.c.started_at.is_(None), deliveries.c.key >= first_id_at("inv", since * 60)
    return select(deliveries.c.webhook_id).where(*failed, *recent)


def _gathered(found: Found) -> Parameters:
    return row_of(found, reasons=msgspec.json.encode(found.reasons))


def _all(connection: Connection, statement: Select[Any]) -> list[Incident]:
    rows: Sequence[Row[Any]] = connection.execute(statement).all()
    return [
        value_of(
            Incident, row, reasons=msgspec.json.decode(row.reasons), told=_TOLD.decode(row.told or b"{}")
        )
        for row in rows
    ]
