"""The metrics that are measured, and not counted: when somebody asks for them, or when there is time."""

from postern.observe.counting import numbers
from postern.usecases.runtime.gateway import Gateway


def offer_writer_waiting(gateway: Gateway) -> None:
    """Read from the store each time: another worker reads this process's numbers too, and asks no route of it."""
    numbers().writer_waiting.set_function(lambda: gateway.store.waiting)


async def measure_backlog(gateway: Gateway) -> None:
    count, oldest = await gateway.store.deliveries.backlog(gateway.clock())
    numbers().deliveries_waiting.set(count)
    numbers().oldest_due_seconds.set(oldest)
