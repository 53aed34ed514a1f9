"""What all repositories have in common. A method of one is handed a connection: that of a reader, or the writer's, in the
transaction that all share who are waiting."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from postern.stores.sql.database import Database
from postern.stores.sql.writer import Writer

R = TypeVar("R", bound="Repository")
P = ParamSpec("P")
T = TypeVar("T")


class Repository:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer


def reads(
    query: Callable[Concatenate[R, Connection, P], T],
) -> Callable[Concatenate[R, P], Coroutine[Any, Any, T]]:
    """Of a method that is asked from the event loop, and runs in the thread of a reader."""

    @wraps(query)
    async def read(self: R, /, *given: P.args, **named: P.kwargs) -> T:
        return await self._database.read(lambda connection: query(self, connection, *given, **named))

    return read


def writes(
    job: Callable[Concatenate[R, Connection, P], T],
) -> Callable[Concatenate[R, P], Coroutine[Any, Any, T]]:
    """Of a method that runs in the thread of the writer. What it raises undoes it alone."""

    @wraps(job)
    async def write(self: R, /, *given: P.args, **named: P.kwargs) -> T:
        return await self._writer.write(lambda connection: job(self, connection, *given, **named))

    return write
