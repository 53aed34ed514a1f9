"""Who began a replay of many. Of those that were begun before, the record of changes knows it."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("replays", sa.Column("started_by", sa.Text(), nullable=True))
    op.execute(
        "UPDATE replays SET started_by = (SELECT actor FROM audit WHERE audit.subject = replays.id"
        " AND audit.action = 'replay begun' ORDER BY audit.id DESC LIMIT 1)"
    )
