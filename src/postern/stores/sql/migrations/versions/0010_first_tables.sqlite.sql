CREATE TABLE webhooks (
  id VARCHAR(40) NOT NULL,
  short_code VARCHAR(40) NOT NULL,
  path VARCHAR(100),
  name TEXT NOT NULL,
  enabled BOOLEAN NOT NULL,
  held BOOLEAN NOT NULL,
  document TEXT NOT NULL,
  version INTEGER NOT NULL,
  epoch BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  deleted_at BIGINT,
  PRIMARY KEY (id),
  UNIQUE (short_code),
  UNIQUE (path)
);

CREATE INDEX ix_webhooks_epoch ON webhooks (epoch);

CREATE TABLE epochs (
  id INTEGER NOT NULL,
  epoch BIGINT NOT NULL,
  PRIMARY KEY (id)
);

CREATE TABLE secrets (
  id VARCHAR(40) NOT NULL,
  webhook_id VARCHAR(40) NOT NULL,
  field VARCHAR(120) NOT NULL,
  envelope TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (id)
);

CREATE UNIQUE INDEX secrets_of_webhook ON secrets (webhook_id, field);

CREATE TABLE invocations (
  id VARCHAR(40) NOT NULL,
  webhook_id VARCHAR(40) NOT NULL,
  received_at BIGINT NOT NULL,
  outcome VARCHAR(12) NOT NULL,
  code VARCHAR(40) NOT NULL,
  status SMALLINT NOT NULL,
  config_version INTEGER NOT NULL,
  method VARCHAR(20) NOT NULL,
  path BLOB NOT NULL,
  "query" BLOB NOT NULL,
  headers BLOB NOT NULL,
  body_size INTEGER NOT NULL,
  address VARCHAR(80) NOT NULL,
  duration_us INTEGER NOT NULL,
  matched VARCHAR(8) NOT NULL,
  detail TEXT NOT NULL,
  trace BLOB NOT NULL,
  duplicate_of VARCHAR(40),
  body BLOB,
  PRIMARY KEY (id)
);

CREATE INDEX invocations_apart ON invocations (outcome, id) WHERE outcome <> 'accepted';

CREATE INDEX invocations_apart_of_webhook ON invocations (webhook_id, outcome, id) WHERE outcome <> 'accepted';

CREATE INDEX invocations_of_webhook ON invocations (webhook_id, id);

CREATE TABLE deliveries (
  "key" VARCHAR(48) NOT NULL,
  invocation_id VARCHAR(40) NOT NULL,
  webhook_id VARCHAR(40) NOT NULL,
  emission INTEGER NOT NULL,
  state VARCHAR(12) NOT NULL,
  attempts INTEGER NOT NULL,
  next_at BIGINT NOT NULL,
  fields BLOB NOT NULL,
  created_at BIGINT NOT NULL,
  deadline BIGINT,
  started_at BIGINT,
  runs INTEGER,
  error TEXT DEFAULT '' NOT NULL,
  log BLOB,
  response_status SMALLINT,
  response_headers BLOB,
  response_body BLOB,
  responded_at BIGINT,
  answer_code VARCHAR(40) DEFAULT '' NOT NULL,
  released_at BIGINT,
  ended_at BIGINT,
  ask_at BIGINT,
  asked_by TEXT,
  replay_id VARCHAR(40),
  lane VARCHAR(40) DEFAULT '' NOT NULL,
  turn VARCHAR(24),
  place INTEGER,
  at_work BOOLEAN,
  superseded_by VARCHAR(48),
  PRIMARY KEY ("key")
)
 WITHOUT ROWID;

CREATE INDEX deliveries_apart ON deliveries (state, webhook_id, "key") WHERE state IN ('failed', 'held', 'lost', 'dropped', 'superseded');

CREATE INDEX deliveries_at_work ON deliveries (lane, turn) WHERE at_work;

CREATE INDEX deliveries_due ON deliveries (lane, next_at) WHERE state = 'queued';

CREATE INDEX deliveries_in_turn ON deliveries (lane, turn, place, "key") WHERE state IN ('queued', 'held') AND lane <> '';

CREATE INDEX deliveries_of_replay ON deliveries (replay_id, invocation_id, state) WHERE replay_id IS NOT NULL;

CREATE INDEX deliveries_passed_over ON deliveries (next_at) WHERE state = 'failed' AND turn IS NOT NULL AND started_at IS NULL;

CREATE INDEX deliveries_run_failed ON deliveries (webhook_id, ended_at, invocation_id) WHERE state = 'failed' AND ended_at IS NOT NULL;

CREATE INDEX deliveries_to_ask_about ON deliveries (ask_at) WHERE ask_at IS NOT NULL;

CREATE TABLE answers (
  invocation_id VARCHAR(40) NOT NULL,
  status SMALLINT NOT NULL,
  at BIGINT NOT NULL,
  reached BOOLEAN NOT NULL,
  PRIMARY KEY (invocation_id)
)
 WITHOUT ROWID;

CREATE INDEX answers_apart ON answers (invocation_id) WHERE status >= 500 OR NOT reached;

CREATE TABLE call_values (
  value BLOB NOT NULL,
  invocation_id VARCHAR(40) NOT NULL,
  PRIMARY KEY (value, invocation_id)
)
 WITHOUT ROWID;

CREATE INDEX call_values_of_call ON call_values (invocation_id);

CREATE TABLE bookmarks (
  invocation_id VARCHAR(40) NOT NULL,
  at BIGINT NOT NULL,
  author TEXT NOT NULL,
  PRIMARY KEY (invocation_id)
)
 WITHOUT ROWID;

CREATE TABLE call_notes (
  id VARCHAR(40) NOT NULL,
  invocation_id VARCHAR(40) NOT NULL,
  at BIGINT NOT NULL,
  author TEXT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (id)
);

CREATE INDEX call_notes_of_call ON call_notes (invocation_id);

CREATE TABLE edited_calls (
  invocation_id VARCHAR(40) NOT NULL,
  made_from VARCHAR(40) NOT NULL,
  author TEXT NOT NULL,
  changed BLOB NOT NULL,
  PRIMARY KEY (invocation_id)
)
 WITHOUT ROWID;

CREATE INDEX edited_calls_from ON edited_calls (made_from);

CREATE TABLE masked_tokens (
  invocation_id VARCHAR(40) NOT NULL,
  fingerprint VARCHAR(80) NOT NULL,
  PRIMARY KEY (invocation_id)
)
 WITHOUT ROWID;

CREATE TABLE duplicate_keys (
  "key" BLOB NOT NULL,
  invocation_id BLOB NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY ("key")
)
 WITHOUT ROWID;

CREATE INDEX ix_duplicate_keys_expires_at ON duplicate_keys (expires_at);

CREATE TABLE samples (
  webhook_id VARCHAR(40) NOT NULL,
  armed_until BIGINT,
  stored_at BIGINT,
  invocation_id VARCHAR(40),
  "trigger" BLOB,
  PRIMARY KEY (webhook_id)
);

CREATE TABLE schedules (
  webhook_id VARCHAR(40) NOT NULL,
  fingerprint VARCHAR(64) NOT NULL,
  anchor BIGINT NOT NULL,
  next_run_at BIGINT,
  lease_until BIGINT,
  consecutive_failures INTEGER NOT NULL,
  paused_at BIGINT,
  paused_reason TEXT DEFAULT '' NOT NULL,
  last_at BIGINT,
  last_result VARCHAR(16) DEFAULT '' NOT NULL,
  last_reason TEXT DEFAULT '' NOT NULL,
  last_duration_ms INTEGER,
  etag TEXT DEFAULT '' NOT NULL,
  last_modified TEXT DEFAULT '' NOT NULL,
  body_hash VARCHAR(64) DEFAULT '' NOT NULL,
  PRIMARY KEY (webhook_id)
);

CREATE INDEX schedules_due ON schedules (next_run_at) WHERE next_run_at IS NOT NULL;

CREATE TABLE listeners (
  id VARCHAR(40) NOT NULL,
  name TEXT NOT NULL,
  owner_id VARCHAR(40) NOT NULL,
  owner TEXT NOT NULL,
  address VARCHAR(80) NOT NULL,
  since BIGINT NOT NULL,
  lease_until BIGINT NOT NULL,
  ended_by TEXT,
  PRIMARY KEY (id)
);

CREATE TABLE handed (
  id VARCHAR(40) NOT NULL,
  invocation_id VARCHAR(40) NOT NULL,
  listener_id VARCHAR(40) NOT NULL,
  listener TEXT NOT NULL,
  owner TEXT NOT NULL,
  at BIGINT NOT NULL,
  asked_by TEXT NOT NULL,
  ended_at BIGINT,
  status SMALLINT,
  duration_us BIGINT,
  error TEXT DEFAULT '' NOT NULL,
  PRIMARY KEY (id)
);

CREATE INDEX handed_under_way ON handed (listener_id) WHERE ended_at IS NULL;

CREATE INDEX ix_handed_invocation_id ON handed (invocation_id);

CREATE TABLE incidents (
  id VARCHAR(40) NOT NULL,
  webhook_id VARCHAR(40) NOT NULL,
  kind VARCHAR(12) NOT NULL,
  opened_at BIGINT NOT NULL,
  first_at BIGINT NOT NULL,
  last_at BIGINT NOT NULL,
  count BIGINT NOT NULL,
  reasons BLOB NOT NULL,
  detail TEXT NOT NULL,
  closed_at BIGINT,
  closed_because TEXT DEFAULT '' NOT NULL,
  acknowledged_at BIGINT,
  acknowledged_by TEXT DEFAULT '' NOT NULL,
  acknowledged_note TEXT DEFAULT '' NOT NULL,
  tell_at BIGINT,
  told BLOB,
  PRIMARY KEY (id)
);

CREATE INDEX incidents_of_webhook ON incidents (webhook_id, id);

CREATE UNIQUE INDEX incidents_open ON incidents (webhook_id, kind) WHERE closed_at IS NULL;

CREATE INDEX incidents_to_tell ON incidents (tell_at) WHERE tell_at IS NOT NULL;

CREATE TABLE channels (
  id VARCHAR(40) NOT NULL,
  name TEXT NOT NULL,
  kind VARCHAR(12) NOT NULL,
  webhook_id VARCHAR(40),
  folder TEXT,
  created_at BIGINT NOT NULL,
  created_by TEXT NOT NULL,
  PRIMARY KEY (id)
);

CREATE TABLE sender_keys (
  address VARCHAR(300) NOT NULL,
  fetched_at BIGINT NOT NULL,
  content BLOB NOT NULL,
  PRIMARY KEY (address)
);

CREATE TABLE meta (
  name VARCHAR(60) NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (name)
);

CREATE TABLE chores (
  name VARCHAR(60) NOT NULL,
  at BIGINT NOT NULL,
  reached VARCHAR(40) NOT NULL,
  summary TEXT DEFAULT '' NOT NULL,
  PRIMARY KEY (name)
);

CREATE TABLE engine_deletions (
  delivery_key VARCHAR(48) NOT NULL,
  PRIMARY KEY (delivery_key)
)
 WITHOUT ROWID;

CREATE TABLE tallies (
  webhook_id VARCHAR(40) NOT NULL,
  name VARCHAR(60) NOT NULL,
  shard INTEGER NOT NULL,
  count BIGINT NOT NULL,
  last_at BIGINT NOT NULL,
  PRIMARY KEY (webhook_id, name, shard)
)
 WITHOUT ROWID;

CREATE TABLE volumes (
  webhook_id VARCHAR(40) NOT NULL,
  minute INTEGER NOT NULL,
  code VARCHAR(40) NOT NULL,
  shard INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  within_1 INTEGER DEFAULT '0' NOT NULL,
  within_2 INTEGER DEFAULT '0' NOT NULL,
  within_5 INTEGER DEFAULT '0' NOT NULL,
  within_10 INTEGER DEFAULT '0' NOT NULL,
  within_25 INTEGER DEFAULT '0' NOT NULL,
  within_50 INTEGER DEFAULT '0' NOT NULL,
  within_100 INTEGER DEFAULT '0' NOT NULL,
  within_250 INTEGER DEFAULT '0' NOT NULL,
  within_500 INTEGER DEFAULT '0' NOT NULL,
  within_1000 INTEGER DEFAULT '0' NOT NULL,
  within_1500 INTEGER DEFAULT '0' NOT NULL,
  within_2500 INTEGER DEFAULT '0' NOT NULL,
  within_5000 INTEGER DEFAULT '0' NOT NULL,
  within_10000 INTEGER DEFAULT '0' NOT NULL,
  within_30000 INTEGER DEFAULT '0' NOT NULL,
  PRIMARY KEY (webhook_id, minute, code, shard)
)
 WITHOUT ROWID;

CREATE TABLE volume_rollups (
  webhook_id VARCHAR(40) NOT NULL,
  minute INTEGER NOT NULL,
  code VARCHAR(40) NOT NULL,
  calls INTEGER NOT NULL,
  within_1 INTEGER DEFAULT '0' NOT NULL,
  within_2 INTEGER DEFAULT '0' NOT NULL,
  within_5 INTEGER DEFAULT '0' NOT NULL,
  within_10 INTEGER DEFAULT '0' NOT NULL,
  within_25 INTEGER DEFAULT '0' NOT NULL,
  within_50 INTEGER DEFAULT '0' NOT NULL,
  within_100 INTEGER DEFAULT '0' NOT NULL,
  within_250 INTEGER DEFAULT '0' NOT NULL,
  within_500 INTEGER DEFAULT '0' NOT NULL,
  within_1000 INTEGER DEFAULT '0' NOT NULL,
  within_1500 INTEGER DEFAULT '0' NOT NULL,
  within_2500 INTEGER DEFAULT '0' NOT NULL,
  within_5000 INTEGER DEFAULT '0' NOT NULL,
  within_10000 INTEGER DEFAULT '0' NOT NULL,
  within_30000 INTEGER DEFAULT '0' NOT NULL,
  PRIMARY KEY (webhook_id, minute, code)
)
 WITHOUT ROWID;

CREATE TABLE api_keys (
  id VARCHAR(40) NOT NULL,
  name TEXT NOT NULL,
  level VARCHAR(8) NOT NULL,
  prefix VARCHAR(16) NOT NULL,
  digest BLOB NOT NULL,
  created_at BIGINT NOT NULL,
  created_by TEXT NOT NULL,
  last_used_at BIGINT,
  PRIMARY KEY (id),
  UNIQUE (digest)
);

CREATE TABLE users (
  id VARCHAR(40) NOT NULL,
  name VARCHAR(80) NOT NULL,
  level VARCHAR(8) NOT NULL,
  password_hash TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  created_by TEXT NOT NULL,
  last_signed_in_at BIGINT,
  PRIMARY KEY (id),
  UNIQUE (name)
);

CREATE TABLE sessions (
  id VARCHAR(40) NOT NULL,
  digest BLOB NOT NULL,
  user_id VARCHAR(40) NOT NULL,
  created_at BIGINT NOT NULL,
  seen_at BIGINT NOT NULL,
  address VARCHAR(80) NOT NULL,
  user_agent TEXT NOT NULL,
  PRIMARY KEY (id),
  UNIQUE (digest)
);

CREATE INDEX ix_sessions_seen_at ON sessions (seen_at);

CREATE INDEX ix_sessions_user_id ON sessions (user_id);

CREATE TABLE audit (
  id VARCHAR(40) NOT NULL,
  at BIGINT NOT NULL,
  actor TEXT NOT NULL,
  level VARCHAR(8) NOT NULL,
  action VARCHAR(60) NOT NULL,
  subject VARCHAR(80) NOT NULL,
  changes BLOB NOT NULL,
  PRIMARY KEY (id)
);

CREATE INDEX audit_of_subject ON audit (subject, id);

CREATE TABLE idempotency (
  actor VARCHAR(80) NOT NULL,
  "key" VARCHAR(200) NOT NULL,
  request BLOB NOT NULL,
  answer BLOB NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (actor, "key")
)
 WITHOUT ROWID;

CREATE INDEX ix_idempotency_expires_at ON idempotency (expires_at);

CREATE TABLE replays (
  id VARCHAR(40) NOT NULL,
  state VARCHAR(12) NOT NULL,
  wanted BLOB NOT NULL,
  total INTEGER NOT NULL,
  done INTEGER NOT NULL,
  skipped INTEGER NOT NULL,
  completed INTEGER NOT NULL,
  include_completed BOOLEAN NOT NULL,
  position VARCHAR(40) NOT NULL,
  next_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  created_by TEXT NOT NULL,
  started_at BIGINT,
  started_by TEXT,
  ended_at BIGINT,
  fields VARCHAR(8) DEFAULT 'recorded' NOT NULL,
  PRIMARY KEY (id)
);

CREATE INDEX replays_due ON replays (next_at) WHERE state = 'running';

CREATE TABLE saved_views (
  id VARCHAR(40) NOT NULL,
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  "query" TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (id)
);

CREATE INDEX saved_views_of_owner ON saved_views (owner, id);
