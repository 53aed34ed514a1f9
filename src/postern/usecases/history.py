"""Reading what happened, and having it happen again."""

from datetime import datetime
from typing import Any

import msgspec

from postern.core.delivery import Trigger
from postern.core.invocation import Delivery, HistoryFilter, Invocation, status_of
from postern.core.problems import FieldError, Refused
from postern.core.records import Actor
from postern.core.sample import recorded
from postern.usecases.dispatch import payload_of
from postern.usecases.gateway import Gateway, require
from postern.usecases.present import Page, iso

STATUSES = ("rejected", "duplicate", "handshake", "accepted", "held", "started", "responded", "failed", "dropped")


async def listing(gateway: Gateway, actor: Actor, wanted: HistoryFilter, limit: int = 50, cursor: str | None = None) -> Page:
    require(actor, "read")
    if wanted.status is not None and wanted.status not in STATUSES:
        raise Refused("invalid_request", errors=[FieldError("status", f"choose one of: {', '.join(STATUSES)}")])
    page = await gateway.store.history.page(wanted, max(1, min(limit, 200)), cursor)
    return Page([summary(invocation, delivery) for invocation, delivery in page.rows], page.next_before)


async def show(gateway: Gateway, actor: Actor, invocation_id: str) -> dict[str, Any]:
    require(actor, "read")
    found = await gateway.store.history.get(invocation_id)
    if found is None:
        raise Refused("not_found", "there is no invocation with this id, or retention has taken it")
    return story(*found)


async def replay(gateway: Gateway, actor: Actor, invocation_id: str) -> dict[str, Any]:
    """Start the workflow again with the recorded payload and the mapping as it is now."""
    require(actor, "write")
    found = await gateway.store.history.get(invocation_id)
    if found is None:
        raise Refused("not_found", "there is no invocation with this id, or retention has taken it")
    invocation, _ = found
    if invocation.outcome != "accepted":
        raise Refused("conflict", f"this call was not accepted ({invocation.code}), so there is nothing to replay")
    webhook = gateway.directory.by_id(invocation.webhook_id)
    if webhook is None:
        raise Refused("conflict", "its webhook has been deleted")
    payload = payload_of(invocation)
    if payload is None:
        raise Refused("conflict", "the call's body is no longer kept")
    fields, _ = webhook.mapping.apply(payload)
    now = gateway.clock()
    sample = None
    if webhook.recording_until > now:
        sample = recorded(Trigger("", webhook.id, invocation_id, fields, payload))
    delivery = await gateway.store.deliveries.replay(invocation_id, fields, now, "held" if webhook.held else "queued", sample)
    gateway.due.set()
    return {"invocationId": invocation_id, "delivery": delivery_told(delivery)}


def summary(invocation: Invocation, newest: Delivery | None) -> dict[str, Any]:
    told = {
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
    return told


def story(invocation: Invocation, deliveries: list[Delivery]) -> dict[str, Any]:
    """One invocation whole: the call as stored, the verdict with its trace, every delivery with its attempts."""
    body = invocation.body
    text = None if body is None else body.decode("utf-8", "replace")
    return summary(invocation, deliveries[-1] if deliveries else None) | {
        "path": invocation.path.decode("latin-1"),
        "query": invocation.query.decode("latin-1"),
        "headers": msgspec.json.decode(invocation.headers),
        "body": text,
        "bodyTruncated": body is not None and len(body) < invocation.body_size,
        "payload": _payload(invocation),
        "trace": [{"step": step, "ok": ok, "detail": detail} for step, ok, detail in msgspec.json.decode(invocation.trace)],
        "deliveries": [delivery_told(delivery) for delivery in deliveries],
    }


def delivery_told(delivery: Delivery) -> dict[str, Any]:
    response = delivery.response
    return {
        "key": delivery.key,
        "emission": delivery.emission,
        "state": delivery.state,
        "fields": delivery.fields,
        "createdAt": iso(delivery.created_at),
        "releasedAt": None if delivery.released_at is None or delivery.state == "dropped" else iso(delivery.released_at),
        "startedAt": None if delivery.started_at is None else iso(delivery.started_at),
        "nextAttemptAt": iso(delivery.next_at) if delivery.state == "queued" else None,
        "attempts": delivery.attempts,
        "log": [{**entry, "at": iso(float(str(entry["at"])))} for entry in delivery.log],
        "runs": delivery.runs,
        "nobodyListens": delivery.state == "started" and delivery.runs == 0,
        "error": delivery.error or None,
        "answer": None if delivery.deadline is None else delivery.answer_code or "waiting",
        "respondedAt": None if delivery.responded_at is None else iso(delivery.responded_at),
        "late": delivery.responded_at is not None and delivery.answer_code != "accepted",
        "response": None
        if response is None
        else {
            "status": response.status,
            "headers": [list(pair) for pair in response.headers],
            "body": response.body.decode("utf-8", "replace"),
        },
    }


def moment(text: str | None, field: str) -> float | None:
    """A time given as ISO 8601 or seconds since 1970."""
    if text is None or text == "":
        return None
    try:
        return float(text) if text.replace(".", "", 1).isdigit() else datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise Refused("invalid_request", errors=[FieldError(field, "write a time like 2026-11-21T09:00:00Z")]) from None


def _payload(invocation: Invocation) -> Any:
    if invocation.body is None or invocation.outcome in ("rejected", "handshake"):
        return None
    payload = payload_of(invocation)
    if payload is None:
        return None
    try:
        return msgspec.json.decode(payload)
    except (msgspec.DecodeError, RecursionError):
        return None


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
