"""Giving a call to a listener: in the transaction that records it, or later."""

from sqlalchemy import Connection, insert, select

from postern.core.listeners import Handed
from postern.stores.sql.moments import milliseconds
from postern.stores.sql.tables import handed, listeners
from postern.stores.sql.wake import HANDED, announce


def hand_over(connection: Connection, call: Handed) -> None:
    connection.execute(
        insert(handed).values(
            id=call.id,
            invocation_id=call.invocation_id,
            listener_id=call.listener_id,
            listener=call.listener,
            owner=call.owner,
            at=milliseconds(call.at),
            delivery_key=call.delivery_key,
            asked_by=call.asked_by,
        )
    )
    announce(connection, HANDED, call.listener_id)


def is_there(connection: Connection, listener_id: str) -> bool:
    """Locked: whoever ends it waits, and then sees what was handed to it."""
    there = listeners.c.id == listener_id, listeners.c.ended_by.is_(None)
    asked = select(listeners.c.id).where(*there).with_for_update(read=True)
    return connection.execute(asked).first() is not None
