"""Record Events: which webhooks are armed, and the trigger that each one recorded last."""

from sqlalchemy import Connection, Select, delete, literal, select, update

from postern.core.access.audit import AuditEntry
from postern.core.history.sample import Sample
from postern.stores.access.audit import changed_one, write_note
from postern.stores.sql.moments import first_of, milliseconds
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import ALIVE, samples, webhooks
from postern.stores.sql.upsert import insert_into
from postern.stores.webhooks.versions import next_epoch


class Samples(Repository):
    @writes
    def arm(
        self, connection: Connection, webhook_id: str | None, until: float | None, note: AuditEntry
    ) -> int:
        """Arms one webhook, or all; ``until`` None disarms. Returns how many webhooks it concerned."""
        alive: Select[str] = select(webhooks.c.id).where(ALIVE)
        if webhook_id is not None:
            alive = alive.where(webhooks.c.id == webhook_id)
        moment = None if until is None else milliseconds(until)
        inserting = insert_into(samples, connection.dialect.name)
        rows = inserting.from_select(
            ["webhook_id", "armed_until"], alive.add_columns(literal(moment, samples.c.armed_until.type))
        )
        connection.execute(
            rows.on_conflict_do_update(index_elements=["webhook_id"], set_={"armed_until": moment})
        )
        statement = (
            update(webhooks)
            .where(webhooks.c.id.in_(alive.scalar_subquery()))
            .values(epoch=next_epoch(connection))
        )
        write_note(connection, note)
        return connection.execute(statement).rowcount

    @reads
    def get(self, connection: Connection, webhook_id: str) -> Sample | None:
        return first_of(Sample, connection, select(samples).where(samples.c.webhook_id == webhook_id))

    @writes
    def forget(self, connection: Connection, webhook_id: str, note: AuditEntry) -> bool:
        return changed_one(connection, delete(samples).where(samples.c.webhook_id == webhook_id), note)
