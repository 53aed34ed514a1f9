"""The metrics that are measured when they are asked for."""

from postern.observe.metrics import REGISTRY
from postern.usecases.deliveries import dispatch
from support.house import House


async def test_what_waits_to_be_started_is_counted_and_how_long_it_has(house: House) -> None:
    def measured() -> tuple[float | None, float]:
        return (
            REGISTRY.get_sample_value("postern_deliveries_waiting"),
            round(REGISTRY.get_sample_value("postern_oldest_due_seconds") or 0),
        )

    webhook = await house.webhook()
    for _ in range(2):
        await house.call(webhook)
    began = house.gateway.clock()
    house.gateway.clock = lambda: began + 50
    await dispatch.measure(house.gateway)
    assert measured() == (2, 50)
    await house.deliver()
    await dispatch.measure(house.gateway)
    assert measured() == (0, 0)
