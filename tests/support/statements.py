"""Remembers the SQL text that SQLAlchemy has made, for every database of this process: a statement is made to text at
its first use in each engine. A test opens new ones, where a program keeps its own for as long as it runs."""

from typing import Any

from sqlalchemy import Dialect, Engine
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

_made: LRUCache[Any, Any] = LRUCache(4000)


def share_statements(dialect: type[Dialect] = SQLiteDialect_pysqlite) -> None:
    """The dialect is part of a statement's key, so two have to be the same: those that speak to the same version."""
    shared = {"__eq__": _same, "__hash__": _one_for_all, "engine_created": staticmethod(_use_shared)}
    for name, method in shared.items():
        setattr(dialect, name, method)


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and all(
        getattr(one, told, None) == getattr(other, told, None) for told in _TOLD_BY_THE_SERVER
    )


_TOLD_BY_THE_SERVER = ("server_version_info", "_backslash_escapes")
"""The properties on which a statement's text depends, known of a connected dialect only."""


def _one_for_all(one: object) -> int:
    return hash(type(one))


def _use_shared(engine: Engine) -> None:
    engine._compiled_cache = _made
