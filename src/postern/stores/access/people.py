"""Users and their sessions. A password is stored as a slow hash, a session's secret of 256 random bits as a fast one."""

from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from postern.core.access.accounts import INVITED, Level, Session, User
from postern.core.access.audit import AuditEntry
from postern.stores.access.api_keys import digest
from postern.stores.access.audit import changed_one, write_note
from postern.stores.sql.moments import all_of, first_of, milliseconds, row_of
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import saved_views, sessions, users
from postern.stores.sql.upsert import insert_first


class People(Repository):
    @writes
    def add(self, connection: Connection, user: User, note: AuditEntry | None) -> bool:
        """False if there is a user of this name already."""
        made = insert_first(connection, users, row_of(user), users.c.name)
        write_note(connection, note if made else None)
        return made

    @reads
    def users(self, connection: Connection) -> list[User]:
        return all_of(User, connection, select(users).order_by(users.c.id.desc()))

    async def user(self, user_id: str) -> User | None:
        return await self._one(users.c.id == user_id)

    async def named(self, name: str) -> User | None:
        return await self._one(users.c.name == name)

    @reads
    def _one(self, connection: Connection, condition: Any) -> User | None:
        return first_of(User, connection, select(users).where(condition))

    @writes
    def change(
        self,
        connection: Connection,
        user_id: str,
        note: AuditEntry,
        *,
        level: Level | None = None,
        password_hash: str | None = None,
        hash_was: str | None = None,
        end_sessions_but: str | None = None,
    ) -> bool:
        """Changes only what is given. False if no admin would be left, or the password's hash is no longer ``hash_was``."""
        given = {"level": level, "password_hash": password_hash}
        values = {name: value for name, value in given.items() if value is not None}
        changing = update(users).where(users.c.id == user_id)
        if hash_was is not None:
            changing = changing.where(users.c.password_hash == hash_was)
        if level is not None and level != "admin" and not _another_admin(connection, user_id):
            return False
        if not changed_one(connection, changing.values(values)):
            return False
        if end_sessions_but is not None:
            connection.execute(
                delete(sessions).where(sessions.c.user_id == user_id, sessions.c.id != end_sessions_but)
            )
        write_note(connection, note)
        return True

    @writes
    def delete(self, connection: Connection, user_id: str, note: AuditEntry) -> bool:
        if not _another_admin(connection, user_id):
            return False
        connection.execute(delete(users).where(users.c.id == user_id))
        connection.execute(delete(sessions).where(sessions.c.user_id == user_id))
        connection.execute(delete(saved_views).where(saved_views.c.owner == user_id))
        write_note(connection, note)
        return True

    @writes
    def sign_in(
        self,
        connection: Connection,
        session: Session,
        secret: str,
        note: AuditEntry,
        *,
        hash_was: str,
        new_hash: str | None = None,
    ) -> bool:
        """False if the hash is no longer ``hash_was``: a password that was changed meanwhile opens no session."""
        known = update(users).where(users.c.id == session.user_id, users.c.password_hash == hash_was)
        signed_in = known.values(
            last_signed_in_at=milliseconds(session.created_at), password_hash=new_hash or hash_was
        )
        if not changed_one(connection, signed_in):
            return False
        connection.execute(insert(sessions).values(row_of(session, digest=digest(secret))))
        write_note(connection, note)
        return True

    async def session(self, secret: str) -> tuple[Session, User] | None:
        pairs = await self._sessions(sessions.c.digest == digest(secret))
        return pairs[0] if pairs else None

    async def sessions(self, user_id: str | None = None) -> list[tuple[Session, User]]:
        return await self._sessions(*([] if user_id is None else [sessions.c.user_id == user_id]))

    @reads
    def _sessions(self, connection: Connection, *conditions: Any) -> list[tuple[Session, User]]:
        records = all_of(
            Session, connection, select(sessions).where(*conditions).order_by(sessions.c.id.desc())
        )
        owners = select(users).where(users.c.id.in_({session.user_id for session in records}))
        known = {user.id: user for user in all_of(User, connection, owners)}
        return [(session, known[session.user_id]) for session in records if session.user_id in known]

    @writes
    def seen(self, connection: Connection, session_id: str, now: float) -> None:
        change = update(sessions).where(sessions.c.id == session_id).values(seen_at=milliseconds(now))
        connection.execute(change)

    @writes
    def end(self, connection: Connection, session_id: str, note: AuditEntry | None) -> bool:
        return changed_one(connection, delete(sessions).where(sessions.c.id == session_id), note)


def _another_admin(connection: Connection, user_id: str) -> bool:
    """Locked until the commit: two admins who remove each other at the same moment must not both succeed. Who is invited cannot
    sign in yet."""
    can_sign_in = users.c.password_hash.not_like(f"{INVITED}:%")
    admins = (
        select(users.c.id).where(users.c.level == "admin", can_sign_in).order_by(users.c.id).with_for_update()
    )
    return any(admin != user_id for admin in connection.scalars(admins).all())
