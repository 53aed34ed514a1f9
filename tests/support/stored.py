"""Stores data behind the program's back: a webhook as another version of it would save it, an incident without the
wait."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from secrets import token_hex
from typing import Any

from support.waiting import PATIENCE

NEWER = '{"name": "Newer", "authentication": {"method": "none"}, "quietHours": [22, 6]}'
"""It was saved with a setting that this version does not know."""


def rows(file: Path, statement: str, *given: object) -> list[tuple[Any, ...]]:
    """What a statement finds in a file of SQLite. What it changes is kept."""
    with closing(sqlite3.connect(file, timeout=PATIENCE)) as database, database:
        return database.execute(statement, given).fetchall()


def overwrite(data_dir: Path, webhook_id: str, document: str = NEWER) -> None:
    changed = "UPDATE webhooks SET document = ?, epoch = (SELECT epoch FROM epochs) WHERE id = ?"
    with closing(sqlite3.connect(data_dir / "postern.db")) as database, database:  # together
        database.execute("UPDATE epochs SET epoch = epoch + 1")
        database.execute(changed, (document, webhook_id))


def open_incident(
    data_dir: Path, webhook_id: str, code: str = "signature_mismatch", kind: str = "rejected", count: int = 1
) -> str:
    """One about calls that were rejected, or failed otherwise; its id."""
    made = f"inc_{token_hex(16)}"
    now = int(time.time() * 1000)
    reasons = b'{"%s": %d}' % (code.encode(), count)
    told = (made, webhook_id, kind, now, now - 3_600_000, now, count, reasons, "", now)
    names = "id, webhook_id, kind, opened_at, first_at, last_at, count, reasons, detail, tell_at"
    insert = f"INSERT INTO incidents ({names}) VALUES ({', '.join('?' * len(told))})"
    rows(data_dir / "postern.db", insert, *told)
    return made
