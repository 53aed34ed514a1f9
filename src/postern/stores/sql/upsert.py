"""INSERT … ON CONFLICT: both databases know it, and SQLAlchemy says it in each one's own dialect."""

from typing import Any

from sqlalchemy import Table
from sqlalchemy.dialects import sqlite


def insert_into(table: Table, dialect_name: str) -> Any:
    if dialect_name == "sqlite":
        return sqlite.insert(table)
    # Here and not at the top: this dialect and psycopg are a seventh of the program's start-up time, and
    # SQLite needs neither.
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(table)
