"""Schedules: when each is due, who is at it, how the last run went. A due run is claimed with a lease."""

from hashlib import sha256
from typing import Any

import msgspec
from msgspec.structs import asdict
from sqlalchemy import Connection, delete, func, or_, select, update

from postern.core.access.audit import AuditEntry
from postern.core.history.invocation import Entry, Receipt
from postern.core.schedules import ScheduleRun, ScheduleState, next_run
from postern.core.webhooks.settings import ScheduleSetting
from postern.core.webhooks.stored import StoredWebhook
from postern.stores.access.audit import changed_one
from postern.stores.calls.recorder import record_all
from postern.stores.sql.bulk import Parameters
from postern.stores.sql.moments import all_of, first_of, milliseconds, seconds, stored
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import ALIVE, schedules, webhooks
from postern.stores.sql.upsert import insert_into

LONGEST_LEASE = 600.0


def _what_begins_afresh(setting: ScheduleSetting) -> list[Any]:
    """The parts of a setting whose change begins the schedule anew."""
    when = [setting.every, setting.cron, setting.time_zone]
    return [setting.url, *when, setting.headers, setting.only_when_changed, setting.split_array]


class Schedules(Repository):
    @reads
    def any_due(self, connection: Connection, now: float) -> bool:
        return (
            connection.execute(select(schedules.c.webhook_id).where(*_due(now)).limit(1)).first() is not None
        )

    @writes
    def claim(self, connection: Connection, now: float, lease: float, limit: int) -> list[ScheduleState]:
        """The due ones, now ours until the lease is over."""
        due = select(schedules.c.webhook_id).where(*_due(now)).order_by(schedules.c.next_run_at).limit(limit)
        ours = update(schedules).where(
            schedules.c.webhook_id.in_(due.with_for_update(skip_locked=True).scalar_subquery()),
            schedules.c.next_run_at.is_not(None),
        )
        taken = ours.values(lease_until=milliseconds(now + lease)).returning(schedules)
        return sorted(all_of(ScheduleState, connection, taken), key=lambda state: state.next_run_at or 0.0)

    @writes
    def take(self, connection: Connection, webhook_id: str, now: float, lease: float) -> ScheduleState | None:
        """Claims this one, due or not. Returns None while a run of it is under way."""
        free = update(schedules).where(schedules.c.webhook_id == webhook_id, _nobody_at_it(now))
        taken = free.values(lease_until=milliseconds(now + lease)).returning(schedules)
        return first_of(ScheduleState, connection, taken)

    @reads
    def ahead(self, connection: Connection, now: float) -> list[ScheduleState]:
        """Returns schedules that wait and whose last run or change is in the future: the clock was set back."""
        later = milliseconds(now + 1.0)
        query = select(schedules).where(
            schedules.c.next_run_at > milliseconds(now),
            or_(schedules.c.last_at > later, schedules.c.anchor > later),
        )
        return all_of(ScheduleState, connection, query)

    @writes
    def bring_forward(self, connection: Connection, state: ScheduleState, next_run_at: float) -> bool:
        """False where it has changed meanwhile."""
        assert state.next_run_at is not None
        unchanged = update(schedules).where(
            schedules.c.webhook_id == state.webhook_id, schedules.c.next_run_at == stored(state.next_run_at)
        )
        return changed_one(connection, unchanged.values(next_run_at=milliseconds(next_run_at)))

    @writes
    def finish(
        self, connection: Connection, claimed: ScheduleState, run: ScheduleRun, entries: list[Entry]
    ) -> list[Receipt] | None:
        """Writes the run's result and everything it started. None, and nothing is written, if the lease has been lost
        meanwhile: to another process that took over, or to a change of the setting."""
        values: Parameters = {
            "lease_until": None,
            "next_run_at": None if run.next_run_at is None else milliseconds(run.next_run_at),
            "consecutive_failures": run.failures,
            "paused_at": milliseconds(run.at) if run.paused else None,
            "paused_reason": run.reason if run.paused else "",
            "last_at": milliseconds(run.at),
            "last_result": run.result,
            "last_reason": run.reason,
            "last_duration_ms": run.duration_ms,
        }
        if run.seen is not None:
            values |= asdict(run.seen)
        if not changed_one(connection, update(schedules).where(*_still(claimed)).values(values)):
            return None
        return record_all(connection, entries) if entries else []

    @writes
    def release(self, connection: Connection, now: float, claimed: list[ScheduleState] | None = None) -> int:
        """Gives leases back, so that whoever serves next need not wait for them: these, or, if no other process serves, all that
        a dead one's loop took. A run by hand, before its time, is a command's that may live."""
        if claimed is None:
            given_back = (schedules.c.next_run_at <= milliseconds(now), schedules.c.lease_until.is_not(None))
            return connection.execute(update(schedules).where(*given_back).values(lease_until=None)).rowcount
        giving_back = [update(schedules).where(*_still(state)).values(lease_until=None) for state in claimed]
        return sum(changed_one(connection, statement) for statement in giving_back)

    @writes
    def resume(self, connection: Connection, webhook_id: str, next_run_at: float, note: AuditEntry) -> bool:
        """False where it was not paused."""
        paused = update(schedules).where(
            schedules.c.webhook_id == webhook_id, schedules.c.paused_at.is_not(None)
        )
        going = {
            "paused_at": None,
            "paused_reason": "",
            "consecutive_failures": 0,
            "next_run_at": milliseconds(next_run_at),
        }
        return changed_one(connection, paused.values(going), note)

    @reads
    def paused(self, connection: Connection) -> int:
        """Returns how many have paused themselves, of webhooks that would be called otherwise."""
        own = webhooks.c.id == schedules.c.webhook_id
        query = (
            select(func.count())
            .select_from(schedules.join(webhooks, own))
            .where(schedules.c.paused_at.is_not(None), webhooks.c.enabled, ALIVE)
        )
        return connection.scalar(query) or 0

    @reads
    def states(self, connection: Connection, webhook_ids: list[str]) -> dict[str, ScheduleState]:
        query = select(schedules).where(schedules.c.webhook_id.in_(webhook_ids))
        return {state.webhook_id: state for state in all_of(ScheduleState, connection, query)}


def follow(connection: Connection, webhook: StoredWebhook, touched: bool) -> None:
    """Plans what the setting now says, in the transaction that saves it. ``touched``: its headers' values are new."""
    setting = webhook.settings.schedule
    if setting is None:
        connection.execute(delete(schedules).where(schedules.c.webhook_id == webhook.id))
        return
    row = connection.execute(select(schedules).where(schedules.c.webhook_id == webhook.id)).first()
    fingerprint = sha256(msgspec.json.encode(_what_begins_afresh(setting))).hexdigest()
    afresh = row is None or row.fingerprint != fingerprint or touched
    anchor = milliseconds(webhook.updated_at) if row is None or afresh else row.anchor
    values: Parameters = {"fingerprint": fingerprint, "anchor": anchor}
    if afresh:
        forgotten = dict.fromkeys(("etag", "last_modified", "body_hash", "paused_reason"), "")
        values |= forgotten | {"consecutive_failures": 0, "paused_at": None, "lease_until": None}
    if not setting.enabled:
        values |= {
            "consecutive_failures": 0,
            "paused_at": None,
            "paused_reason": "",
        }  # switching it on again ends a pause
    planned = None if row is None or afresh else row.next_run_at
    runs = webhook.enabled and setting.enabled and (afresh or row is None or row.paused_at is None)
    if runs and planned is None:
        planned = milliseconds(next_run(setting.times(seconds(anchor)), webhook.updated_at, webhook.id))
    values["next_run_at"] = planned if runs else None
    inserting = insert_into(schedules, connection.dialect.name)
    first = {"webhook_id": webhook.id, "consecutive_failures": 0} | values
    connection.execute(
        inserting.values(first).on_conflict_do_update(index_elements=["webhook_id"], set_=values)
    )


def _still(claimed: ScheduleState) -> tuple[Any, Any]:
    """The condition that the lease has not been lost since."""
    assert claimed.lease_until is not None
    return schedules.c.webhook_id == claimed.webhook_id, schedules.c.lease_until == stored(
        claimed.lease_until
    )


def _nobody_at_it(now: float) -> Any:
    lease = schedules.c.lease_until
    # One that ends later than any lease can was taken before the clock was set back.
    return or_(lease.is_(None), lease <= milliseconds(now), lease > milliseconds(now + LONGEST_LEASE))


def _due(now: float) -> tuple[Any, Any]:
    return schedules.c.next_run_at <= milliseconds(now), _nobody_at_it(now)
