"""The senders' keys and certificates that were fetched and have proven a call, so that the next start has them at once."""

from sqlalchemy import Connection, delete, select

from postern.stores.sql.moments import milliseconds, seconds
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import sender_keys
from postern.stores.sql.upsert import insert_into


class SenderKeys(Repository):
    @reads
    def all(self, connection: Connection) -> list[tuple[str, bytes, float]]:
        """Returns each address, what was there, and when."""
        rows = connection.execute(select(sender_keys)).all()
        return [(row.address, row.content, seconds(row.fetched_at)) for row in rows]

    @writes
    def keep(self, connection: Connection, address: str, content: bytes, now: float, kept_for: float) -> None:
        values = {"fetched_at": milliseconds(now), "content": content}
        inserting = insert_into(sender_keys, connection.dialect.name).values(address=address, **values)
        connection.execute(inserting.on_conflict_do_update(index_elements=["address"], set_=values))
        connection.execute(delete(sender_keys).where(sender_keys.c.fetched_at < milliseconds(now - kept_for)))
