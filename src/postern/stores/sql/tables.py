"""The tables, one per concept. Times are milliseconds since 1970; ids are time-ordered, so inserts append.

Values that strangers send are kept as bytes: Postgres refuses a NUL in text, and one such call must not fail its
neighbours' commit.
"""

from functools import partial
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    and_,
    literal_column,
    text,
)

from postern.core.history.volume import LATENCY_BOUNDS_MS as LATENCY_BOUNDS_MS

metadata = MetaData()


def Ascii(length: int) -> String:
    """Text that is compared byte by byte on every database: ids are ranges, and a language's own order skips dots."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


def _partial(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    """An index of the rows that meet a condition. Postgres gets it in ``for_migrations``: its dialect loads slowly."""
    return Index(name, *columns, unique=unique, sqlite_where=text(where), info={"where": where})


def _table(name: str, *parts: Column[Any] | Index, **options: Any) -> Table:
    return Table(name, metadata, *parts, **options)


_keyed_table = partial(_table, sqlite_with_rowid=False)
"""SQLite keeps its rows in the order of the key itself, without a second copy of it."""


webhooks = _table(
    "webhooks",
    Column("id", Ascii(40), primary_key=True),
    # Kept after deletion: a code is never given out again.
    Column("short_code", Ascii(40), nullable=False, unique=True),
    Column("path", Ascii(100), unique=True),
    Column("name", Text, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("held", Boolean, nullable=False),
    Column("document", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("epoch", BigInteger, nullable=False, index=True),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("deleted_at", BigInteger),
)

# One row: counted up by every change of configuration, so that each process notices what another one changed.
epochs = _table(
    "epochs", Column("id", Integer, primary_key=True), Column("epoch", BigInteger, nullable=False)
)

secrets = _table(
    "secrets",
    Column("id", Ascii(40), primary_key=True),
    Column("webhook_id", Ascii(40), nullable=False),
    Column("field", Ascii(120), nullable=False),
    Column("envelope", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index("secrets_of_webhook", "webhook_id", "field", unique=True),
)

invocations = _table(
    "invocations",
    Column("id", Ascii(40), primary_key=True),
    Column("webhook_id", Ascii(40), nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("outcome", Ascii(12), nullable=False),
    Column("code", Ascii(40), nullable=False),
    Column("status", SmallInteger, nullable=False),
    Column("config_version", Integer, nullable=False),
    Column("method", Ascii(20), nullable=False),
    Column("path", LargeBinary, nullable=False),
    Column("query", LargeBinary, nullable=False),
    Column("headers", LargeBinary, nullable=False),
    Column("body_size", Integer, nullable=False),
    Column("address", Ascii(80), nullable=False),
    Column("duration_us", Integer, nullable=False),
    Column("matched", Ascii(8), nullable=False),
    Column("detail", Text, nullable=False),
    Column("trace", LargeBinary, nullable=False),
    Column("duplicate_of", Ascii(40)),
    # Last: a page of history reads the columns before it and never touches the overflow.
    Column("body", LargeBinary),
    Index("invocations_of_webhook", "webhook_id", "id"),
    # Everything that is not an ordinary accepted call, so that filtering for it and pruning it cost what it
    # amounts to.
    _partial("invocations_apart", "outcome", "id", where="outcome <> 'accepted'"),
    _partial("invocations_apart_of_webhook", "webhook_id", "outcome", "id", where="outcome <> 'accepted'"),
)

_PASSED_OVER = "state = 'failed' AND turn IS NOT NULL AND started_at IS NULL"

deliveries = _keyed_table(
    "deliveries",
    Column("key", Ascii(48), primary_key=True),
    Column("invocation_id", Ascii(40), nullable=False),
    Column("webhook_id", Ascii(40), nullable=False),
    Column("emission", Integer, nullable=False),
    Column("state", Ascii(12), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_at", BigInteger, nullable=False),  # when it is due; claiming moves it on by the lease
    Column("fields", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("deadline", BigInteger),
    Column("started_at", BigInteger),
    Column("runs", Integer),
    Column("error", Text, nullable=False, server_default=""),
    Column("log", LargeBinary),
    Column("response_status", SmallInteger),
    Column("response_headers", LargeBinary),
    Column("response_body", LargeBinary),
    Column("responded_at", BigInteger),
    Column("answer_code", Ascii(40), nullable=False, server_default=""),
    Column("released_at", BigInteger),
    Column("ended_at", BigInteger),
    Column("ask_at", BigInteger),  # when the engine is asked how its runs ended; none when that is over
    Column("asked_by", Text),  # who admitted the call or had it replayed; none where the call itself did
    Column("replay_id", Ascii(40)),  # the replay of many that made it
    Column("lane", Ascii(40), nullable=False, server_default=""),  # empty, or its webhook's id
    Column(
        "turn", Ascii(24)
    ),  # with which others of its lane it takes turns; none where it waits for no turn
    Column("place", Integer),  # among those with the same turn
    Column("at_work", Boolean),  # its turn has come, and is not over
    Column("superseded_by", Ascii(48)),  # the delivery that was started in its place
    _partial("deliveries_to_ask_about", "ask_at", where="ask_at IS NOT NULL"),
    _partial("deliveries_due", "lane", "next_at", where="state = 'queued'"),
    _partial(
        "deliveries_in_turn",
        *("lane", "turn", "place", "key"),
        where="state IN ('queued', 'held') AND lane <> ''",
    ),
    _partial("deliveries_at_work", "lane", "turn", where="at_work"),
    _partial("deliveries_passed_over", "next_at", where=_PASSED_OVER),
    _partial("deliveries_of_replay", "replay_id", "invocation_id", "state", where="replay_id IS NOT NULL"),
    _partial(
        "deliveries_apart",
        "state",
        "webhook_id",
        "key",
        where="state IN ('failed', 'held', 'lost', 'dropped', 'superseded')",
    ),
    _partial(
        "deliveries_run_failed",
        "webhook_id",
        "ended_at",
        "invocation_id",
        where="state = 'failed' AND ended_at IS NOT NULL",
    ),
)

# Answers to callers that waited, or had gone, or were answered late: the rows above cannot know them when they are
# written.
answers = _keyed_table(
    "answers",
    Column("invocation_id", Ascii(40), primary_key=True),
    Column("status", SmallInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("reached", Boolean, nullable=False),
    _partial("answers_apart", "invocation_id", where="status >= 500 OR NOT reached"),
)

# The conditions of the partial indexes `…_apart`, to be repeated in whatever is to use one: SQLite does not conclude
# from `outcome = ?` that the outcome is not 'accepted', and would read the whole table instead.
UNUSUAL_INVOCATIONS = invocations.c.outcome != literal_column("'accepted'")
PASSED_OVER = text(_PASSED_OVER)
UNUSUAL_ANSWERS = text("(status >= 500 OR NOT reached)")
UNUSUAL_DELIVERIES = deliveries.c.state.in_(
    [literal_column(f"'{state}'") for state in ("failed", "held", "lost", "dropped", "superseded")]
)


ALIVE = webhooks.c.deleted_at.is_(None)
QUEUED = deliveries.c.state == literal_column("'queued'")


def belongs(invocation_id: str | ColumnElement[str] = invocations.c.id) -> ColumnElement[bool]:
    """A delivery's key begins with its invocation's id: a range of the primary key finds it."""
    return and_(deliveries.c.key >= invocation_id + ".", deliveries.c.key < invocation_id + "/")


# By what a call is found: its mapped values, its event's name and its address, filled in a little later. The first
# byte says which.
call_values = _keyed_table(
    "call_values",
    Column("value", LargeBinary, primary_key=True),
    Column("invocation_id", Ascii(40), primary_key=True),
    Index("call_values_of_call", "invocation_id"),
)

# Marks that people add to calls. All of it goes with its call.
bookmarks = _keyed_table(
    "bookmarks",
    Column("invocation_id", Ascii(40), primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("author", Text, nullable=False),
)

call_notes = _table(
    "call_notes",
    Column("id", Ascii(40), primary_key=True),
    Column("invocation_id", Ascii(40), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("author", Text, nullable=False),
    Column("text", Text, nullable=False),
    Index("call_notes_of_call", "invocation_id"),
)

# Invocations that nobody sent: somebody made them of a recorded one, and started its workflow with them.
edited_calls = _keyed_table(
    "edited_calls",
    Column("invocation_id", Ascii(40), primary_key=True),
    Column("made_from", Ascii(40), nullable=False),
    Column("author", Text, nullable=False),
    Column("changed", LargeBinary, nullable=False),
    Index("edited_calls_from", "made_from"),
)

# By what a rejected call's token is known again when the webhook's has been corrected (`Vault.fingerprint`): it is masked.
masked_tokens = _keyed_table(
    "masked_tokens",
    Column("invocation_id", Ascii(40), primary_key=True),
    Column("fingerprint", Ascii(80), nullable=False),
)

# Which invocation has a key of duplicate protection. Both are short (`stores/calls/claims.py`): each row that is written is
# on another page.
duplicate_keys = _keyed_table(
    "duplicate_keys",
    Column("key", LargeBinary(16), primary_key=True),
    Column("invocation_id", LargeBinary(16), nullable=False),
    Column("expires_at", BigInteger, nullable=False, index=True),
)

# Record Events: whether the next accepted call is to be kept as the webhook's sample, and the one that was.
samples = _table(
    "samples",
    Column("webhook_id", Ascii(40), primary_key=True),
    Column("armed_until", BigInteger),
    Column("stored_at", BigInteger),
    Column("invocation_id", Ascii(40)),
    Column("trigger", LargeBinary),
)

schedules = _table(
    "schedules",
    Column("webhook_id", Ascii(40), primary_key=True),
    # The fetched address and its times: another one starts afresh.
    Column("fingerprint", Ascii(64), nullable=False),
    Column("anchor", BigInteger, nullable=False),
    Column("next_run_at", BigInteger),  # none while it is switched off or paused
    Column("lease_until", BigInteger),
    Column("consecutive_failures", Integer, nullable=False),
    Column("paused_at", BigInteger),
    Column("paused_reason", Text, nullable=False, server_default=""),
    Column("last_at", BigInteger),
    Column("last_result", Ascii(16), nullable=False, server_default=""),
    Column("last_reason", Text, nullable=False, server_default=""),
    Column("last_duration_ms", Integer),
    Column("etag", Text, nullable=False, server_default=""),
    Column("last_modified", Text, nullable=False, server_default=""),
    Column("body_hash", Ascii(64), nullable=False, server_default=""),
    _partial("schedules_due", "next_run_at", where="next_run_at IS NOT NULL"),
)

# Who listens now. A row is a lease: it is there until its time is over, or the listener says goodbye.
listeners = _table(
    "listeners",
    Column("id", Ascii(40), primary_key=True),
    Column("name", Text, nullable=False),
    Column("owner_id", Ascii(40), nullable=False),
    Column("owner", Text, nullable=False),
    Column("address", Ascii(80), nullable=False),
    Column("since", BigInteger, nullable=False),
    Column("lease_until", BigInteger, nullable=False),
    Column("ended_by", Text),
)

# Recorded calls that were given to a listener.
handed = _table(
    "handed",
    Column("id", Ascii(40), primary_key=True),
    Column("invocation_id", Ascii(40), nullable=False, index=True),
    Column("listener_id", Ascii(40), nullable=False),
    Column("listener", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("asked_by", Text, nullable=False),
    Column("ended_at", BigInteger),
    Column("status", SmallInteger),
    Column("duration_us", BigInteger),
    Column("error", Text, nullable=False, server_default=""),
    _partial("handed_under_way", "listener_id", where="ended_at IS NULL"),
)

# Problems that alarms have found. Each webhook and kind has one open at most; without a webhook it is the gateway's own.
incidents = _table(
    "incidents",
    Column("id", Ascii(40), primary_key=True),
    Column("webhook_id", Ascii(40), nullable=False),
    Column("kind", Ascii(12), nullable=False),
    Column("opened_at", BigInteger, nullable=False),
    Column("first_at", BigInteger, nullable=False),
    Column("last_at", BigInteger, nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("reasons", LargeBinary, nullable=False),
    Column("detail", Text, nullable=False),
    Column("closed_at", BigInteger),
    Column("closed_because", Text, nullable=False, server_default=""),
    Column("acknowledged_at", BigInteger),
    Column("acknowledged_by", Text, nullable=False, server_default=""),
    Column("acknowledged_note", Text, nullable=False, server_default=""),
    Column("tell_at", BigInteger),
    Column("told", LargeBinary),
    Index("incidents_of_webhook", "webhook_id", "id"),
    _partial("incidents_open", "webhook_id", "kind", where="closed_at IS NULL", unique=True),
    _partial("incidents_to_tell", "tell_at", where="tell_at IS NOT NULL"),
)

# Who is told of incidents, besides POSTERN_TELL. The address is a secret: it stands in `secrets`, under the channel's id.
channels = _table(
    "channels",
    Column("id", Ascii(40), primary_key=True),
    Column("name", Text, nullable=False),
    Column("kind", Ascii(12), nullable=False),
    Column("webhook_id", Ascii(40)),
    Column("folder", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("created_by", Text, nullable=False),
)

# The senders' keys and certificates that were fetched and have proven a call: they are no secrets.
sender_keys = _table(
    "sender_keys",
    Column("address", Ascii(300), primary_key=True),
    Column("fetched_at", BigInteger, nullable=False),
    Column("content", LargeBinary, nullable=False),
)

# Facts of the database about itself: the fingerprints of its keys, and from where it was copied.
meta = _table("meta", Column("name", Ascii(60), primary_key=True), Column("value", Text, nullable=False))

# How far what is done now and then has come: when retention last went round and what it did, up to which
# invocation a webhook's bodies are gone, up to which minute volumes are summed up.
chores = _table(
    "chores",
    Column("name", Ascii(60), primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("reached", Ascii(40), nullable=False),
    Column("summary", Text, nullable=False, server_default=""),
)

# Deliveries whose payload the engine may still hold a copy of: written in the transaction that deletes ours.
engine_deletions = _keyed_table("engine_deletions", Column("delivery_key", Ascii(48), primary_key=True))

# Counted in the same commit as what they count. A shard is one gateway process: on Postgres no two of them
# wait for a row.
tallies = _keyed_table(
    "tallies",
    Column("webhook_id", Ascii(40), primary_key=True),
    Column("name", Ascii(60), primary_key=True),
    Column("shard", Integer, primary_key=True),
    Column("count", BigInteger, nullable=False),
    Column("last_at", BigInteger, nullable=False),
)

volumes = _keyed_table(
    "volumes",
    Column("webhook_id", Ascii(40), primary_key=True),
    Column("minute", Integer, primary_key=True),
    Column("code", Ascii(40), primary_key=True),
    Column("shard", Integer, primary_key=True),
    Column("calls", Integer, nullable=False),
    *(Column(f"within_{bound}", Integer, nullable=False, server_default="0") for bound in LATENCY_BOUNDS_MS),
)

# The same summed up over all shards and a quarter of an hour, for each webhook and, without an id, for all of
# them.
volume_rollups = _keyed_table(
    "volume_rollups",
    Column("webhook_id", Ascii(40), primary_key=True),
    Column("minute", Integer, primary_key=True),
    Column("code", Ascii(40), primary_key=True),
    Column("calls", Integer, nullable=False),
    *(Column(f"within_{bound}", Integer, nullable=False, server_default="0") for bound in LATENCY_BOUNDS_MS),
)

api_keys = _table(
    "api_keys",
    Column("id", Ascii(40), primary_key=True),
    Column("name", Text, nullable=False),
    Column("level", Ascii(8), nullable=False),
    Column("prefix", Ascii(16), nullable=False),
    Column("digest", LargeBinary(32), nullable=False, unique=True),
    Column("created_at", BigInteger, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("last_used_at", BigInteger),
)

users = _table(
    "users",
    Column("id", Ascii(40), primary_key=True),
    # In lower case: nobody remembers how they wrote it the first time.
    Column("name", Ascii(80), nullable=False, unique=True),
    Column("level", Ascii(8), nullable=False),
    Column("password_hash", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("last_signed_in_at", BigInteger),
)

sessions = _table(
    "sessions",
    Column("id", Ascii(40), primary_key=True),
    Column("digest", LargeBinary(32), nullable=False, unique=True),
    Column("user_id", Ascii(40), nullable=False, index=True),
    Column("created_at", BigInteger, nullable=False),
    Column("seen_at", BigInteger, nullable=False, index=True),
    Column("address", Ascii(80), nullable=False),
    Column("user_agent", Text, nullable=False),
)

audit = _table(
    "audit",
    Column("id", Ascii(40), primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("actor", Text, nullable=False),
    Column("level", Ascii(8), nullable=False),
    Column("action", Ascii(60), nullable=False),
    Column("subject", Ascii(80), nullable=False),
    Column("changes", LargeBinary, nullable=False),
    Index("audit_of_subject", "subject", "id"),
)

# The answers to creations with an Idempotency-Key, so that a client that tries again hears the same and
# makes nothing twice.
idempotency = _keyed_table(
    "idempotency",
    Column("actor", Ascii(80), primary_key=True),
    Column("key", Ascii(200), primary_key=True),
    Column("request", LargeBinary, nullable=False),  # its hash, sealed
    Column("answer", LargeBinary, nullable=False),  # sealed; empty while the first request is still at work
    Column("expires_at", BigInteger, nullable=False, index=True),
)

replays = _table(
    "replays",
    Column("id", Ascii(40), primary_key=True),
    Column("state", Ascii(12), nullable=False),
    Column("wanted", LargeBinary, nullable=False),
    Column("total", Integer, nullable=False),
    Column("done", Integer, nullable=False),
    Column("skipped", Integer, nullable=False),
    Column("completed", Integer, nullable=False),
    Column("include_completed", Boolean, nullable=False),
    # Replayed up to and including this invocation: where a restart goes on.
    Column("position", Ascii(40), nullable=False),
    Column("next_at", BigInteger, nullable=False),  # claiming moves it on by the lease
    Column("created_at", BigInteger, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("started_at", BigInteger),
    Column("started_by", Text),
    Column("ended_at", BigInteger),
    Column("fields", Ascii(8), nullable=False, server_default="recorded"),
    _partial("replays_due", "next_at", where="state = 'running'"),
)


saved_views = _table(
    "saved_views",
    Column("id", Ascii(40), primary_key=True),
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("query", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index("saved_views_of_owner", "owner", "id"),
)

OF_A_CALL = (answers, call_values, handed, bookmarks, call_notes, edited_calls, masked_tokens)
"""The tables whose rows are deleted with their call, besides the deliveries."""


def for_migrations() -> MetaData:
    """Returns the tables with the parts that only migrations need."""
    for table in metadata.tables.values():
        for index in table.indexes:
            if "where" in index.info:
                index.dialect_kwargs["postgresql_where"] = text(index.info["where"])
    return metadata
