"""Locks recorded calls: retention takes a call with all that belongs to it, or not at all."""

from sqlalchemy import Connection, select

from postern.core.problems import Gone
from postern.stores.sql.tables import invocations


def lock_call(connection: Connection, invocation_id: str) -> None:
    """Locks the call until the commit. Raises ``Gone`` if retention has taken it."""
    locked = select(invocations.c.id).where(invocations.c.id == invocation_id).with_for_update()
    if connection.scalar(locked) is None:
        raise Gone


def lock_calls(connection: Connection, invocation_ids: list[str]) -> None:
    """Locks calls in the same order in every process, so that no two wait for each other in a circle."""
    among = select(invocations.c.id).where(invocations.c.id.in_(invocation_ids))
    connection.execute(among.order_by(invocations.c.id).with_for_update())
