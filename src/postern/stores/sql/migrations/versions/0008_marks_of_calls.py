"""What people add to calls: bookmarks, notes, and the calls that they make by editing."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    ascii_ = sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql")
    op.create_table(
        "bookmarks",
        sa.Column("invocation_id", ascii_, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("invocation_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "call_notes",
        sa.Column("id", ascii_, nullable=False),
        sa.Column("invocation_id", ascii_, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("call_notes_of_call", "call_notes", ["invocation_id"])
    op.create_table(
        "edited_calls",
        sa.Column("invocation_id", ascii_, nullable=False),
        sa.Column("made_from", ascii_, nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("changed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("invocation_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("edited_calls_from", "edited_calls", ["made_from"])
