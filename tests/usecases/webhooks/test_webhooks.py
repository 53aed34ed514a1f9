"""Creating, changing and showing one webhook: what is set and what stays, what is made, what is told and noted."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from postern.core.access.accounts import Actor
from postern.core.signatures.encoding import is_stand_in
from postern.core.webhooks.announced import Announcement
from postern.usecases import stored_webhook
from postern.usecases.deliveries import holds
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.views import Webhook
from support.clock import HeldClock
from support.house import OWNER, House
from support.refusals import fields_refused, refused

TOKEN = {"method": "token", "token": "a token of the tests"}
BOTH = {**TOKEN, "secondToken": "another token of the tests"}


def signed_by(provider: str, **more: Any) -> dict[str, Any]:
    return {"method": "hmac", "provider": provider, "secret": "whsec_main", **more}


async def change(house: House, webhook: Webhook, patch: dict[str, Any], seen: int | None = None) -> Webhook:
    return await webhooks.change(house.gateway, OWNER, webhook.id, patch, seen)


async def kept(house: House, webhook: Webhook) -> dict[str, str]:
    stored = await stored_webhook.stored(house.gateway, webhook.id)
    return {field: secret.value.decode() for field, secret in stored.secrets.items()}


async def announce(house: House, webhook: Webhook, secret: bytes) -> None:
    said = Announcement("inv_1", house.gateway.clock(), "192.0.2.1", secret)
    await house.gateway.store.webhooks.announce(webhook.id, said)


# --- a new one -------------------------------------------------------------------------------------------------------


async def test_a_new_webhook_is_enabled_and_holds_nothing(house: House) -> None:
    now = HeldClock(house.gateway).now
    made = await house.webhook(authentication=BOTH)
    assert (made.enabled, made.held, made.version, made.call_count) == (True, False, 1, 0)
    assert (made.last_call_at, made.recording_until) == (None, None)
    assert (made.created_at, made.updated_at) == (now, now)
    changes = {"name": "Orders", "secret.main": "set", "secret.second": "set"}
    assert await house.noted() == ("webhook created", made.id, changes)
    assert (await house.webhook(enabled=False)).enabled is False


async def test_without_its_main_secret_none_is_made(house: House) -> None:
    made = await house.webhook()
    for authentication, field in (
        ({"method": "token"}, "authentication.token"),
        ({"method": "token", "secondToken": "a second one"}, "authentication.token"),
        ({"method": "hmac", "provider": "stripe"}, "authentication.secret"),
    ):
        expected = {field: 'is required; for a webhook, {"generate": true} has a strong one made'}
        assert await fields_refused(house.webhook(authentication=authentication)) == expected
        assert await fields_refused(change(house, made, {"authentication": authentication})) == expected


async def test_what_is_made_here_is_what_each_sender_can_use(house: House) -> None:
    generate = {"generate": True}

    async def made(**how: Any) -> dict[str, str]:
        return await kept(house, await house.webhook(authentication=how))

    token = await made(method="token", token=generate, secondToken=generate)
    assert [value[:4] for value in token.values()] == ["whk_", "whk_"] and token["main"] != token["second"]
    custom = {"scheme": {"signature": "header:X-Sig"}}
    for provider, scheme in (("generic", {}), ("standardwebhooks", {}), ("custom", custom)):
        found = await made(method="hmac", provider=provider, secret=generate, **scheme)
        assert found["main"].startswith("whsec_") and not is_stand_in(found["main"].encode()), provider
    found = await made(
        method="hmac", provider="meta", secret=generate, secondSecret=generate, verifyToken=generate
    )
    assert is_stand_in(found["main"].encode()) and is_stand_in(found["second"].encode())
    assert not is_stand_in(found["verifyToken"].encode()), "its sender is told what we chose"


# --- changing it -----------------------------------------------------------------------------------------------------


async def test_a_change_sets_what_it_names_and_null_gives_the_default_back(house: House) -> None:
    made = await house.webhook(
        folder="Shops", rateLimit={"callsPerSecond": 5, "burst": 7}, payloadLimitBytes=10, tags=["eu"]
    )
    clock = HeldClock(house.gateway)
    clock.now += 100
    after = await change(house, made, {"rateLimit": {"burst": 9}, "folder": None, "payloadLimitBytes": None})
    assert (after.rate_limit.calls_per_second, after.rate_limit.burst) == (5, 9)
    assert (after.folder, after.payload_limit_bytes, after.tags) == (None, 1024 * 1024, ["eu"])
    assert (after.version, after.created_at, after.updated_at) == (2, made.created_at, clock.now)
    changes = {
        "folder": {"before": "Shops", "after": None},
        "payloadLimitBytes": {"before": 10, "after": 1024 * 1024},
        "rateLimit.burst": {"before": 7, "after": 9},
    }
    assert await house.noted() == ("webhook changed", made.id, changes)
    assert await fields_refused(change(house, made, {"name": None})) == {"name": "is required"}
    assert list(await fields_refused(change(house, made, {"authentication": None}))) == ["authentication"]


async def test_what_only_the_stored_webhook_shows_to_be_wrong_is_told_with_the_rest(house: House) -> None:
    made = await house.webhook(authentication=signed_by("stripe"))
    before = await kept(house, made)
    patches: tuple[tuple[dict[str, Any], str], ...] = (
        ({"name": "", "sendAgain": {"account": "repos/a/b"}}, "name sendAgain.token"),
        ({"tags": [""], "authentication": {"method": "token"}}, "authentication.token tags.0"),
        (
            {"tags": ["a,b"], "authentication": {"presetVersion": 99}, "handshake": "morse"},
            "authentication.presetVersion handshake tags.0",
        ),
        (
            {"schedule": {"url": "ftp://a", "headers": ["A"]}, "names": 1, "payloadLimitBytes": 0},
            "names payloadLimitBytes schedule.cron schedule.headers.A schedule.url",
        ),
        # Without the wrong one the others cannot be read.
        ({"name": None, "sendAgain": {"account": 7}}, "name sendAgain.account sendAgain.token"),
        ({"authentication": 7, "handshake": "meta"}, "authentication"),
    )
    for patch, fields in patches:
        assert sorted(await fields_refused(change(house, made, patch))) == fields.split()
    assert await kept(house, made) == before
    replaced = await change(house, made, {"tags": [], "rateLimit": None})
    assert (replaced.tags, replaced.rate_limit.burst) == ([], 200)


async def test_secrets_stay_until_they_are_named(house: House) -> None:
    made = await house.webhook(authentication=BOTH)
    await change(house, made, {"name": "Renamed", "authentication": {"headerName": "X-Mine"}})
    assert await kept(house, made) == {"main": BOTH["token"], "second": BOTH["secondToken"]}
    after = await change(house, made, {"authentication": {"secondToken": None}})
    assert await kept(house, made) == {"main": BOTH["token"]}
    assert after.authentication.second_token_set is False  # type: ignore[union-attr]
    assert await house.noted() == ("webhook changed", made.id, {"secret.second": "removed"})
    await change(house, made, {"authentication": {"token": "a third token of the tests"}})
    assert await kept(house, made) == {"main": "a third token of the tests"}
    assert await house.noted() == ("webhook changed", made.id, {"secret.main": "set"})
    wrong = await fields_refused(change(house, made, {"authentication": {"token": None}}))
    assert wrong.keys() == {"authentication.token"}
    assert await kept(house, made) == {"main": "a third token of the tests"}


async def test_another_method_or_sender_begins_without_the_secrets_of_the_one_before(house: House) -> None:
    made = await house.webhook(authentication={**BOTH, "headerName": "X-Mine"})
    after = await change(house, made, {"authentication": signed_by("meta", verifyToken="three")})
    assert await kept(house, made) == {"main": "whsec_main", "verifyToken": "three"}
    assert not hasattr(after.authentication, "header_name")
    secrets = {"secret.main": "set", "secret.second": "removed", "secret.verifyToken": "set"}
    assert (await house.noted())[2].items() >= secrets.items()
    other = {"authentication": {"provider": "github"}}
    assert (await fields_refused(change(house, made, other))).keys() == {"authentication.secret"}
    await change(house, made, {"authentication": {"provider": "github", "secret": "whsec_other"}})
    assert await kept(house, made) == {"main": "whsec_other"}
    back = await change(house, made, {"authentication": TOKEN})
    assert back.authentication.header_name == "X-Api-Key"  # type: ignore[union-attr]
    await change(house, made, {"authentication": {"method": "none"}})
    assert await kept(house, made) == {}


async def test_who_saw_an_older_version_changes_nothing(house: House) -> None:
    gateway, both = house.gateway, signed_by("generic", secondSecret="whsec_second")
    actions: list[Callable[[str, int], Awaitable[Any]]] = [
        lambda webhook_id, seen: webhooks.change(gateway, OWNER, webhook_id, {"name": "N"}, seen),
        lambda webhook_id, seen: webhooks.switch(gateway, OWNER, webhook_id, False, seen),
        lambda webhook_id, seen: holds.hold(gateway, OWNER, webhook_id, seen),
        lambda webhook_id, seen: webhooks.promote(gateway, OWNER, webhook_id, True, seen),
        lambda webhook_id, seen: webhooks.adopt(gateway, OWNER, webhook_id, None, seen),
        lambda webhook_id, seen: webhooks.remove(gateway, OWNER, webhook_id, seen),
    ]
    for action in actions:
        made = await house.webhook(authentication=both)
        await announce(house, made, b"whsec_announced")
        made = await webhooks.show(gateway, OWNER, made.id)
        now = await change(house, made, {"tags": ["eu"]}, made.version)
        for seen in (made.version, now.version + 1):
            assert (await refused(action(made.id, seen))).code == "version_conflict"
            assert (await webhooks.show(gateway, OWNER, made.id)).version == now.version
        await action(made.id, now.version)
        is_there = gateway.runtime.directory.listed_by_id(made.id) is not None
        assert not is_there or (await webhooks.show(gateway, OWNER, made.id)).version == now.version + 1
    assert not is_there, "the last one deletes"


async def test_of_two_changes_at_once_one_is_asked_to_look_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await house.webhook()
    update = house.gateway.store.webhooks.update

    async def after_another(*given: Any) -> bool:
        monkeypatch.setattr(house.gateway.store.webhooks, "update", update)
        await change(house, made, {"tags": ["theirs"]})
        return await update(*given)

    monkeypatch.setattr(house.gateway.store.webhooks, "update", after_another)
    assert (await refused(change(house, made, {"tags": ["mine"]}))).code == "version_conflict"
    assert (await webhooks.show(house.gateway, OWNER, made.id)).tags == ["theirs"]


async def test_nothing_is_done_with_one_that_is_not_there(house: House) -> None:
    gone = await house.webhook()
    await webhooks.remove(house.gateway, OWNER, gone.id)
    assert await house.noted() == ("webhook deleted", gone.id, {"name": "Orders"})
    for asked in (
        webhooks.show(house.gateway, OWNER, gone.id),
        webhooks.change(house.gateway, OWNER, gone.id, {}),
        webhooks.remove(house.gateway, OWNER, gone.id),
        webhooks.reveal(house.gateway, OWNER, gone.id),
    ):
        refusal = await refused(asked)
        assert (refusal.code, refusal.detail) == ("not_found", "there is no webhook with this id")


async def test_one_that_is_deleted_while_it_is_being_deleted_is_deleted_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await house.webhook()
    delete = house.gateway.store.bin.delete

    async def after_another(*given: Any) -> bool:
        await delete(*given)
        return await delete(*given)

    monkeypatch.setattr(house.gateway.store.bin, "delete", after_another)
    assert (await refused(webhooks.remove(house.gateway, OWNER, made.id))).code == "not_found"


# --- its secrets -----------------------------------------------------------------------------------------------------


async def test_where_there_is_no_second_or_announced_secret_none_takes_the_mains_place(house: House) -> None:
    made = await house.webhook(authentication=signed_by("generic"))
    for asked, expected in (
        (webhooks.promote(house.gateway, OWNER, made.id), "there is no second secret to promote"),
        (webhooks.adopt(house.gateway, OWNER, made.id), "no sender has announced a secret"),
    ):
        refusal = await refused(asked)
        assert (refusal.code, refusal.detail) == ("conflict", expected)
    await change(house, made, {"authentication": {"secondSecret": "whsec_second"}})
    promoted = await webhooks.promote(house.gateway, OWNER, made.id, now=True)
    assert await kept(house, made) == {"main": "whsec_second"}
    assert await house.noted() == ("secret promoted", made.id, {})
    await announce(house, made, b"whsec_announced")
    adopted = await webhooks.adopt(house.gateway, OWNER, made.id)
    assert await kept(house, made) == {"main": "whsec_announced"}
    taken = {"invocationId": "inv_1", "address": "192.0.2.1"}
    assert await house.noted() == ("announced secret taken", made.id, taken)
    assert adopted.version == promoted.version + 2


async def test_an_announced_secret_that_the_scheme_cannot_read_is_not_taken(house: House) -> None:
    made = await house.webhook(authentication=signed_by("standardwebhooks", secret="whsec_MDEyMzQ1Njc4OQ=="))
    await announce(house, made, b"whsec_not base64!")
    wrong = await fields_refused(webhooks.adopt(house.gateway, OWNER, made.id))
    assert wrong.keys() == {"authentication.secret"}
    assert (await kept(house, made))["main"] == "whsec_MDEyMzQ1Njc4OQ=="


REVEALED: tuple[tuple[dict[str, Any], dict[str, str]], ...] = (
    ({"method": "none"}, {}),
    (TOKEN, {"main": TOKEN["token"]}),
    (BOTH, {"main": BOTH["token"], "second": BOTH["secondToken"]}),
    (signed_by("generic", secondSecret="whsec_second"), {"main": "whsec_main", "second": "whsec_second"}),
    (signed_by("custom", scheme={"signature": "header:X-Sig"}), {"main": "whsec_main"}),
    (signed_by("meta", verifyToken="three"), {}),
)


async def test_only_secrets_that_somebody_has_to_copy_from_here_are_reported(house: House) -> None:
    schedule = {"url": "https://api.example.com/", "every": "15m", "headers": {"X-A": "never told"}}
    for authentication, revealed in REVEALED:
        made = await house.webhook(authentication=authentication, schedule=schedule)
        before = await house.noted()
        assert await webhooks.reveal(house.gateway, OWNER, made.id) == revealed
        noted = ("secret revealed", made.id, {"fields": sorted(revealed)})
        assert await house.noted() == (noted if revealed else before), "what told nothing is not noted"
        writer = Actor("a writer", "write")
        assert (await refused(webhooks.reveal(house.gateway, writer, made.id))).code == "access_denied"


# --- showing it ------------------------------------------------------------------------------------------------------


async def test_how_often_and_when_each_secret_matched_is_reported(house: House) -> None:
    clock = HeldClock(house.gateway)
    made, began = await house.webhook(authentication=TOKEN), clock.now
    clock.now += 10
    await change(house, made, {"authentication": {"secondToken": BOTH["secondToken"]}})
    clock.now += 10
    for token in (TOKEN["token"], TOKEN["token"], "a wrong token"):
        await house.call(made, headers={"X-Api-Key": token})
    shown = await webhooks.show(house.gateway, OWNER, made.id)
    assert (shown.call_count, shown.last_call_at) == (3, clock.now)
    how: Any = shown.authentication
    assert (how.token_set, how.second_token_set) == (True, True)
    assert (how.token_use.match_count, how.token_use.last_matched_at) == (2, clock.now)
    assert (how.second_token_use.match_count, how.second_token_use.last_matched_at) == (0, None)
    assert (how.token_use.set_at, how.second_token_use.set_at) == (began, began + 10)
    assert (how.rotation.safe_to_promote, how.rotation.main_unused_since) == (False, clock.now)


WAITS: tuple[tuple[str, dict[str, Any], float | None], ...] = (
    ("generic", {"enabled": True}, 25),
    ("shopify", {"enabled": True}, 4.5),
    ("shopify", {"enabled": True, "timeoutSeconds": 2}, 2),
    ("shopify", {"enabled": False}, None),
    ("shopify", {"enabled": False, "timeoutSeconds": 2}, 2),
)


async def test_how_long_callers_wait_is_what_was_set_or_what_their_sender_allows(house: House) -> None:
    for provider, response, seconds in WAITS:
        made = await house.webhook(authentication=signed_by(provider), synchronousResponse=response)
        assert made.synchronous_response.timeout_seconds == seconds
        compiled = house.gateway.runtime.directory.by_id(made.id)
        assert compiled is not None
        assert compiled.answer_timeout == (seconds if response["enabled"] else None)
