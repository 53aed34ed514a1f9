"""What the database knows about itself."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "meta",
        sa.Column(
            "name",
            sa.String(length=60).with_variant(sa.String(length=60, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
