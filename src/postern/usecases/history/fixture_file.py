"""A fixture as a file: what stands in it, and what it is called. Commands need no more than this of it."""

import json
import re

from postern.usecases.answers import as_plain
from postern.usecases.history.views import Fixture


def as_file(found: Fixture) -> str:
    """What stands in the file."""
    plain = as_plain(found)
    text = json.dumps(plain, ensure_ascii=False, indent=2) + "\n"
    if any("\ud800" <= char <= "\udfff" for char in text):  # half a character: no file can hold it as it is
        text = json.dumps(plain, indent=2) + "\n"
    return text


def file_name(found: Fixture, invocation_id: str) -> str:
    """After its event, without an ending: letters, digits and dashes alone, whatever was sent."""
    words = re.sub(r"[^a-z0-9]+", "-", (found.name or found.webhook).lower()).strip("-")[:60].strip("-")
    return f"{words or 'event'}-{invocation_id[-8:]}"
