"""Runs that an earlier version of Postern recorded with DBOS, in the same file: carried over once, then its
tables are dropped."""

import json
import logging
import sqlite3
from typing import Any

log = logging.getLogger("postern.engine")

_STATES = {
    "SUCCESS": "completed",
    "CANCELLED": "cancelled",
    "PENDING": None,
    "ENQUEUED": None,
    "DELAYED": None,
}
_TABLES = (
    *("dbos_migrations", "workflow_status", "workflow_input", "workflow_output", "operation_outputs"),
    *("notifications", "workflow_events", "workflow_events_history", "streams", "workflow_schedules"),
    *("application_versions", "queues"),
)

_RUNS = """
SELECT workflow_uuid, status, coalesce(input.inputs, run.inputs), coalesce(output.error, run.error),
    run.created_at / 1000.0, coalesce(run.completed_at, run.updated_at) / 1000.0
FROM workflow_status AS run LEFT JOIN workflow_input AS input USING (workflow_uuid)
    LEFT JOIN workflow_output AS output USING (workflow_uuid)
ORDER BY run.created_at, run.rowid
"""
_STEPS = """
INSERT INTO steps (run, position, name, result, error)
SELECT ?, row_number() OVER (ORDER BY function_id) - 1, function_name, output, json_extract(error, '$.message')
FROM operation_outputs WHERE workflow_uuid = ?
"""


def carry_over(connection: sqlite3.Connection) -> None:
    """Unfinished runs stay unfinished, with the results of their steps; ended ones stay in the list of runs
    and are not run again. Within the caller's transaction: all or nothing."""
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "workflow_status" not in there:
        return
    runs = connection.execute(_RUNS).fetchall()
    for seq, (id, status, inputs, error, started_at, ended_at) in enumerate(runs, 1):
        delivery, _, workflow = id.rpartition("/")
        state = _STATES.get(status, "failed")
        event, deadline = _given(inputs)
        connection.execute(
            "INSERT INTO runs (seq, delivery, workflow, event, deadline, started_at, state, ended_at, error)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                seq,
                delivery,
                workflow,
                event,
                deadline,
                started_at,
                state,
                ended_at if state else None,
                _words(error),
            ),
        )
        connection.execute(_STEPS, (seq, id))
    for table in there & set(_TABLES):
        connection.execute(f'DROP TABLE "{table}"')
    log.info("%d runs of an earlier version were carried over", len(runs))


def _given(inputs: str) -> tuple[str, float | None]:
    variables, payload, slot = json.loads(inputs)["positionalArgs"]
    return json.dumps({**variables, "payload": json.loads(payload)}), slot["deadline"] if slot else None


def _words(error: str | None) -> str:
    if not error:
        return ""
    failure: Any = json.loads(error)
    return str(failure["message"]) if isinstance(failure, dict) and "message" in failure else str(failure)
