"""How answers are told, the same on every surface."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from postern.core.history.invocation import Delivery, Invocation, status_of


@dataclass(slots=True)
class Page:
    items: list[dict[str, Any]]
    next_cursor: str | None = None
    unreadable: list[dict[str, Any]] = field(default_factory=list)
    """What belongs on this page and cannot be shown as the others are, each with the reason."""

    def told(self) -> dict[str, Any]:
        told = {"items": self.items, "nextCursor": self.next_cursor}
        return told | {"unreadable": self.unreadable} if self.unreadable else told


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_or_none(seconds: float | None) -> str | None:
    return None if seconds is None else iso(seconds)


def summary(invocation: Invocation, deliveries: list[Delivery]) -> dict[str, Any]:
    """``deliveries`` in the order of their emissions. The status follows the newest; what the caller heard is
    the first one's for ever."""
    newest = deliveries[-1] if deliveries else None
    first = deliveries[0] if deliveries and deliveries[0].emission == 1 else None
    told: dict[str, Any] = {
        "id": invocation.id,
        "webhookId": invocation.webhook_id,
        "receivedAt": iso(invocation.received_at),
        "status": status_of(invocation.outcome, newest),
        "code": invocation.code,
        "detail": invocation.detail,
        "httpStatus": _http_status(invocation, first),
        "method": invocation.method,
        "address": invocation.address,
        "bodySize": invocation.body_size,
        "durationMs": _duration(invocation, first),
        "matched": invocation.matched or None,
        "duplicateOf": invocation.duplicate_of,
        "configVersion": invocation.config_version,
    }
    if newest is not None:
        told |= {
            "runs": newest.runs,
            "nobodyListens": newest.state == "started" and newest.runs == 0,
            "error": newest.error or None,
        }
        told |= {
            "workflows": next(
                (entry["workflows"] for entry in reversed(newest.log) if "workflows" in entry), None
            )
        }
    return told


def _http_status(invocation: Invocation, first: Delivery | None) -> int | None:
    if invocation.status:
        return invocation.status
    if first is None or not first.answer_code:
        return None
    known = {"completed": 200, "workflow_failed": 502, "response_timeout": 504}
    return (
        first.response.status
        if first.answer_code == "accepted" and first.response
        else known.get(first.answer_code)
    )


def _duration(invocation: Invocation, first: Delivery | None) -> float:
    if first is not None and first.answer_code == "accepted" and first.responded_at is not None:
        return round((first.responded_at - invocation.received_at) * 1000, 3)
    return invocation.duration_us / 1000
