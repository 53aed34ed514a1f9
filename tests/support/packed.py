"""Archives that the tests themselves made."""

import tarfile
from pathlib import Path


def unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as packed:
        # Debian 12's Python 3.11.2 knows no filters yet, later ones warn where none is said.
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # type: ignore[method-assign,assignment]
        packed.extractall(folder)
