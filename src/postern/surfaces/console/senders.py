"""The senders the console offers: what their presets say, in the words of a form."""

from msgspec import Struct

from postern.usecases.signatures.senders import about, names
from postern.usecases.signatures.views import Provider, SendAgain
from postern.usecases.webhooks.views import Webhook, WithSignature

__all__ = ["about", "asked_again", "awaited", "limit", "names", "offered", "titles"]

# Not in the order of the alphabet: a shop's owner finds the shop first.
FIRST = ("shopify", "woocommerce", "stripe", "github", "slack", "paddle")


def titles() -> dict[str, str]:
    return {name: about(name).title for name in names()}


def awaited(webhook: Webhook | None) -> Provider | None:
    """The sender whose secret this webhook is still waiting for."""
    how = webhook.authentication if webhook else None
    return about(how.provider) if isinstance(how, WithSignature) and how.secret_awaited else None


def asked_again(webhook: Webhook) -> SendAgain | None:
    """How the sender of this webhook is asked for what it did not deliver."""
    how = webhook.authentication
    return (
        about(how.provider).send_again if isinstance(how, WithSignature) and how.provider in names() else None
    )


class Limit(Struct, frozen=True):
    """How long a sender waits for an answer."""

    title: str
    seconds: float


def limit(webhook: Webhook) -> Limit | None:
    how = webhook.authentication
    if not isinstance(how, WithSignature) or how.provider not in names():
        return None
    sender = about(how.provider)
    waits = sender.sender.timeout_seconds
    return None if waits is None else Limit(sender.title, waits)


def offered() -> list[Provider]:
    """Every sender, the most asked-for ones first, the generic scheme last."""
    known = names()
    order = [name for name in FIRST if name in known] + [
        name for name in known if name not in FIRST and name != "generic"
    ]
    return [about(name) for name in order]
