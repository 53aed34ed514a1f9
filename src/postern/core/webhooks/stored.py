"""A webhook as stores keep it: its settings, and its secrets beside them."""

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
    """A webhook's configuration."""

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
    """By field: main, second, and whatever else is secret among the settings. Decrypted, for the process that
    uses them."""
    unreadable_secrets: dict[str, str] = field(default_factory=dict)
    """By field: why that secret cannot be decrypted. Such a webhook is shown and can be given new secrets, and
    is not served."""
    armed_until: float | None = None
    """Record Events: until then the next accepted call is kept as the sample."""

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def secret_fields(self) -> set[str]:
        """Of the secrets that are stored, readable or not."""
        return {*self.secrets, *self.unreadable_secrets}


class UnreadableWebhook(msgspec.Struct, frozen=True):
    """A webhook that is stored and that this version cannot serve; ``reason`` says why, and holds nothing
    secret."""

    id: str
    short_code: str
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
    name: str
    deleted_at: float


class ChangedWebhooks(msgspec.Struct, frozen=True):
    """What was changed after an epoch, and the epoch to ask from next time."""

    epoch: int
    stored: list[StoredWebhook] = msgspec.field(default_factory=list)
    unreadable: list[UnreadableWebhook] = msgspec.field(default_factory=list)
    deleted: list[str] = msgspec.field(default_factory=list)
    """Their ids."""


class Tally(msgspec.Struct, frozen=True):
    count: int
    last_at: float
