"""The first tables, as SQL that no later change of the code alters.

The first released schema is 0010: databases with 0001 to 0009 were made by unreleased versions, and are refused.
"""

from pathlib import Path

from alembic import op

revision = "0010"
down_revision = None


def upgrade() -> None:
    connection = op.get_bind()
    frozen = Path(__file__).with_name(f"{revision}_first_tables.{connection.dialect.name}.sql")
    for statement in frozen.read_text().removesuffix(";\n").split(";\n\n"):
        connection.exec_driver_sql(statement)
    op.execute("INSERT INTO epochs (id, epoch) VALUES (1, 0)")
