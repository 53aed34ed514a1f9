"""What the first version left behind: its database, and what it said of it. See `fixtures/first-version/README.md`."""

import gzip
import json
from pathlib import Path
from typing import Any

FIXTURE = Path(__file__).parents[1] / "fixtures" / "first-version"


def expected() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(gzip.decompress((FIXTURE / "expected.json.gz").read_bytes()))
    return read


def unpack_database(data_dir: Path) -> Path:
    """A copy of the database, in the data folder of a gateway that has not been started yet."""
    data_dir.mkdir(parents=True, exist_ok=True)
    database = data_dir / "postern.db"
    database.write_bytes(gzip.decompress((FIXTURE / "postern.db.gz").read_bytes()))
    return database
