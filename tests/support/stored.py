"""Changes of stored webhooks behind the program's back, as another version of it would make them."""

import sqlite3
from contextlib import closing
from pathlib import Path

NEWER = '{"name": "Newer", "authentication": {"method": "none"}, "quietHours": [22, 6]}'
"""It was saved with a setting that this version does not know."""


def overwrite(data_dir: Path, webhook_id: str, document: str = NEWER) -> None:
    with closing(sqlite3.connect(data_dir / "postern.db")) as database, database:
        database.execute("UPDATE epochs SET epoch = epoch + 1")
        database.execute(
            "UPDATE webhooks SET document = ?, epoch = (SELECT epoch FROM epochs) WHERE id = ?",
            (document, webhook_id),
        )
