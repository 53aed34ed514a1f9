"""A webhook as the tables have it."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from postern.core.webhooks.settings import UnreadableSettings, read_document, write_document
from postern.core.webhooks.stored import StoredSecret, StoredWebhook, UnreadableWebhook
from postern.stores.sql.bulk import Parameters
from postern.stores.sql.moments import milliseconds, seconds
from postern.stores.sql.tables import samples
from postern.stores.webhooks.secrets import Secrets

Stored = StoredWebhook | UnreadableWebhook


def row_of(webhook: StoredWebhook, epoch: int) -> Parameters:
    return {
        "name": webhook.name,
        "enabled": webhook.enabled,
        "held": webhook.held,
        "document": write_document(webhook.settings, webhook.resolved),
        "version": webhook.version,
        "epoch": epoch,
        "updated_at": milliseconds(webhook.updated_at),
    }


def stored_all(connection: Connection, rows: Sequence[Row[Any]], secrets: Secrets) -> list[Stored]:
    ids = [row.id for row in rows]
    kept, unreadable = secrets.of(connection, ids)
    armed: dict[str, int] = {}
    for start in range(0, len(ids), 500):
        among = samples.c.webhook_id.in_(ids[start : start + 500]), samples.c.armed_until.is_not(None)
        armed.update(
            (one, until)
            for one, until in connection.execute(
                select(samples.c.webhook_id, samples.c.armed_until).where(*among)
            )
        )
    return [_stored(row, kept.get(row.id, {}), unreadable.get(row.id, {}), armed.get(row.id)) for row in rows]


def _stored(
    row: Any, kept: dict[str, StoredSecret], unreadable: dict[str, str], armed_until: int | None
) -> Stored:
    try:
        settings, resolved = read_document(row.document)
    except UnreadableSettings as error:
        return UnreadableWebhook(row.id, row.short_code, row.name, row.version, str(error))
    return StoredWebhook(
        id=row.id,
        short_code=row.short_code,
        enabled=row.enabled,
        held=row.held,
        settings=settings,
        resolved=resolved,
        version=row.version,
        created_at=seconds(row.created_at),
        updated_at=seconds(row.updated_at),
        secrets=kept,
        unreadable_secrets=unreadable,
        armed_until=seconds(armed_until),
    )
