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
@pytest.mark.parametrize(
    ("peer", "sent", "kept"),
    [
        (PROXY, TRACE, TRACE),
        ("203.0.113.9", TRACE, "***"),
        (PROXY, "00-" + "0" * 32 + "-b7ad6b7169203331-01", "***"),
        (PROXY, TRACE + "-x", "***"),
    ],
)
async def test_a_trace_is_taken_from_a_trusted_proxy_alone(
    house: House, peer: str, sent: str, kept: str, waits: bool
) -> None:
    webhook = await house.webhook(synchronousResponse={"enabled": waits})
    if waits:
        house.lets_callers_wait(webhook)
    await house.call(webhook, headers={"traceparent": sent}, peer=peer)
    await house.deliver()
    (trigger,) = house.engine.started.values()
    assert trigger.tracing == ({"traceparent": sent} if kept == sent else {})
    (call,) = await house.history()
    shown = await history.show(house.gateway, OWNER, call.id)
    assert dict(shown.headers)["traceparent"] == kept
