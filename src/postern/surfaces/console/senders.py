"""The senders the console offers: what their presets say, in the words of a form."""

from postern.usecases.signatures.senders import about, names
from postern.usecases.signatures.views import Provider
from postern.usecases.webhooks.views import Webhook, WithSignature

__all__ = ["about", "asked_again", "awaited", "names", "of", "offered", "titles"]

# Not in the order of the alphabet: a shop's owner finds the shop first.
FIRST = ("shopify", "woocommerce", "stripe", "github", "slack", "paddle")


def titles() -> dict[str, str]:
    return {name: about(name).title for name in names()}


def of(webhook: Webhook) -> Provider | None:
    """The built-in sender that signs its calls."""
    how = webhook.authentication
    return about(how.provider) if isinstance(how, WithSignature) and how.provider in names() else None


def awaited(webhook: Webhook | None) -> Provider | None:
    """The sender whose secret this webhook is still waiting for."""
    how = webhook.authentication if webhook else None
    return about(how.provider) if isinstance(how, WithSignature) and how.secret_awaited else None


def asked_again(webhook: Webhook | None) -> Provider | None:
    """The sender of this webhook, if it lists for programs what it could not deliver."""
    sender = of(webhook) if webhook else None
    return sender if sender and sender.send_again and sender.send_again.kind else None


def offered() -> list[Provider]:
    """Every sender, the most asked-for ones first, the generic scheme last."""
    others = [name for name in names() if name not in (*FIRST, "generic")]
    return [about(name) for name in (*FIRST, *others) if name in names()]
