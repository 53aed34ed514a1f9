"""Stores data behind the program's back: a webhook as another version of it would save it, an incident without the
wait."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from support.waiting import PATIENCE

NEWER = '{"name": "Newer", "authentication": {"method": "none"}, "quietHours": [22, 6]}'
"""It was saved with a setting that this version does not know."""


def overwrite(data_dir: Path, webhook_id: str, document: str = NEWER) -> None:
    with closing(sqlite3.connect(data_dir / "postern.db")) as database, database:
        database.execute("UPDATE epochs SET epoch = epoch + 1")
        database.execute(
            "UPDATE webhooks SET document = ?, epoch = (SELECT epoch FROM epochs) WHERE id = ?",
            (document, webhook_id),
        )


def open_incident(data_dir: Path, webhook_id: str, code: str = "signature_mismatch") -> str:
    """One about a call that was rejected; its id."""
    made = f"inc_{'0' * 32}"
    now = int(time.time() * 1000)
    told = (made, webhook_id, "rejected", now, now - 3_600_000, now, 1, b'{"%s": 1}' % code.encode(), "", now)
    with closing(sqlite3.connect(data_dir / "postern.db", timeout=PATIENCE)) as database, database:
        names = "id, webhook_id, kind, opened_at, first_at, last_at, count, reasons, detail, tell_at"
        database.execute(f"INSERT INTO incidents ({names}) VALUES ({', '.join('?' * len(told))})", told)
    return made
