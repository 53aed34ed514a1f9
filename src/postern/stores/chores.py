"""What is done now and then: how far it has come, when it was done last, and by which process it is done."""

from sqlalchemy import Connection, or_, select, update

from postern.stores.sql.database import Database
from postern.stores.sql.moments import milliseconds, seconds
from postern.stores.sql.tables import chores
from postern.stores.sql.upsert import insert_into
from postern.stores.sql.writer import Writer


class Chores:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def reached(self, name: str) -> str:
        """How far this work had come when it was last left."""
        asked = select(chores.c.reached).where(chores.c.name == name)
        return await self._database.read(
            lambda connection: connection.execute(asked).scalar_one_or_none() or ""
        )

    async def last_done(self, name: str) -> tuple[float, str] | None:
        def query(connection: Connection) -> tuple[float, str] | None:
            asked = select(chores.c.at, chores.c.summary).where(chores.c.name == name)
            row = connection.execute(asked).first()
            return None if row is None else (seconds(row[0]), row[1])

        return await self._database.read(query)

    async def reach(self, name: str, place: str, now: float, summary: str = "") -> None:
        def job(connection: Connection) -> None:
            values = {"at": milliseconds(now), "reached": place, "summary": summary}
            inserting = insert_into(chores, connection.dialect.name).values(name=name, **values)
            connection.execute(inserting.on_conflict_do_update(index_elements=["name"], set_=values))

        await self._writer.write(job)

    async def my_turn(self, name: str, now: float, every: float) -> bool:
        """Whether this process is to do what one of them does now and then."""

        def job(connection: Connection) -> bool:
            due = update(chores).where(
                chores.c.name == name,
                or_(chores.c.at <= milliseconds(now - every), chores.c.at > milliseconds(now)),
            )
            if connection.execute(due.values(at=milliseconds(now))).rowcount == 1:
                return True
            inserting = insert_into(chores, connection.dialect.name)
            first = inserting.values(name=name, at=milliseconds(now), reached="").on_conflict_do_nothing()
            return connection.execute(first.returning(chores.c.name)).first() is not None

        return await self._writer.write(job)
