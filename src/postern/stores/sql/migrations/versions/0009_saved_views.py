"""Filters of the history that users have given a name."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    ascii_ = sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql")
    op.create_table(
        "saved_views",
        sa.Column("id", ascii_, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("saved_views_of_owner", "saved_views", ["owner", "id"])
