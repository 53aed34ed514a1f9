"""The senders that are built in: what they are called, and what their presets say."""

from functools import cache

import msgspec

from postern import presets
from postern.usecases.signatures.views import Provider


def names() -> list[str]:
    return presets.names()


@cache
def about(name: str) -> Provider:
    """What its preset says to whoever sets it up."""
    return msgspec.convert(presets.about(name), Provider)
