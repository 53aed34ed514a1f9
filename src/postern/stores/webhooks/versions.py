"""Each webhook has a version, and all of them together an epoch: they tell what has changed since."""

from sqlalchemy import Connection, select, update

from postern.core.history.invocation import StoreUnavailable
from postern.stores.sql.tables import ALIVE, epochs, webhooks
from postern.stores.sql.wake import CONFIGURATION, announce


def versions(connection: Connection, webhook_ids: list[str]) -> dict[str, int]:
    """The versions of those that are there, locked until the commit: what is written afterwards depends on them."""
    query = select(webhooks.c.id, webhooks.c.version).where(webhooks.c.id.in_(webhook_ids), ALIVE)
    return {row[0]: row[1] for row in connection.execute(query.order_by(webhooks.c.id).with_for_update())}


def next_epoch(connection: Connection) -> int:
    epoch = connection.execute(
        update(epochs).where(epochs.c.id == 1).values(epoch=epochs.c.epoch + 1).returning(epochs.c.epoch)
    ).scalar_one_or_none()
    if epoch is None:
        raise StoreUnavailable("the database has no schema yet: run postern migrate")
    announce(connection, CONFIGURATION)
    return int(epoch)
