"""Who changed what. A note is written in the transaction of the change it tells of: neither is there without
the other."""

from typing import Any

import msgspec
from sqlalchemy import Connection, Row, insert, select

from postern.core.access.audit import AuditEntry
from postern.stores.sql.database import Database
from postern.stores.sql.moments import milliseconds, seconds
from postern.stores.sql.tables import audit
from postern.stores.sql.writer import Writer


class Audit:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def write(self, note: AuditEntry) -> None:
        await self._writer.write(lambda connection: write_note(connection, note))

    async def page(
        self, limit: int, before: str | None = None, subject: str | None = None
    ) -> list[AuditEntry]:
        def query(connection: Connection) -> list[AuditEntry]:
            statement = select(audit).order_by(audit.c.id.desc()).limit(limit)
            if before is not None:
                statement = statement.where(audit.c.id < before)
            if subject is not None:
                statement = statement.where(audit.c.subject == subject)
            return [_entry_of(row) for row in connection.execute(statement)]

        return await self._database.read(query)


def write_note(connection: Connection, note: AuditEntry | None) -> None:
    if note is not None:
        write_notes(connection, [note])


def write_notes(connection: Connection, notes: list[AuditEntry]) -> None:
    rows = [
        {
            "id": note.id,
            "at": milliseconds(note.at),
            "actor": note.actor,
            "level": note.level,
            "action": note.action,
            "subject": note.subject,
            "changes": msgspec.json.encode(note.changes),
        }
        for note in notes
    ]
    connection.execute(insert(audit), rows)


def _entry_of(row: Row[Any]) -> AuditEntry:
    return AuditEntry(
        row.id,
        seconds(row.at),
        row.actor,
        row.level,
        row.action,
        row.subject,
        msgspec.json.decode(row.changes),
    )
