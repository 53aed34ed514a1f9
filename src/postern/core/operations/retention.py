"""How long what is kept is kept: the gateway's rule, and a webhook's own where it has one."""

from dataclasses import dataclass

import msgspec

DAY = 86_400.0
REJECTED_KEPT = 1_000
"""The newest rejected calls of each webhook: strangers cannot fill the disk, nor push out what was
accepted."""
VOLUMES_KEPT = 90 * DAY
YOUNGEST = 120.0
"""However short the rule, nothing younger goes: a caller may still be waiting for its answer."""


class OwnRetention(msgspec.Struct, frozen=True, rename="camel"):
    """A webhook's own rule, read from its stored settings by itself: history outlives the webhook, and a
    setting beside it that cannot be read must not lose what its owner wants kept."""

    history_retention_days: int | None = None
    body_retention_days: int | None = None


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    history_days: int = 30
    body_days: int | None = None
    """None: as long as the history."""
    most_rows: int = 0
    """0: no cap."""
    audit_days: int = 365
    """Of who changed what, and of replays of many that are over."""

    def records_before(self, now: float) -> float:
        return now - self.audit_days * DAY

    def history_before(self, own: OwnRetention | None, now: float) -> float:
        """None, where a webhook's own rule cannot be read: everything stays until it can."""
        if own is None:
            return 0.0
        return now - max((own.history_retention_days or self.history_days) * DAY, YOUNGEST)

    def bodies_before(self, own: OwnRetention | None, now: float) -> float | None:
        """None where bodies stay as long as their calls."""
        if own is None:
            return None
        history = own.history_retention_days or self.history_days
        days = own.body_retention_days if own.body_retention_days is not None else self.body_days
        return None if days is None or days >= history else now - max(days * DAY, YOUNGEST)
