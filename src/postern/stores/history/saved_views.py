"""Each user's names for sets of filters."""

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from postern.core.access.audit import AuditEntry
from postern.core.history.saved_view import SavedView
from postern.stores.access.audit import write_note
from postern.stores.sql.database import Database
from postern.stores.sql.moments import milliseconds, seconds
from postern.stores.sql.tables import saved_views
from postern.stores.sql.writer import Writer


class SavedViews:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def of(self, owner: str) -> list[SavedView]:
        return await self._where(saved_views.c.owner == owner)

    async def all(self) -> list[SavedView]:
        return await self._where()

    async def _where(self, *conditions: ColumnElement[bool]) -> list[SavedView]:
        def query(connection: Connection) -> list[SavedView]:
            found = select(saved_views).where(*conditions).order_by(saved_views.c.id)
            return [
                SavedView(row.id, row.owner, row.name, row.query, seconds(row.created_at))
                for row in connection.execute(found)
            ]

        return await self._database.read(query)

    async def add(self, view: SavedView, most: int, note: AuditEntry) -> bool:
        """False where the owner has so many already."""

        def job(connection: Connection) -> bool:
            there = select(func.count()).select_from(saved_views).where(saved_views.c.owner == view.owner)
            if (connection.scalar(there) or 0) >= most:
                return False
            values = {
                "id": view.id,
                "owner": view.owner,
                "name": view.name,
                "query": view.query,
                "created_at": milliseconds(view.created_at),
            }
            connection.execute(insert(saved_views).values(values))
            write_note(connection, note)
            return True

        return await self._writer.write(job)

    async def rename(self, owner: str, view_id: str, name: str, note: AuditEntry) -> bool:
        def job(connection: Connection) -> bool:
            change = update(saved_views).where(*_one(owner, view_id)).values(name=name)
            renamed = connection.execute(change).rowcount == 1
            write_note(connection, note if renamed else None)
            return renamed

        return await self._writer.write(job)

    async def delete(self, owner: str, view_id: str, note: AuditEntry) -> bool:
        def job(connection: Connection) -> bool:
            deleted = connection.execute(delete(saved_views).where(*_one(owner, view_id))).rowcount == 1
            write_note(connection, note if deleted else None)
            return deleted

        return await self._writer.write(job)


def _one(owner: str, view_id: str) -> list[ColumnElement[bool]]:
    return [saved_views.c.owner == owner, saved_views.c.id == view_id]
