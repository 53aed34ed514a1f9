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
    exists,
    false,
    func,
    literal_column,
    or_,
    select,
    update,
)

from postern.core.access.audit import AuditEntry
from postern.core.documents import read_kept
from postern.core.history.volume import ANSWER, OUTCOMES
from postern.core.watch.alarms import REFUSED, RUN_FAILED, AlarmKind, Found, Incident, Minutes
from postern.core.watch.channels import ChannelState
from postern.identity import first_id_at, new_id, time_of
from postern.stores.access.audit import changed_one
from postern.stores.deliveries.deliveries import waiting_longest
from postern.stores.history.volumes import QUARTER, called_since, parts
from postern.stores.sql.bulk import Parameters
from postern.stores.sql.moments import milliseconds, row_of, seconds, stored, value_of
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import (
    ALIVE,
    PASSED_OVER,
    UNUSUAL_ANSWERS,
    UNUSUAL_DELIVERIES,
    UNUSUAL_INVOCATIONS,
    answers,
    deliveries,
    incidents,
    invocations,
    secrets,
    volume_rollups,
    volumes,
    webhooks,
)
from postern.stores.sql.upsert import insert_first

MOST_OPEN = 2_000
TO_THE_MINUTE = 120
"""Minutes that are read one by one; what is longer ago, by the quarter of an hour."""
MOST_RUNS = 100_000
"""Failed runs of an incident that are looked through for calls that failed more than once."""
MOST_PASSED_OVER = 10_000
"""The newest ones: a receiver that refuses everything leaves any number of them, and they are looked at in each round."""
LATE = 5_000
"""Milliseconds after which a call that was started waited for the engine."""
TELL_LEASE = 60.0
"""Seconds after which another process may tell an incident that this one has begun to tell."""

_OPEN = incidents.c.closed_at.is_(None)
_GOOD = volumes.c.code.in_(["accepted", "filtered", "duplicate"])


class Incidents(Repository):
    @reads
    def open(self, connection: Connection) -> list[Incident]:
        query = select(incidents).where(_OPEN).order_by(incidents.c.id.desc()).limit(MOST_OPEN)
        return _all(connection, query)

    @reads
    def page(
        self, connection: Connection, limit: int, before: str | None, webhook_id: str | None, only_open: bool
    ) -> list[Incident]:
        """Newest first."""
        conditions: list[ColumnElement[bool]] = [_OPEN] if only_open else []
        if webhook_id is not None:
            conditions.append(incidents.c.webhook_id == webhook_id)
        if before is not None:
            conditions.append(incidents.c.id < before)
        return _all(
            connection, select(incidents).where(*conditions).order_by(incidents.c.id.desc()).limit(limit)
        )

    @reads
    def get(self, connection: Connection, incident_id: str) -> Incident | None:
        matching = _all(connection, select(incidents).where(incidents.c.id == incident_id))
        return matching[0] if matching else None

    @reads
    def last_closed(self, connection: Connection, webhook_id: str, kind: str) -> float:
        """When the last incident of this kind closed; 0.0 if there was none."""
        closed = select(func.max(incidents.c.closed_at))
        closed = closed.where(incidents.c.webhook_id == webhook_id, incidents.c.kind == kind)
        return seconds(connection.scalar(closed) or 0)

    @reads
    def ended_by_themselves(self, connection: Connection, webhook_id: str, because: str, since: float) -> int:
        """How many incidents closed for this reason since then, without anybody having acknowledged them."""
        over = incidents.c.closed_because == because, incidents.c.closed_at >= milliseconds(since)
        of = incidents.c.webhook_id == webhook_id, incidents.c.acknowledged_at.is_(None)
        return connection.scalar(select(func.count()).select_from(incidents).where(*of, *over)) or 0

    @writes
    def begin(
        self, connection: Connection, webhook_id: str, kind: str, finding: Found, now: float
    ) -> str | None:
        """The new incident's id, or None if one is open already: another process may have been first."""
        made = new_id("inc")
        row: Parameters = {"id": made, "webhook_id": webhook_id, "kind": kind, "opened_at": milliseconds(now)}
        row["tell_at"] = row["opened_at"]
        return made if insert_first(connection, incidents, row | _gathered(finding)) else None

    @writes
    def gather(
        self, connection: Connection, incident_id: str, finding: Found, news_at: float | None = None
    ) -> None:
        """``news_at``: there is something else to tell, which nobody has acknowledged."""
        values = _gathered(finding)
        if news_at is not None:
            values |= {"tell_at": _told_by(news_at), "acknowledged_at": None, "acknowledged_by": ""}
            values["acknowledged_note"] = ""
        connection.execute(update(incidents).where(incidents.c.id == incident_id, _OPEN).values(values))

    @writes
    def close(self, connection: Connection, incident_id: str, now: float, because: str) -> bool:
        over = update(incidents).where(incidents.c.id == incident_id, _OPEN)
        values = {
            "closed_at": milliseconds(now),
            "closed_because": because,
            "tell_at": _told_by(now),
        }
        return changed_one(connection, over.values(values))

    @writes
    def acknowledge(
        self, connection: Connection, incident_id: str, now: float, by: str, text: str, note: AuditEntry
    ) -> bool:
        """``text``: what that person does about it. False if it is over, or was acknowledged before."""
        unseen = incidents.c.id == incident_id, _OPEN, incidents.c.acknowledged_at.is_(None)
        values = {"acknowledged_at": milliseconds(now), "acknowledged_by": by, "acknowledged_note": text}
        return changed_one(connection, update(incidents).where(*unseen).values(values), note)

    @writes
    def claim_to_tell(self, connection: Connection, now: float, most: int) -> list[Incident]:
        """The incidents to be told now. Until the lease ends they are this process's alone."""
        waits = incidents.c.tell_at
        due = select(incidents).where(waits <= milliseconds(now)).order_by(waits).limit(most)
        until, mine = milliseconds(now + TELL_LEASE), []
        for incident in _all(connection, due):
            claim = update(incidents).where(
                incidents.c.id == incident.id, waits == stored(incident.tell_at or 0)
            )
            if changed_one(connection, claim.values(tell_at=until)):
                mine.append(replace(incident, tell_at=seconds(until)))
        return mine

    @writes
    def have_told(
        self,
        connection: Connection,
        incident: Incident,
        told: dict[str, ChannelState],
        next_at: float | None,
        now: float,
    ) -> None:
        """``incident``: as it was claimed. If it was closed or has another reason meanwhile, that is told next."""
        next_one = None if next_at is None else milliseconds(next_at)
        over = incidents.c.closed_at.is_not(None) if incident.closed_at is None else false()
        other = or_(
            incidents.c.reasons != msgspec.json.encode(incident.reasons),
            incidents.c.detail != incident.detail,
        )
        values = {
            "told": msgspec.json.encode(told),
            # Damaged reasons are never the same.
            "tell_at": case(
                (or_(over, other if incident.reasons else false()), milliseconds(now)), else_=next_one
            ),
        }
        mine = incidents.c.id == incident.id, incidents.c.tell_at == stored(incident.tell_at or 0)
        connection.execute(update(incidents).where(*mine).values(values))

    # --- what is judged ------------------------------------------------------------------------------------------------

    @reads
    def in_trouble(self, connection: Connection, since: int) -> set[str]:
        """The webhooks with a call that may have gone wrong, or a run that failed, since that minute."""
        called = called_since(since)
        name = volumes.c.code
        bad = or_(
            and_(name.not_in(["webhook_disabled", *OUTCOMES[:3]]), name.not_like("%:%")),
            name.like(f"{ANSWER}5%"),
        )
        counted = select(volumes.c.webhook_id).where(volumes.c.minute >= since).distinct()
        in_trouble = set(connection.scalars(counted.where(volumes.c.webhook_id.in_(called), bad)))
        # Runs may last for days. Naming each webhook makes it one short range a webhook.
        ended = volumes.c.webhook_id.in_(select(webhooks.c.id)), name == RUN_FAILED
        in_trouble |= set(connection.scalars(counted.where(*ended)))
        refused = _refused(since).where(deliveries.c.webhook_id.in_(called)).distinct()
        return in_trouble | set(connection.scalars(refused))

    @reads
    def waiting(self, connection: Connection) -> dict[str, dict[str, float]]:
        """By webhook and call: since when its deliveries wait that were tried in vain, more than once."""
        by_webhook: dict[str, dict[str, float]] = defaultdict(dict)
        for delivery in waiting_longest(connection):
            # The first try of a gateway that starts may meet an engine that is still starting.
            if delivery.attempts > 1:
                by_webhook[delivery.webhook_id][delivery.invocation_id] = seconds(
                    delivery.released_at or delivery.created_at
                )
        return dict(by_webhook)

    @reads
    def passed_over(self, connection: Connection, since: float) -> dict[str, dict[str, float]]:
        """By webhook: its calls that were given up since then when their turn had come, and when."""
        query = select(deliveries.c.webhook_id, deliveries.c.invocation_id, deliveries.c.next_at)
        query = query.where(deliveries.c.next_at >= milliseconds(since), PASSED_OVER)
        query = query.order_by(deliveries.c.next_at.desc()).limit(MOST_PASSED_OVER)
        by_webhook: dict[str, dict[str, float]] = defaultdict(dict)
        for webhook_id, invocation_id, at in connection.execute(query):
            by_webhook[webhook_id][invocation_id] = seconds(at)
        return dict(by_webhook)

    @reads
    def minutes(
        self, connection: Connection, webhook_ids: Sequence[str], since: int, until: int
    ) -> dict[str, Minutes]:
        """By webhook: its counts, those of long ago by the quarter of an hour."""
        counts: dict[str, dict[int, dict[str, int]]] = {webhook_id: {} for webhook_id in webhook_ids}
        exact = min(since + -since % QUARTER, until)
        recent = max(exact, (until - TO_THE_MINUTE) // QUARTER * QUARTER)
        summed = parts(connection, exact, recent, QUARTER)
        for table, first, end in [(volumes, since, exact), *summed, (volumes, recent, until)]:
            query = select(table.c.webhook_id, table.c.minute, table.c.code, func.sum(table.c.calls))
            query = query.where(
                table.c.webhook_id.in_(webhook_ids), table.c.minute >= first, table.c.minute < end
            )
            query = query.group_by(table.c.webhook_id, table.c.minute, table.c.code)
            for webhook_id, minute, name, count in connection.execute(query):
                counts[webhook_id].setdefault(int(minute), {})[name] = int(count)
        refused = _refused(since).where(deliveries.c.webhook_id.in_(webhook_ids))
        calls = refused.add_columns(
            deliveries.c.invocation_id
        ).distinct()  # one may be refused at each replay
        for webhook_id, invocation_id in connection.execute(calls):
            counted = counts[webhook_id].setdefault(int(time_of(invocation_id) // 60), {})
            counted[REFUSED] = counted.get(REFUSED, 0) + 1
        return dict(counts)

    @reads
    def exactly(
        self, connection: Connection, webhook_id: str, kind: AlarmKind, finding: Found, waits: Sequence[float]
    ) -> Found:
        """The finding with the times of its first and last call, as far as they are kept, instead of their minutes. Failed
        runs count by their calls. ``waits``: since when deliveries wait."""
        call, came = invocations.c.id, invocations.c.received_at
        query = select(came).where(invocations.c.webhook_id == webhook_id).limit(1)
        match kind:
            case "runs_failed":
                return _of_runs(connection, webhook_id, finding)
            case "rejected":
                rejected = invocations.c.outcome == "rejected", UNUSUAL_INVOCATIONS
                query = query.where(*rejected, invocations.c.code.in_(finding.reasons))
            case "answers":
                ids = select(answers.c.invocation_id).where(UNUSUAL_ANSWERS)
                query = query.where(call.in_(ids.where(answers.c.status.in_(map(int, finding.reasons)))))
            case "not_started":
                ids = _refused(int(finding.first_at // 60)).with_only_columns(deliveries.c.invocation_id)
                query = query.where(call.in_(ids.where(deliveries.c.webhook_id == webhook_id)))
            case "gateway" | "silence":
                return finding
        # An answer is counted in the minute in which it is given: its call may have come a little before. Any other call that came
        # before is not counted, so the incident does not begin with it: its list is of the calls since then.
        since = finding.first_at - 60 * (kind == "answers")
        query = query.where(call >= first_id_at("inv", since), came >= milliseconds(since))
        kept = [connection.scalar(query.order_by(order)) for order in (call.asc(), call.desc())]
        times = [*waits, *(seconds(moment) for moment in kept if moment is not None)]
        first = min(times, default=finding.first_at)
        first = first if first < finding.first_at + QUARTER * 60 else finding.first_at
        return replace(finding, first_at=first, last_at=max([finding.last_at, *times]))

    @reads
    def failed_calls(self, connection: Connection, incident: Incident, limit: int) -> list[str]:
        """Its calls of which a run failed or a start was refused, those that failed last first."""
        newest = func.max(deliveries.c.ended_at).desc(), deliveries.c.invocation_id.desc()
        query = _failed(incident).group_by(deliveries.c.invocation_id)
        return list(connection.scalars(query.order_by(*newest).limit(limit)))

    @reads
    def left(self, connection: Connection, incident: Incident, most: int) -> int:
        """How many of these calls have not gone through since, up to so many."""
        later = deliveries.alias()
        well = ("completed",) if incident.kind == "runs_failed" else ("started", "completed")
        again = later.c.invocation_id == deliveries.c.invocation_id, later.c.emission > deliveries.c.emission
        query = _failed(incident).where(~exists().where(*again, later.c.state.in_(well))).distinct()
        return connection.scalar(select(func.count()).select_from(query.limit(most).subquery())) or 0

    @reads
    def waited(
        self, connection: Connection, since: float, until: float, most: int
    ) -> list[tuple[str, bool]] | None:
        """The calls of this time that waited for the engine, the newest first, and whether they still do. None where more calls came
        then than are looked through."""
        came = deliveries.c.key >= first_id_at("inv", since), deliveries.c.key < first_id_at("inv", until)
        newest = select(deliveries).where(*came, deliveries.c.lane == "").order_by(deliveries.c.key.desc())
        columns = newest.limit(most + 1).subquery().c
        if (connection.scalar(select(func.count(columns.key))) or 0) > most:
            return None
        waits = columns.state == "queued"
        late = columns.started_at - func.coalesce(columns.released_at, columns.created_at) > LATE
        query = select(columns.invocation_id, waits).where(or_(waits, late)).order_by(columns.key.desc())
        return [(call, bool(still)) for call, still in connection.execute(query)]

    @reads
    def has_been(self, connection: Connection, webhook_id: str, code: str, since: int, until: int) -> bool:
        """Whether calls were counted under this code between these minutes."""
        ago = volume_rollups.c
        query = select(ago.minute).where(ago.webhook_id == webhook_id, ago.code == code)
        return connection.scalar(query.where(ago.minute >= since, ago.minute < until).limit(1)) is not None

    @reads
    def last_calls(self, connection: Connection, webhook_ids: Sequence[str]) -> dict[str, int]:
        """By webhook: the minute of its last good call."""
        newest = select(volumes.c.minute).where(volumes.c.webhook_id == bindparam("of"), _GOOD)
        newest = newest.order_by(volumes.c.minute.desc()).limit(1)
        minutes = {owner: connection.scalar(newest, {"of": owner}) for owner in webhook_ids}
        return {owner: int(minute) for owner, minute in minutes.items() if minute is not None}

    @reads
    def call_minutes(self, connection: Connection, webhook_id: str, since: int, until: int) -> list[int]:
        """The minutes with good calls, in order."""
        query = select(volumes.c.minute).where(volumes.c.webhook_id == webhook_id, _GOOD).distinct()
        query = query.where(volumes.c.minute >= since, volumes.c.minute < until).order_by(volumes.c.minute)
        return [int(minute) for minute in connection.scalars(query)]

    @reads
    def second_secrets(self, connection: Connection, before: float) -> dict[str, float]:
        """By webhook: since when its second secret is valid, if that began before this time."""
        query = select(secrets.c.webhook_id, secrets.c.created_at).join(
            webhooks, webhooks.c.id == secrets.c.webhook_id
        )
        query = query.where(secrets.c.field == "second", secrets.c.created_at < milliseconds(before), ALIVE)
        return {webhook_id: seconds(created_at) for webhook_id, created_at in connection.execute(query)}

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


def _told_by(now: float) -> ColumnElement[int | None]:
    """When an incident is told next. A process that is telling it now goes on, also where its clock is another one; nothing waits
    for long for a channel that is tried later, or for a reminder."""
    waits = incidents.c.tell_at
    at_once = or_(waits.is_(None), waits > milliseconds(now + 2 * TELL_LEASE))
    return case((at_once, milliseconds(now)), else_=waits)


def _run_failed(webhook_id: str) -> ColumnElement[bool]:
    ended = deliveries.c.ended_at.is_not(None)
    return and_(
        deliveries.c.webhook_id == webhook_id, deliveries.c.state == literal_column("'failed'"), ended
    )


def _failed(incident: Incident) -> Select[tuple[str]]:
    """Selects the calls of this incident's runs that failed, or starts that were refused."""
    since, until = incident.first_at, incident.closed_at
    if incident.kind == "runs_failed":
        query = select(deliveries.c.invocation_id).where(_run_failed(incident.webhook_id))
        query = query.where(deliveries.c.ended_at >= stored(since))
        return query if until is None else query.where(deliveries.c.ended_at <= stored(until))
    query = _refused(int(since // 60)).with_only_columns(deliveries.c.invocation_id)
    query = query.where(deliveries.c.webhook_id == incident.webhook_id)
    return query if until is None else query.where(deliveries.c.created_at <= stored(until))


def _of_runs(connection: Connection, webhook_id: str, finding: Found) -> Found:
    """Counts each call once, however often its runs failed: a replay may fail again."""
    newest = select(deliveries.c.invocation_id, deliveries.c.ended_at).where(_run_failed(webhook_id))
    newest = newest.order_by(deliveries.c.ended_at.desc()).limit(min(finding.count, MOST_RUNS))
    run = newest.subquery().c
    again = func.count() - func.count(run.invocation_id.distinct())
    repeated, first, last = connection.execute(
        select(again, func.min(run.ended_at), func.max(run.ended_at))
    ).one()
    if first is None:
        return finding
    return replace(
        finding,
        count=finding.count - repeated,
        first_at=seconds(first),
        last_at=max(finding.last_at, seconds(last)),
    )


def _gathered(finding: Found) -> Parameters:
    return row_of(finding, reasons=msgspec.json.encode(finding.reasons))


def _all(connection: Connection, statement: Select[Any]) -> list[Incident]:
    rows: Sequence[Row[Any]] = connection.execute(statement).all()
    return [
        value_of(
            Incident,
            row,
            reasons=read_kept(row.reasons, dict[str, int], {}),
            told=read_kept(row.told or b"{}", dict[str, ChannelState], {}),
        )
        for row in rows
    ]
