"""Bookmarks and notes of calls, and which call was made of which. Written by people, a few in a day."""

from collections import defaultdict
from collections.abc import Callable

import msgspec
from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from postern.core.access.audit import AuditEntry
from postern.core.documents import read_kept
from postern.core.history.marks import Bookmark, EditedFrom, Marks, Note, SavedView
from postern.stores.access.audit import changed_one, write_note
from postern.stores.history.locking import lock_call
from postern.stores.sql.moments import all_of, milliseconds, row_of, value_of
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import bookmarks, call_notes, edited_calls, saved_views
from postern.stores.sql.upsert import insert_first


class CallMarks(Repository):
    async def of(self, invocation_id: str) -> Marks:
        marks = await self.between(invocation_id, invocation_id)
        return marks.get(invocation_id) or Marks([], [])

    @reads
    def between(self, connection: Connection, oldest: str, newest: str) -> dict[str, Marks]:
        """Returns the marks of the calls in this range of ids that have any."""
        marks: dict[str, Marks] = defaultdict(lambda: Marks([], []))
        notes = select(call_notes).where(call_notes.c.invocation_id.between(oldest, newest))
        for row in connection.execute(notes.order_by(call_notes.c.id)):
            marks[row.invocation_id].notes.append(value_of(Note, row, by=row.author))
        made = select(edited_calls).where(edited_calls.c.made_from.between(oldest, newest))
        for row in connection.execute(made.order_by(edited_calls.c.invocation_id)):
            marks[row.made_from].edited.append(row.invocation_id)
        return marks

    @writes
    def bookmark(
        self, connection: Connection, invocation_id: str, author: str, now: float, note: AuditEntry
    ) -> Bookmark:
        """Theirs, where somebody was first."""
        lock_call(connection, invocation_id)
        row = {"invocation_id": invocation_id, "at": milliseconds(now), "author": author}
        write_note(connection, note if insert_first(connection, bookmarks, row) else None)
        kept = connection.execute(select(bookmarks).where(bookmarks.c.invocation_id == invocation_id)).one()
        return value_of(Bookmark, kept, by=kept.author)

    @writes
    def forget_bookmark(self, connection: Connection, invocation_id: str, note: AuditEntry) -> bool:
        gone = delete(bookmarks).where(bookmarks.c.invocation_id == invocation_id)
        return changed_one(connection, gone, note)

    @writes
    def add_note(
        self, connection: Connection, invocation_id: str, added: Note, most: int, note: AuditEntry
    ) -> bool:
        """False, and nothing written, where there are that many already."""
        lock_call(connection, invocation_id)
        count = select(func.count()).where(call_notes.c.invocation_id == invocation_id)
        if connection.execute(count).scalar_one() >= most:
            return False
        row = {
            "id": added.id,
            "invocation_id": invocation_id,
            "at": milliseconds(added.at),
            "author": added.by,
        }
        connection.execute(insert(call_notes).values(**row, text=added.text))
        write_note(connection, note)
        return True

    @writes
    def delete_note(self, connection: Connection, note_id: str, note: AuditEntry) -> bool:
        return changed_one(connection, delete(call_notes).where(call_notes.c.id == note_id), note)


def insert_edited(connection: Connection, invocation_id: str, edited: EditedFrom) -> None:
    made = insert(edited_calls).values(invocation_id=invocation_id, made_from=edited.invocation_id)
    connection.execute(made.values(author=edited.by, changed=msgspec.json.encode(edited.changed)))


def shown_marks(
    connection: Connection, these: Callable[[ColumnElement[str]], ColumnElement[bool]]
) -> tuple[dict[str, Bookmark], dict[str, EditedFrom]]:
    """Returns the marks that a list shows. Both tables are small, and are asked by their keys."""
    marked = connection.execute(select(bookmarks).where(these(bookmarks.c.invocation_id)))
    made = connection.execute(select(edited_calls).where(these(edited_calls.c.invocation_id)))
    return (
        {row.invocation_id: value_of(Bookmark, row, by=row.author) for row in marked},
        {
            row.invocation_id: EditedFrom(row.made_from, row.author, read_kept(row.changed, list[str], []))
            for row in made
        },
    )


class SavedViews(Repository):
    async def of(self, owner: str) -> list[SavedView]:
        return await self._where(saved_views.c.owner == owner)

    async def all(self) -> list[SavedView]:
        return await self._where()

    @reads
    def _where(self, connection: Connection, *conditions: ColumnElement[bool]) -> list[SavedView]:
        query = select(saved_views).where(*conditions).order_by(saved_views.c.id)
        return all_of(SavedView, connection, query)

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
