"""Runs the migrations on the engine it is handed."""

from alembic import context

from postern.stores.sql.database import MIGRATION_LOCK
from postern.stores.sql.tables import for_migrations

engine = context.config.attributes["engine"]
with engine.connect() as connection:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET statement_timeout = 0")  # a large table takes as long as it takes
        connection.exec_driver_sql("SET lock_timeout = '60s'")  # and so does another process's migration
        connection.exec_driver_sql(
            f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"
        )  # two at once would both begin at the same revision
        # Every statement after one that waits for a table waits behind it: those of calls, too.
        connection.exec_driver_sql("SET lock_timeout = '5s'")
    context.configure(connection=connection, target_metadata=for_migrations(), render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()
