"""The fixtures that every test may ask for; what they are is said in `beds/`."""

from beds.browser import browser, browser_context, notes, page
from beds.postgres import migrated_template, migrated_url, own_postgres, postgres, postgres_url
from beds.program import start_program
from beds.shop import shop

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
