"""Deliveries that wait until somebody lets them go."""

from sqlalchemy import Connection, func, select, update

from postern.core.deliveries.delivery import State
from postern.stores.sql.moments import milliseconds
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import UNUSUAL_DELIVERIES, deliveries
from postern.stores.sql.wake import DUE, announce


class Holds(Repository):
    @writes
    def unhold(self, connection: Connection, webhook_id: str, state: State, now: float, limit: int) -> int:
        """The oldest of what is held, now due (or dropped); how many. They keep their times, so the oldest is
        started first."""
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
    def held(self, connection: Connection, webhook_ids: list[str]) -> dict[str, int]:
        """How many wait behind each hold."""
        among = deliveries.c.state == "held", UNUSUAL_DELIVERIES, deliveries.c.webhook_id.in_(webhook_ids)
        rows = connection.execute(
            select(deliveries.c.webhook_id, func.count()).where(*among).group_by(deliveries.c.webhook_id)
        )
        return {row[0]: row[1] for row in rows}
