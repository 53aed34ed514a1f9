"""What came to every webhook lately, counted for all of them at once: what their list is put in order by."""

from typing import Any

from sqlalchemy import Connection, Select, Table, case, func, literal_column, select

from postern.core.history.volume import is_call, outcomes
from postern.core.webhooks.listing import Activity, Lately
from postern.identity import first_id_at
from postern.stores.history.volumes import parts
from postern.stores.sql.database import Database
from postern.stores.sql.moments import milliseconds, seconds
from postern.stores.sql.tables import UNUSUAL_DELIVERIES, deliveries, tallies

_CALLS = tallies.c.name == "calls"


class Activities:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self, day: int, recent: int, until: int) -> Lately:
        """Of those that were ever called. The minutes at which the last day and what is recent begin,
        and the one before which they end."""

        def query(connection: Connection) -> Lately:
            last = select(tallies.c.webhook_id, func.max(tallies.c.last_at)).where(_CALLS)
            called = {row[0]: row[1] for row in connection.execute(last.group_by(tallies.c.webhook_id))}
            in_day: dict[str, int] = {}
            latest: dict[str, dict[str, int]] = {}
            for table, first, end in parts(connection, day, until, 60):
                counted = connection.execute(_counted(table, day, recent, first, end))
                for webhook_id, code, calls, now in counted:
                    if not is_call(code):
                        continue
                    in_day[webhook_id] = in_day.get(webhook_id, 0) + int(calls)
                    if now:
                        codes = latest.setdefault(webhook_id, {})
                        codes[code] = codes.get(code, 0) + int(now)
            not_started = _not_started(connection, recent)
            found = {
                webhook_id: Activity(
                    seconds(last_at),
                    in_day.get(webhook_id, 0),
                    sum(latest.get(webhook_id, {}).values()),
                    outcomes(latest[webhook_id])["rejected"] if webhook_id in latest else 0,
                    not_started.get(webhook_id, 0),
                )
                for webhook_id, last_at in called.items()
            }
            return Lately(found)

        return await self._database.read(query)


def _called_since(minute: int) -> Select[tuple[str]]:
    return select(tallies.c.webhook_id).where(_CALLS, tallies.c.last_at >= milliseconds(minute * 60))


def _counted(table: Table, day: int, recent: int, first: int, end: int) -> Select[Any]:
    """Only the webhooks that were called at all are looked up: the key begins with the webhook."""
    now = func.sum(case((table.c.minute >= recent, table.c.calls), else_=0))
    statement = select(table.c.webhook_id, table.c.code, func.sum(table.c.calls), now)
    return statement.where(
        table.c.webhook_id.in_(_called_since(day)), table.c.minute >= first, table.c.minute < end
    ).group_by(table.c.webhook_id, table.c.code)


def _not_started(connection: Connection, recent: int) -> dict[str, int]:
    """Deliveries of the latest calls that were given up or had a run that failed, and those that are tried again."""
    given_up = select(deliveries.c.webhook_id, func.count()).where(
        deliveries.c.state == "failed",
        UNUSUAL_DELIVERIES,
        deliveries.c.webhook_id.in_(_called_since(recent)),
        deliveries.c.key >= first_id_at("inv", recent * 60),
    )
    found = {row[0]: int(row[1]) for row in connection.execute(given_up.group_by(deliveries.c.webhook_id))}
    waiting = select(deliveries.c.webhook_id, deliveries.c.error).where(
        deliveries.c.state == literal_column("'queued'")
    )
    for webhook_id, error in connection.execute(waiting.order_by(deliveries.c.next_at.desc()).limit(1_000)):
        if error:
            found[webhook_id] = found.get(webhook_id, 0) + 1
    return found
