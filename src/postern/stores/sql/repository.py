"""The base of all repositories. A method gets a reader's connection, or the writer's in the transaction that all share."""

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
    """Makes a query into a coroutine that runs it in a reader's thread."""

    @wraps(query)
    async def read(self: R, /, *given: P.args, **named: P.kwargs) -> T:
        return await self._database.read(lambda connection: query(self, connection, *given, **named))

    return read


def writes(
    job: Callable[Concatenate[R, Connection, P], T],
) -> Callable[Concatenate[R, P], Coroutine[Any, Any, T]]:
    """Makes a change into a coroutine that runs it in the writer's thread. An exception undoes this change alone."""

    @wraps(job)
    async def write(self: R, /, *given: P.args, **named: P.kwargs) -> T:
        return await self._writer.write(lambda connection: job(self, connection, *given, **named))

    return write
