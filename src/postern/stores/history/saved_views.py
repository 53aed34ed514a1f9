"""Each user's names for sets of filters."""

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from postern.core.access.audit import AuditEntry
from postern.core.history.marks import SavedView
from postern.stores.access.audit import changed_one, write_note
from postern.stores.sql.moments import all_of, row_of
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import saved_views


class SavedViews(Repository):
    async def of(self, owner: str) -> list[SavedView]:
        return await self._where(saved_views.c.owner == owner)

    async def all(self) -> list[SavedView]:
        return await self._where()

    @reads
    def _where(self, connection: Connection, *conditions: ColumnElement[bool]) -> list[SavedView]:
        found = select(saved_views).where(*conditions).order_by(saved_views.c.id)
        return all_of(SavedView, connection, found)

    @writes
    def add(self, connection: Connection, view: SavedView, most: int, note: AuditEntry) -> bool:
        """False where the owner has so many already."""
        there = select(func.count()).select_from(saved_views).where(saved_views.c.owner == view.owner)
        if (connection.scalar(there) or 0) >= most:
            return False
        connection.execute(insert(saved_views).values(row_of(view)))
        write_note(connection, note)
        return True

    @writes
    def rename(self, connection: Connection, owner: str, view_id: str, name: str, note: AuditEntry) -> bool:
        change = update(saved_views).where(*_one(owner, view_id)).values(name=name)
        return changed_one(connection, change, note)

    @writes
    def delete(self, connection: Connection, owner: str, view_id: str, note: AuditEntry) -> bool:
        return changed_one(connection, delete(saved_views).where(*_one(owner, view_id)), note)


def _one(owner: str, view_id: str) -> list[ColumnElement[bool]]:
    return [saved_views.c.owner == owner, saved_views.c.id == view_id]
