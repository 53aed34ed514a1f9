"""The metrics that are measured, and not counted: when somebody asks for them, or when there is time."""

from postern.observe.metrics import Numbers
from postern.usecases.runtime.gateway import Gateway


def offer_writer_waiting(gateway: Gateway) -> None:
    """Read from the store each time: another worker reads this process's numbers too, and asks no route of it."""
    Numbers.writer_waiting.set_function(lambda: gateway.store.waiting)


async def measure(gateway: Gateway) -> None:
    count, oldest = await gateway.store.deliveries.backlog(gateway.clock())
    Numbers.deliveries_waiting.set(count)
    Numbers.oldest_due_seconds.set(oldest)
    Numbers.schedules_paused.set(await gateway.store.schedules.paused())
