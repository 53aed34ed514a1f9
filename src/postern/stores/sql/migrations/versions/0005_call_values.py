"""By what calls are found."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    ascii_ = sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql")
    op.create_table(
        "call_values",
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.Column("invocation_id", ascii_, nullable=False),
        sa.PrimaryKeyConstraint("value", "invocation_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("call_values_of_call", "call_values", ["invocation_id"])
