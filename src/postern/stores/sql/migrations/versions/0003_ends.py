"""What callers heard, and how runs ended."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "answers",
        sa.Column(
            "invocation_id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("reached", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("invocation_id"),
        sqlite_with_rowid=False,
    )
    apart = sa.text("status >= 500 OR NOT reached")
    op.create_index("answers_apart", "answers", ["invocation_id"], sqlite_where=apart, postgresql_where=apart)
    op.add_column("deliveries", sa.Column("ended_at", sa.BigInteger(), nullable=True))
    op.add_column("deliveries", sa.Column("ask_at", sa.BigInteger(), nullable=True))
    for table in ("volumes", "quarters"):
        for bound in (500, 1500, 2500, 10000, 30000):
            op.add_column(
                table, sa.Column(f"within_{bound}", sa.Integer(), nullable=False, server_default="0")
            )
    asked = sa.text("ask_at IS NOT NULL")
    op.create_index(
        "deliveries_to_ask_about", "deliveries", ["ask_at"], sqlite_where=asked, postgresql_where=asked
    )
