"""Chores, which one of several processes does now and then: how far each has come, when it was last done, whose turn it is."""

from sqlalchemy import Connection, or_, select, update

from postern.stores.access.audit import changed_one
from postern.stores.sql.moments import milliseconds, seconds
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import chores
from postern.stores.sql.upsert import insert_first, insert_into


class Chores(Repository):
    @reads
    def reached(self, connection: Connection, name: str) -> str:
        return how_far(connection, name)

    @reads
    def last_done(self, connection: Connection, name: str) -> tuple[float, str] | None:
        query = select(chores.c.at, chores.c.summary).where(chores.c.name == name)
        row = connection.execute(query).first()
        return None if row is None else (seconds(row[0]), row[1])

    @writes
    def reach(self, connection: Connection, name: str, place: str, now: float, summary: str = "") -> None:
        put_down(connection, name, place, now, summary)

    @writes
    def my_turn(self, connection: Connection, name: str, now: float, every: float) -> bool:
        """Whether the chore is due and this process is to do it."""
        due = update(chores).where(
            chores.c.name == name,
            or_(chores.c.at <= milliseconds(now - every), chores.c.at > milliseconds(now)),
        )
        if changed_one(connection, due.values(at=milliseconds(now))):
            return True
        return insert_first(connection, chores, {"name": name, "at": milliseconds(now), "reached": ""})


def how_far(connection: Connection, name: str) -> str:
    reached: str | None = connection.scalar(select(chores.c.reached).where(chores.c.name == name))
    return reached or ""


def put_down(connection: Connection, name: str, place: str, now: float, summary: str = "") -> None:
    values = {"at": milliseconds(now), "reached": place, "summary": summary}
    inserting = insert_into(chores, connection.dialect.name).values(name=name, **values)
    connection.execute(inserting.on_conflict_do_update(index_elements=["name"], set_=values))
