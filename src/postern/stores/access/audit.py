"""The audit log. An entry is written in the transaction of its change: neither exists without the other."""

import msgspec
from sqlalchemy import Connection, Executable, insert, select

from postern.core.access.audit import AuditEntry
from postern.stores.sql.moments import row_of, value_of
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import audit


class Audit(Repository):
    @writes
    def write(self, connection: Connection, note: AuditEntry) -> None:
        write_note(connection, note)

    @reads
    def page(
        self, connection: Connection, limit: int, before: str | None = None, subject: str | None = None
    ) -> list[AuditEntry]:
        statement = select(audit).order_by(audit.c.id.desc()).limit(limit)
        if before is not None:
            statement = statement.where(audit.c.id < before)
        if subject is not None:
            statement = statement.where(audit.c.subject == subject)
        return [
            value_of(AuditEntry, row, changes=msgspec.json.decode(row.changes))
            for row in connection.execute(statement)
        ]


def write_note(connection: Connection, note: AuditEntry | None) -> None:
    if note is not None:
        write_notes(connection, [note])


def changed_one(connection: Connection, change: Executable, note: AuditEntry | None = None) -> bool:
    """Whether a row was changed or deleted. Only then the note is written."""
    changed = connection.execute(change).rowcount == 1
    write_note(connection, note if changed else None)
    return changed


def write_notes(connection: Connection, notes: list[AuditEntry]) -> None:
    rows = [row_of(note, changes=msgspec.json.encode(note.changes)) for note in notes]
    connection.execute(insert(audit), rows)
