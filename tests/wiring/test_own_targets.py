"""The connections to webhooks' own targets."""

from dataclasses import replace

from postern.core.address import Allowlist
from postern.core.webhooks.target import OwnTarget
from postern.wiring.targets import Targets


async def test_a_changed_target_keeps_the_connections_of_others_that_are_served() -> None:
    targets, served = Targets(Allowlist.parse([])), {"wh_a", "wh_b"}
    one = OwnTarget("https://erp.example/hooks", "trigger", (), 10.0, "whsec_c2VjcmV0IG9mIGEgdGVzdC4uLg==")
    first = targets.of("wh_a", one, served.__contains__)
    other = targets.of("wh_b", one, served.__contains__)
    assert targets.of("wh_a", replace(one, timeout=5.0), served.__contains__) is not first
    assert targets.of("wh_b", one, served.__contains__) is other
    await targets.aclose()
