"""The settings that this process was started with. They come from its environment, and only a restart changes
them."""

from postern.core.access.accounts import Actor
from postern.core.operations.shown_setting import ShownSetting
from postern.usecases.runtime.gateway import Gateway, require


async def in_force(gateway: Gateway, actor: Actor) -> list[ShownSetting]:
    """Every setting that the process was started with, its value and where that comes from; of secrets only
    whether they are set."""
    require(actor, "admin")
    return gateway.settings
