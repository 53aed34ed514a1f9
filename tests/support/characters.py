"""Remembers what Hypothesis knows of characters: which there are, and which can be written in UTF-8. It asks Python
about each of a million of them, which takes two seconds, and looks for the result in the folder that it runs in."""

import shutil
import sys
import unicodedata
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from support.kept import kept

LOOK_AT_EACH = (
    "from hypothesis.internal import charmap; charmap.charmap(); charmap.intervals_from_codec('utf-8')"
)


def know_characters(folder: Path) -> None:
    """Puts the table where Hypothesis looks for it in this folder. The examples that failed, which it keeps there
    too, are not copied."""
    there = folder / ".hypothesis" / "unicode_data"
    if there.exists():
        return
    with suppress(OSError):  # where nothing can be kept it finds out for itself
        name = f"characters-{unicodedata.unidata_version}-{version('hypothesis')}"
        found = kept(name, lambda fresh: [sys.executable, "-c", LOOK_AT_EACH])
        shutil.copytree(found / ".hypothesis" / "unicode_data", there, dirs_exist_ok=True)
