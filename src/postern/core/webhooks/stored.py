"""Webhooks as stores keep them: settings, with the secrets beside them."""

from dataclasses import dataclass, field

import msgspec

from postern.core.webhooks.settings import Resolved, WebhookSettings


@dataclass(frozen=True, slots=True)
class StoredSecret:
    id: str
    value: bytes = field(repr=False)
    created_at: float


@dataclass(slots=True)
class StoredWebhook:
    id: str
    short_code: str
    enabled: bool
    held: bool
    settings: WebhookSettings
    resolved: Resolved
    version: int
    created_at: float
    updated_at: float
    secrets: dict[str, StoredSecret] = field(default_factory=dict, repr=False)
    """Decrypted, by field: main, second, and whatever else is secret among the settings."""
    unreadable_secrets: dict[str, str] = field(default_factory=dict)
    """Why a secret cannot be decrypted, by field. Such a webhook can be given new secrets, and is not served."""
    armed_until: float | None = None
    """Until then Record Events keeps the next accepted call as the sample."""

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def address(self) -> str:
        """The end of its URL."""
        return self.settings.path or self.short_code

    @property
    def addresses(self) -> list[str]:
        """Where calls find it: also the short code, until it is given up."""
        settings = self.settings
        return [self.address] if settings.only_path or not settings.path else [settings.path, self.short_code]

    @property
    def secret_fields(self) -> set[str]:
        """The fields of all stored secrets, readable or not."""
        return {*self.secrets, *self.unreadable_secrets}


class UnreadableWebhook(msgspec.Struct, frozen=True):
    """A stored webhook that this version cannot serve. ``reason`` holds nothing secret."""

    id: str
    addresses: list[str]
    """Where calls find it."""
    name: str
    version: int
    reason: str

    @property
    def explanation(self) -> str:
        return (
            f"This version of Postern cannot read the settings of {self.name}: {self.reason}. The webhook is not "
            "served until a version that can read them runs again, or it is deleted."
        )


class BinnedWebhook(msgspec.Struct, frozen=True):
    """A webhook that was deleted and can still be restored."""

    id: str
    short_code: str
    path: str | None
    name: str
    deleted_at: float


class ChangedWebhooks(msgspec.Struct, frozen=True):
    """The changes after an epoch, and the ``epoch`` to ask from next time. ``deleted``: ids."""

    epoch: int
    stored: list[StoredWebhook] = msgspec.field(default_factory=list)
    unreadable: list[UnreadableWebhook] = msgspec.field(default_factory=list)
    deleted: list[str] = msgspec.field(default_factory=list)


class Tally(msgspec.Struct, frozen=True):
    count: int
    last_at: float
