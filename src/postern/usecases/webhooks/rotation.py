"""Where a change of secrets stands: whether the sender has changed over, or both secrets are still in use."""

from collections.abc import Mapping

from postern.core.webhooks.stored import StoredSecret, Tally
from postern.usecases.answers import Time
from postern.usecases.webhooks.views import Rotation

QUIET = 3600.0
"""Seconds without a call that used the main secret, before the answer is that none uses it any more: a
sender changes over server by server, and what it sends again was signed before."""


def rotation(
    secrets: Mapping[str, StoredSecret], tallies: Mapping[str, Tally], now: float
) -> Rotation | None:
    """None where only one secret is valid. ``safe_from``: not sooner, and later with every further call that
    uses the main one; None once the hour is over."""
    if "second" not in secrets:
        return None
    main, second = (tallies.get(f"secret:{secrets[name].id}") for name in ("main", "second"))
    unused_since = max(main.last_at if main else 0.0, secrets["main"].created_at)
    changed_over = second is not None and second.last_at > unused_since
    is_quiet = now >= unused_since + QUIET
    return Rotation(
        safe_to_promote=changed_over and is_quiet,
        main_unused_since=Time(unused_since),
        safe_from=None if is_quiet else Time(unused_since + QUIET),
    )
