"""What a replay of one call carries, and what is said where there is nothing to replay."""

import pytest

from postern.core.problems import Gone, Refused
from postern.usecases.history import history
from postern.usecases.webhooks import webhooks
from support.house import OWNER, House


async def why_not(house: House, invocation: str) -> tuple[str, str]:
    with pytest.raises(Refused) as refused:
        await history.replay(house.gateway, OWNER, invocation)
    return refused.value.code, refused.value.detail


async def test_what_started_nothing_is_reported_with_what_to_do_instead(house: House) -> None:
    webhook = await house.webhook(duplicateProtection={"enabled": True})
    first = (await house.call(webhook)).json["invocationId"]
    again = (
        next(one.id for one in await house.history() if one.id != first) if await house.call(webhook) else ""
    )
    assert await why_not(house, again) == (
        "conflict",
        f"this call is a duplicate and started nothing; replay the first one, {first}",
    )
    rejected = (await house.call(webhook, b"nonsense")).json["invocationId"]
    code, detail = await why_not(house, rejected)
    assert code == "conflict" and "rejected (malformed_json)" in detail and "admit it" in detail
    assert await why_not(house, "inv_nobody") == (
        "not_found",
        "there is no invocation with this id, or retention has taken it",
    )
    shop = await house.webhook(
        authentication={"method": "hmac", "provider": "woocommerce", "secret": "a secret"}
    )
    await house.call(shop, b"webhook_id=1", headers={"Content-Type": "application/x-www-form-urlencoded"})
    (greeting,) = await house.history(webhook_id=shop.id)
    assert await why_not(house, greeting.id) == (
        "conflict",
        "this call was a set-up handshake, which starts nothing",
    )


async def test_what_cannot_be_started_again_says_why(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    webhook = await house.webhook()
    call = (await house.call(webhook)).json["invocationId"]
    await house.deliver()

    async def taken(*_: object) -> None:
        raise Gone

    with monkeypatch.context() as patched:
        patched.setattr(house.gateway.store.emissions, "replay", taken)
        assert await why_not(house, call) == ("not_found", "retention has just deleted this invocation")
    assert (await house.gateway.store.retention.strip([call]))[0] == 1
    assert await why_not(house, call) == ("conflict", "the call's body is no longer kept")
    await webhooks.switch(house.gateway, OWNER, webhook.id, False)
    assert "disabled" in (await why_not(house, call))[1]
    await webhooks.remove(house.gateway, OWNER, webhook.id)
    assert await why_not(house, call) == ("conflict", "its webhook has been deleted")
