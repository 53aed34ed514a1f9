"""The latest calls of every webhook, counted for all of them at once. The list of webhooks is sorted by it."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    case,
    func,
    select,
    true,
)

from postern.core.history.volume import is_call, outcomes
from postern.core.verdict import UNPROVEN
from postern.core.webhooks.listing import Activity, Lately
from postern.identity import first_id_at
from postern.stores.deliveries.deliveries import waiting_longest
from postern.stores.history.volumes import parts
from postern.stores.sql.moments import milliseconds, seconds
from postern.stores.sql.repository import Repository, reads
from postern.stores.sql.tables import UNUSUAL_DELIVERIES, deliveries, tallies

Webhooks = Sequence[str] | Select[tuple[str]]

_CALLS, _PROVEN = tallies.c.name == "calls", tallies.c.name.startswith("secret:")


class Activities(Repository):
    @reads
    def all(
        self, connection: Connection, day: int, recent: int, until: int, among: Sequence[str] | None = None
    ) -> Lately:
        """The activity of all webhooks that were ever called, or of those ``among`` them. ``day`` and ``recent``: the minutes at
        which these times begin; ``until``: before which they end."""
        these = true() if among is None else tallies.c.webhook_id.in_(among)
        last = select(tallies.c.webhook_id, func.max(tallies.c.last_at)).where(_CALLS, these)
        called = {row[0]: row[1] for row in connection.execute(last.group_by(tallies.c.webhook_id))}
        in_day: dict[str, int] = {}
        latest: dict[str, dict[str, int]] = {}
        for table, first, end in parts(connection, day, until, 60):
            counted = connection.execute(_counted(table, among or called_since(day), recent, first, end))
            for webhook_id, code, calls, now in counted:
                if not is_call(code):
                    continue
                in_day[webhook_id] = in_day.get(webhook_id, 0) + int(calls)
                if now and code not in UNPROVEN:
                    codes = latest.setdefault(webhook_id, {})
                    codes[code] = codes.get(code, 0) + int(now)
        not_started = _not_started(connection, recent, among or called_since(recent))
        stopped = _stopped(connection, recent, until, _PROVEN if among is None else these)
        found = {
            webhook_id: Activity(
                seconds(last_at),
                in_day.get(webhook_id, 0),
                sum(latest.get(webhook_id, {}).values()) + stopped.get(webhook_id, 0),
                outcomes(latest.get(webhook_id, {}))["rejected"] + stopped.get(webhook_id, 0),
                not_started.get(webhook_id, 0),
            )
            for webhook_id, last_at in called.items()
        }
        return Lately(found)


def _stopped(connection: Connection, recent: int, until: int, these: ColumnElement[bool]) -> dict[str, int]:
    """Calls without proof since the last call with proof, if there was one: the sender's own calls may fail now. Other
    calls without proof may be a stranger's, who cannot make a webhook look as if it failed."""
    minute = (func.max(tallies.c.last_at) // 60_000).label("minute")
    proven = select(tallies.c.webhook_id, minute).where(_PROVEN, these)
    last = proven.group_by(tallies.c.webhook_id).subquery()
    found: dict[str, int] = {}
    for table, first, end in parts(connection, recent, until, 60):
        since = select(table.c.webhook_id, func.sum(table.c.calls)).join(
            last, and_(last.c.webhook_id == table.c.webhook_id, table.c.minute > last.c.minute)
        )
        since = since.where(table.c.minute >= first, table.c.minute < end, table.c.code.in_(UNPROVEN))
        for webhook_id, calls in connection.execute(since.group_by(table.c.webhook_id)):
            found[webhook_id] = found.get(webhook_id, 0) + int(calls)
    return found


def called_since(minute: int) -> Select[tuple[str]]:
    return select(tallies.c.webhook_id).where(_CALLS, tallies.c.last_at >= milliseconds(minute * 60))


def _counted(table: Table, among: Webhooks, recent: int, first: int, end: int) -> Select[Any]:
    """Reads only these webhooks: the table's key begins with the webhook."""
    now = func.sum(case((table.c.minute >= recent, table.c.calls), else_=0))
    statement = select(table.c.webhook_id, table.c.code, func.sum(table.c.calls), now)
    return statement.where(
        table.c.webhook_id.in_(among), table.c.minute >= first, table.c.minute < end
    ).group_by(table.c.webhook_id, table.c.code)


def _not_started(connection: Connection, recent: int, among: Webhooks) -> dict[str, int]:
    """Deliveries of recent calls that failed, and those that have been tried in vain for longest."""
    given_up = select(deliveries.c.webhook_id, func.count()).where(
        deliveries.c.state == "failed",
        UNUSUAL_DELIVERIES,
        deliveries.c.webhook_id.in_(among),
        deliveries.c.key >= first_id_at("inv", recent * 60),
    )
    found = {row[0]: int(row[1]) for row in connection.execute(given_up.group_by(deliveries.c.webhook_id))}
    for one in waiting_longest(connection):
        if one.attempts > 1:  # the first attempt may have come before the engine was ready
            found[one.webhook_id] = found.get(one.webhook_id, 0) + 1
    return found
