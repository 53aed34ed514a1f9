"""Secrets that callers announced in set-up handshakes as those they will sign with. Anybody who knows the URL can announce one,
so each is kept with its caller's address, and the webhook's owner says which is the sender's."""

from collections.abc import Mapping

import msgspec

from postern.core.webhooks.stored import StoredSecret

FIELD = "announced"
"""The field of the vault that keeps all announced secrets of a webhook."""
MOST = 5
"""The first ones: later ones, which may be a stranger's, do not push them out."""


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
    if any(one.secret == another.secret for one in before.kept):
        return before
    if len(before.kept) < MOST:
        return Announced([*before.kept, another], before.not_kept)
    return Announced(before.kept, before.not_kept + 1)
