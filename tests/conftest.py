"""The fixtures that every test may ask for; what they are is said in `support/`."""

import hypothesis
import pytest

from support.browser import browser, browser_context, notes, page
from support.postgres import migrated_template, migrated_url, own_postgres, postgres, postgres_url
from support.program import start_program
from support.shop import shop

__all__ = [
    "browser",
    "browser_context",
    "migrated_template",
    "migrated_url",
    "notes",
    "own_postgres",
    "page",
    "postgres",
    "postgres_url",
    "shop",
    "start_program",
]

# How long an example takes says how busy the machine is, and nothing about the code.
hypothesis.settings.register_profile("suite", deadline=None)
hypothesis.settings.load_profile("suite")

LONGEST = ("journeys", "engines", "wiring", "surfaces", "usecases")
"""Folders whose tests wait for programs. A file is one process's work, so the long ones come first: one that
began last would be waited for by nobody but itself."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        folder = item.path.relative_to(item.config.rootpath).parts[1]
        return LONGEST.index(folder) if folder in LONGEST else len(LONGEST)

    items.sort(key=place)
