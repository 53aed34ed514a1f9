"""How long what is kept is kept: the gateway's rule, and a webhook's own where it has one."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from postern.core.address import limit_key

DAY = 86_400.0
REJECTED_KEPT = 1_000
"""Of each webhook: strangers cannot fill the disk, nor push out what was accepted."""
CALLERS_SHARE = 0.1
"""So much of them is kept for each caller, the newest: nor can one caller push out another's."""
VOLUMES_KEPT = 90 * DAY
YOUNGEST = 120.0
"""However short the rule, nothing younger goes: a caller may still be waiting for its answer."""


class OwnRetention(msgspec.Struct, frozen=True, rename="camel"):
    """A webhook's own rule, read from its stored settings by itself: history outlives the webhook, and a
    setting beside it that cannot be read must not lose what its owner wants kept."""

    history_retention_days: int | None = None
    body_retention_days: int | None = None


def rejected_to_delete(newest_first: Iterable[tuple[str, str]], kept: int) -> list[str]:
    """Of rejected calls, as ids and addresses, those that are too many: first what goes beyond a caller's
    share, the oldest first, and only then the oldest of all."""
    of_caller: Counter[str] = Counter()
    sure: list[str] = []
    others: list[str] = []
    for invocation_id, address in newest_first:
        caller = limit_key(address)
        of_caller[caller] += 1
        (sure if of_caller[caller] <= kept * CALLERS_SHARE else others).append(invocation_id)
    return sorted((sure + others)[kept:])


class RetentionPolicy(msgspec.Struct, frozen=True):
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
        """What is older may go. 0, where the webhook's own rule could not be read: everything stays until it can be."""
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
