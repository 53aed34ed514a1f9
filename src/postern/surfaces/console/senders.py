"""The senders the console offers: what their presets say, in the words of a form."""

from typing import Any

from postern.usecases.runtime.gateway import Gateway

# Not in the order of the alphabet: a shop's owner finds the shop first.
FIRST = ("shopify", "woocommerce", "stripe", "github", "slack", "paddle")


def about(gateway: Gateway, name: str) -> dict[str, Any]:
    return dict(gateway.presets.about(name))


def titles(gateway: Gateway) -> dict[str, str]:
    return {name: str(gateway.presets.about(name)["title"]) for name in gateway.presets.names()}


def awaited(gateway: Gateway, webhook: dict[str, Any] | None) -> dict[str, Any] | None:
    """The sender whose secret this webhook is still waiting for."""
    how = webhook["authentication"] if webhook else {}
    return about(gateway, how["provider"]) if how.get("secretAwaited") else None


def offered(gateway: Gateway) -> list[dict[str, Any]]:
    """Every sender, the most asked-for ones first, the generic scheme last."""
    known = gateway.presets.names()
    order = [name for name in FIRST if name in known] + [
        name for name in known if name not in FIRST and name != "generic"
    ]
    return [about(gateway, name) for name in order]
