"""Who listens, and which calls were handed to them."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    def ascii_(length: int) -> sa.types.TypeEngine[str]:
        return sa.String(length=length).with_variant(sa.String(length=length, collation="C"), "postgresql")

    op.create_table(
        "listeners",
        sa.Column("id", ascii_(40), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("owner_id", ascii_(40), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("address", ascii_(80), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("lease_until", sa.BigInteger(), nullable=False),
        sa.Column("ended_by", sa.Text(), nullable=True),
        sa.Column("answers", ascii_(40), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("answers"),
    )
    op.create_table(
        "handed",
        sa.Column("id", ascii_(40), nullable=False),
        sa.Column("invocation_id", ascii_(40), nullable=False),
        sa.Column("listener_id", ascii_(40), nullable=False),
        sa.Column("listener", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("delivery_key", ascii_(48), nullable=True),
        sa.Column("asked_by", sa.Text(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("status", sa.SmallInteger(), nullable=True),
        sa.Column("duration_us", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=False, server_default=""),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_handed_invocation_id", "handed", ["invocation_id"])
    under_way = sa.text("ended_at IS NULL")
    op.create_index(
        "handed_under_way",
        "handed",
        ["listener_id"],
        sqlite_where=under_way,
        postgresql_where=under_way,
    )
