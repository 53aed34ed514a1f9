"""Secrets that callers announced in set-up handshakes as those they will sign with. Anybody who knows the URL can announce one,
so each is kept with its caller's address, and the webhook's owner says which is the sender's."""

from collections import Counter
from collections.abc import Mapping

import msgspec

from postern.core.address import limit_key
from postern.core.webhooks.stored import StoredSecret

FIELD = "announced"
"""The field of the vault that keeps all announced secrets of a webhook."""
MOST_ANNOUNCED = 5
"""A later one takes the place of another only where callers of one network have announced several."""


class Announcement(msgspec.Struct, frozen=True):
    invocation_id: str
    at: float
    address: str
    secret: bytes

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.invocation_id})"


class Announced(msgspec.Struct, frozen=True):
    """The announcements of one webhook, each with another secret."""

    kept: list[Announcement] = []
    not_kept: int = 0
    """The number of others for which there was no room."""


def announced(secrets: Mapping[str, StoredSecret]) -> Announced:
    return msgspec.json.decode(secrets[FIELD].value, type=Announced) if FIELD in secrets else Announced()


def with_another(before: Announced, another: Announcement) -> Announced:
    """Five from one address leave room for a sender elsewhere, and no later one replaces the only one of its network."""
    if any(earlier.secret == another.secret for earlier in before.kept):
        return before
    if len(before.kept) < MOST_ANNOUNCED:
        return Announced([*before.kept, another], before.not_kept)
    networks = [limit_key(earlier.address) for earlier in before.kept]
    crowded, count = Counter(networks).most_common(1)[0]
    kept = before.kept
    if count > 1 and limit_key(another.address) not in networks:
        newest = max(place for place, network in enumerate(networks) if network == crowded)
        kept = [*kept[:newest], *kept[newest + 1 :], another]
    return Announced(kept, before.not_kept + 1)
