"""Retention: for how long calls are kept, by the gateway's rule or a webhook's own."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from postern.core.address import limit_key

DAY = 86_400.0
REJECTED_BYTES = 64 * 1024 * 1024
"""Rejected calls kept for each webhook: strangers can neither fill the disk, nor push out accepted calls."""
ROW_SIZE = 1_000
"""Bytes that a recorded call takes besides what was sent, in columns and indexes."""
VOLUMES_KEPT = 90 * DAY
YOUNGEST = 120.0
"""Seconds. Nothing younger is deleted, however short the rule: a caller may still be waiting for its answer."""


class OwnRetention(msgspec.Struct, frozen=True, rename="camel"):
    """A webhook's own rule. It is read apart from the other settings: history outlives the webhook, and another setting
    that cannot be read must not cost what its owner wants kept."""

    history_retention_days: int | None = None
    body_retention_days: int | None = None
    filtered_retention_days: int | None = None


class Rejected(NamedTuple):
    id: str
    address: str
    code: str
    size: int


def rejected_to_delete(oldest_first: list[Rejected], room: int) -> list[Rejected]:
    """The rejected calls for which there is no room. The room is divided equally among callers, and each caller's among its
    reasons. A share that one does not need goes to the others; a caller with too many loses its oldest."""
    of_caller: Counter[str] = Counter()
    of_reason: dict[str, Counter[str]] = {}
    for call in oldest_first:
        caller = limit_key(call.address)
        of_caller[caller] += call.size
        of_reason.setdefault(caller, Counter())[call.code] += call.size
    share = _equal_share(of_caller, room)
    shares = {caller: _equal_share(reasons, share) for caller, reasons in of_reason.items()}
    beyond = []
    for call in oldest_first:
        caller = limit_key(call.address)
        if of_reason[caller][call.code] > shares[caller]:
            of_reason[caller][call.code] -= call.size
            beyond.append(call)
    return beyond


def _equal_share(needs: Mapping[str, int], room: float) -> float:
    """The most that each may have so that there is room for all."""
    for place, need in enumerate(sorted(needs.values())):
        share = room / (len(needs) - place)
        if need > share:
            return share
        room -= need
    return math.inf


class RetentionPolicy(msgspec.Struct, frozen=True):
    history_days: int = 30
    body_days: int | None = None
    """None: as long as the history."""
    most_rows: int = 0
    """0: no cap."""
    audit_days: int = 365
    """For the audit log, and for replays of many that are over."""

    def records_before(self, now: float) -> float:
        return now - self.audit_days * DAY

    def history_before(self, own: OwnRetention | None, now: float) -> float:
        """Older calls are deleted. 0 if the webhook's own rule cannot be read: then everything stays."""
        if own is None:
            return 0.0
        return now - max((own.history_retention_days or self.history_days) * DAY, YOUNGEST)

    def bodies_before(self, own: OwnRetention | None, now: float) -> float | None:
        """None if bodies stay as long as their calls."""
        if own is None:
            return None
        history = own.history_retention_days or self.history_days
        days = own.body_retention_days if own.body_retention_days is not None else self.body_days
        return None if days is None or days >= history else now - max(days * DAY, YOUNGEST)

    def filtered_before(self, own: OwnRetention | None, now: float) -> float | None:
        """None if bodies of filtered calls stay as long as other bodies."""
        days = own.filtered_retention_days if own is not None else None
        return None if days is None else now - max(days * DAY, YOUNGEST)
