"""Who asked for an admission or a replay, and which values a replay of many carries."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("deliveries", sa.Column("asked_by", sa.Text(), nullable=True))
    ascii_ = sa.String(length=8).with_variant(sa.String(length=8, collation="C"), "postgresql")
    op.add_column("replays", sa.Column("fields", ascii_, nullable=False, server_default="current"))
