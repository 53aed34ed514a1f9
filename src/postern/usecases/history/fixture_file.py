"""A fixture as a file: what stands in it, and what it is called. Commands need no more than this of it."""

import json
import re

from postern.usecases.answers import as_plain
from postern.usecases.history.views.requests import Fixture


def as_file(found: Fixture) -> str:
    """What stands in the file."""
    return json.dumps(as_plain(found), ensure_ascii=False, indent=2) + "\n"


def file_name(found: Fixture, invocation_id: str) -> str:
    """After its event, without an ending: letters, digits and dashes alone, whatever was sent."""
    words = re.sub(r"[^a-z0-9]+", "-", (found.name or found.webhook).lower()).strip("-")[:60].strip("-")
    return f"{words or 'event'}-{invocation_id[-8:]}"
