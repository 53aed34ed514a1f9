"""The trace that a call belongs to: believed of a trusted proxy, handed on to the engine, kept for nobody else."""

import pytest

from postern.core.address import Allowlist, ClientAddresses
from postern.usecases.calls.intake import Intake
from postern.usecases.history import history
from support import house as houses
from support.house import OWNER, House

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PROXY = "10.0.0.1"


@pytest.fixture(autouse=True)
def behind_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = ClientAddresses(Allowlist.parse([PROXY]), "X-Forwarded-For")
    monkeypatch.setattr(houses, "Intake", lambda gateway, _: Intake(gateway, addresses))


@pytest.mark.parametrize("waits", [False, True])
async def test_a_trace_is_taken_from_a_trusted_proxy_alone(house: House, waits: bool) -> None:
    webhook = await house.webhook(synchronousResponse={"enabled": waits})
    if waits:
        house.lets_callers_wait(webhook)
    for peer, sent, kept in (
        (PROXY, TRACE, TRACE),
        ("203.0.113.9", TRACE, "***"),
        (PROXY, "00-" + "0" * 32 + "-b7ad6b7169203331-01", "***"),
        (PROXY, TRACE + "-x", "***"),
    ):
        house.engine.started.clear()
        await house.call(webhook, headers={"traceparent": sent}, peer=peer)
        await house.deliver()
        (trigger,) = house.engine.started.values()
        assert trigger.tracing == ({"traceparent": sent} if kept == sent else {})
        shown = await history.show(house.gateway, OWNER, trigger.invocation_id)
        assert dict(shown.headers)["traceparent"] == kept
