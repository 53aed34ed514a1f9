"""First tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column(
            "id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column(
            "level",
            sa.String(length=8).with_variant(sa.String(length=8, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "prefix",
            sa.String(length=16).with_variant(sa.String(length=16, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest"),
    )
    op.create_table(
        "audit",
        sa.Column(
            "id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column(
            "level",
            sa.String(length=8).with_variant(sa.String(length=8, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "action",
            sa.String(length=60).with_variant(sa.String(length=60, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "subject",
            sa.String(length=80).with_variant(sa.String(length=80, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("changes", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("audit_of_subject", "audit", ["subject", "id"], unique=False)
    op.create_table(
        "chores",
        sa.Column(
            "name",
            sa.String(length=60).with_variant(sa.String(length=60, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column(
            "reached",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("told", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "deliveries",
        sa.Column(
            "key",
            sa.String(length=48).with_variant(sa.String(length=48, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "invocation_id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "webhook_id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("emission", sa.Integer(), nullable=False),
        sa.Column(
            "state",
            sa.String(length=12).with_variant(sa.String(length=12, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=False),
        sa.Column("fields", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("deadline", sa.BigInteger(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("runs", sa.Integer(), nullable=True),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.Column("log", sa.LargeBinary(), nullable=True),
        sa.Column("response_status", sa.SmallInteger(), nullable=True),
        sa.Column("response_headers", sa.LargeBinary(), nullable=True),
        sa.Column("response_body", sa.LargeBinary(), nullable=True),
        sa.Column("responded_at", sa.BigInteger(), nullable=True),
        sa.Column(
            "answer_code",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column("released_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("key"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "deliveries_apart",
        "deliveries",
        ["state", "webhook_id", "key"],
        unique=False,
        sqlite_where=sa.text("state IN ('failed', 'held', 'dropped')"),
        postgresql_where=sa.text("state IN ('failed', 'held', 'dropped')"),
    )
    op.create_index(
        "deliveries_due",
        "deliveries",
        ["next_at"],
        unique=False,
        sqlite_where=sa.text("state = 'queued'"),
        postgresql_where=sa.text("state = 'queued'"),
    )
    op.create_table(
        "duplicate_keys",
        sa.Column(
            "webhook_id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("key", sa.LargeBinary(length=32), nullable=False),
        sa.Column(
            "invocation_id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("webhook_id", "key"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_duplicate_keys_expires_at", "duplicate_keys", ["expires_at"], unique=False)
    op.create_table(
        "epochs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "forgotten",
        sa.Column(
            "delivery_key",
            sa.String(length=48).with_variant(sa.String(length=48, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("delivery_key"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "idempotency",
        sa.Column(
            "actor",
            sa.String(length=80).with_variant(sa.String(length=80, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "key",
            sa.String(length=200).with_variant(sa.String(length=200, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("request", sa.LargeBinary(), nullable=False),
        sa.Column("answer", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("actor", "key"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_idempotency_expires_at", "idempotency", ["expires_at"], unique=False)
    op.create_table(
        "invocations",
        sa.Column(
            "id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "webhook_id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column(
            "outcome",
            sa.String(length=12).with_variant(sa.String(length=12, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "code",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("config_version", sa.Integer(), nullable=False),
        sa.Column(
            "method",
            sa.String(length=20).with_variant(sa.String(length=20, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("path", sa.LargeBinary(), nullable=False),
        sa.Column("query", sa.LargeBinary(), nullable=False),
        sa.Column("headers", sa.LargeBinary(), nullable=False),
        sa.Column("body_size", sa.Integer(), nullable=False),
        sa.Column(
            "address",
            sa.String(length=80).with_variant(sa.String(length=80, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("duration_us", sa.Integer(), nullable=False),
        sa.Column(
            "matched",
            sa.String(length=8).with_variant(sa.String(length=8, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("trace", sa.LargeBinary(), nullable=False),
        sa.Column(
            "duplicate_of",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=True,
        ),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "invocations_apart",
        "invocations",
        ["outcome", "id"],
        unique=False,
        sqlite_where=sa.text("outcome <> 'accepted'"),
        postgresql_where=sa.text("outcome <> 'accepted'"),
    )
    op.create_index(
        "invocations_apart_of_webhook",
        "invocations",
        ["webhook_id", "outcome", "id"],
        unique=False,
        sqlite_where=sa.text("outcome <> 'accepted'"),
        postgresql_where=sa.text("outcome <> 'accepted'"),
    )
    op.create_index("invocations_of_webhook", "invocations", ["webhook_id", "id"], unique=False)
    op.create_table(
        "quarters",
        sa.Column(
            "webhook_id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("minute", sa.Integer(), nullable=False),
        sa.Column(
            "code",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("within_1", sa.Integer(), nullable=False),
        sa.Column("within_2", sa.Integer(), nullable=False),
        sa.Column("within_5", sa.Integer(), nullable=False),
        sa.Column("within_10", sa.Integer(), nullable=False),
        sa.Column("within_25", sa.Integer(), nullable=False),
        sa.Column("within_50", sa.Integer(), nullable=False),
        sa.Column("within_100", sa.Integer(), nullable=False),
        sa.Column("within_250", sa.Integer(), nullable=False),
        sa.Column("within_1000", sa.Integer(), nullable=False),
        sa.Column("within_5000", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("webhook_id", "minute", "code"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "replays",
        sa.Column(
            "id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "state",
            sa.String(length=12).with_variant(sa.String(length=12, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("wanted", sa.LargeBinary(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("skipped", sa.Integer(), nullable=False),
        sa.Column(
            "position",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("next_at", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "replays_due",
        "replays",
        ["next_at"],
        unique=False,
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )
    op.create_table(
        "samples",
        sa.Column(
            "webhook_id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("armed_until", sa.BigInteger(), nullable=True),
        sa.Column("stored_at", sa.BigInteger(), nullable=True),
        sa.Column(
            "invocation_id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=True,
        ),
        sa.Column("trigger", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("webhook_id"),
    )
    op.create_table(
        "schedules",
        sa.Column(
            "webhook_id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "fingerprint",
            sa.String(length=64).with_variant(sa.String(length=64, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("anchor", sa.BigInteger(), nullable=False),
        sa.Column("next_run_at", sa.BigInteger(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("consecutive_failures", sa.Integer(), nullable=False),
        sa.Column("paused_at", sa.BigInteger(), nullable=True),
        sa.Column("paused_reason", sa.Text(), server_default="", nullable=False),
        sa.Column("last_at", sa.BigInteger(), nullable=True),
        sa.Column(
            "last_result",
            sa.String(length=16).with_variant(sa.String(length=16, collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column("last_reason", sa.Text(), server_default="", nullable=False),
        sa.Column("last_duration_ms", sa.Integer(), nullable=True),
        sa.Column("etag", sa.Text(), server_default="", nullable=False),
        sa.Column("last_modified", sa.Text(), server_default="", nullable=False),
        sa.Column(
            "body_hash",
            sa.String(length=64).with_variant(sa.String(length=64, collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("webhook_id"),
    )
    op.create_index(
        "schedules_due",
        "schedules",
        ["next_run_at"],
        unique=False,
        sqlite_where=sa.text("next_run_at IS NOT NULL"),
        postgresql_where=sa.text("next_run_at IS NOT NULL"),
    )
    op.create_table(
        "secrets",
        sa.Column(
            "id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "webhook_id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "field",
            sa.String(length=120).with_variant(sa.String(length=120, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("envelope", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("secrets_of_webhook", "secrets", ["webhook_id", "field"], unique=True)
    op.create_table(
        "sessions",
        sa.Column(
            "id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column(
            "user_id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.Column(
            "address",
            sa.String(length=80).with_variant(sa.String(length=80, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("user_agent", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest"),
    )
    op.create_index("ix_sessions_seen_at", "sessions", ["seen_at"], unique=False)
    op.create_index("ix_sessions_user_id", "sessions", ["user_id"], unique=False)
    op.create_table(
        "tallies",
        sa.Column(
            "webhook_id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "name",
            sa.String(length=60).with_variant(sa.String(length=60, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("last_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("webhook_id", "name", "shard"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "users",
        sa.Column(
            "id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "name",
            sa.String(length=80).with_variant(sa.String(length=80, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "level",
            sa.String(length=8).with_variant(sa.String(length=8, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("last_signed_in_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "volumes",
        sa.Column(
            "webhook_id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("minute", sa.Integer(), nullable=False),
        sa.Column(
            "code",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("within_1", sa.Integer(), server_default="0", nullable=False),
        sa.Column("within_2", sa.Integer(), server_default="0", nullable=False),
        sa.Column("within_5", sa.Integer(), server_default="0", nullable=False),
        sa.Column("within_10", sa.Integer(), server_default="0", nullable=False),
        sa.Column("within_25", sa.Integer(), server_default="0", nullable=False),
        sa.Column("within_50", sa.Integer(), server_default="0", nullable=False),
        sa.Column("within_100", sa.Integer(), server_default="0", nullable=False),
        sa.Column("within_250", sa.Integer(), server_default="0", nullable=False),
        sa.Column("within_1000", sa.Integer(), server_default="0", nullable=False),
        sa.Column("within_5000", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("webhook_id", "minute", "code", "shard"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "webhooks",
        sa.Column(
            "id",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "short_code",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("short_code"),
    )
    op.create_index("ix_webhooks_epoch", "webhooks", ["epoch"], unique=False)
    op.execute("INSERT INTO epochs (id, epoch) VALUES (1, 0)")
