"""How answers are told, the same on every surface."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from postern.core.invocation import Delivery, Invocation, status_of


@dataclass(slots=True)
class Page:
    items: list[dict[str, Any]]
    next_cursor: str | None


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def summary(invocation: Invocation, newest: Delivery | None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": invocation.id,
        "webhookId": invocation.webhook_id,
        "receivedAt": iso(invocation.received_at),
        "status": status_of(invocation.outcome, newest),
        "code": invocation.code,
        "detail": invocation.detail,
        "httpStatus": _http_status(invocation, newest),
        "method": invocation.method,
        "address": invocation.address,
        "bodySize": invocation.body_size,
        "durationMs": _duration(invocation, newest),
        "matched": invocation.matched or None,
        "duplicateOf": invocation.duplicate_of,
        "configVersion": invocation.config_version,
    }
    if newest is not None:
        told |= {"runs": newest.runs, "nobodyListens": newest.state == "started" and newest.runs == 0, "error": newest.error or None}
        told |= {"workflows": next((entry["workflows"] for entry in reversed(newest.log) if "workflows" in entry), None)}
    return told


def _http_status(invocation: Invocation, newest: Delivery | None) -> int | None:
    if invocation.status:
        return invocation.status
    if newest is None or not newest.answer_code:
        return None
    known = {"completed": 200, "workflow_failed": 502, "response_timeout": 504}
    return newest.response.status if newest.answer_code == "accepted" and newest.response else known.get(newest.answer_code)


def _duration(invocation: Invocation, newest: Delivery | None) -> float:
    if newest is not None and newest.emission == 1 and newest.answer_code == "accepted" and newest.responded_at is not None:
        return round((newest.responded_at - invocation.received_at) * 1000, 3)
    return invocation.duration_us / 1000
