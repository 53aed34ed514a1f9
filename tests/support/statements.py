"""SQL that SQLAlchemy has made once, for every database of this process: a statement is made to text at its first use in each
engine. A test opens new ones, where a program keeps its own for as long as it runs."""

from typing import Any

from sqlalchemy import Engine
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

_made: LRUCache[Any, Any] = LRUCache(2000)


def share_statements() -> None:
    """Of SQLite alone: its engines are all of one library, and what a server is asked depends on which one it is. The dialect is
    part of a statement's key, so two have to be the same."""
    shared = {"__eq__": _same, "__hash__": _one_for_all, "engine_created": staticmethod(_use_shared)}
    for name, method in shared.items():
        setattr(SQLiteDialect_pysqlite, name, method)


def _same(one: object, other: object) -> bool:
    return type(one) is type(other)


def _one_for_all(one: object) -> int:
    return hash(type(one))


def _use_shared(engine: Engine) -> None:
    engine._compiled_cache = _made
