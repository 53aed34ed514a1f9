"""The senders that are built in: what they are called, and what their presets say."""

from typing import Any

from postern import presets


def names() -> list[str]:
    return presets.names()


def about(name: str) -> dict[str, Any]:
    """What its preset says to whoever sets it up."""
    return dict(presets.about(name))
