"""Webhooks whose secrets cannot be decrypted any more, as after their key was lost: they are shown, say so, and can be
given new ones."""

from typing import Any

import pytest
from sqlalchemy import update

from postern.core.problems import Refused
from postern.stores.secrets.vault import Vault
from postern.stores.sql.tables import secrets
from postern.usecases import schedules
from postern.usecases.operations import example
from postern.usecases.shapes import validated
from postern.usecases.signatures import signatures
from postern.usecases.signatures.signatures import SignatureTest
from postern.usecases.webhooks import listing, webhooks
from support.house import OWNER, House

SIGNED = {"method": "hmac", "provider": "github", "secret": "s" * 32, "secondSecret": "t" * 32}


async def lose(house: House, webhook_id: str, field: str) -> None:
    envelope = Vault(["a key that is not there"]).seal(b"", webhook_id, field)
    lost = update(secrets).where(secrets.c.webhook_id == webhook_id, secrets.c.field == field)
    await house.gateway.store.writer.write(
        lambda connection: connection.execute(lost.values(envelope=envelope))
    )


async def refused(asked: Any) -> Refused:
    with pytest.raises(Refused) as refusal:
        await asked
    return refusal.value


async def test_a_webhook_with_one_readable_secret_is_listed_and_says_what_is_wrong(house: House) -> None:
    made = await house.webhook(authentication=SIGNED)
    await lose(house, made.id, "main")
    (listed,) = (await listing.listing(house.gateway, OWNER)).items
    shown = await webhooks.show(house.gateway, OWNER, made.id)
    assert shown == listed
    assert shown.authentication.rotation is None
    (warning,) = shown.warnings
    assert warning.startswith("Every call is rejected with 503: ") and "POSTERN_SECRET_KEYS" in warning
    given = {"authentication": {"secret": "u" * 32}}
    assert (await webhooks.change(house.gateway, OWNER, made.id, given)).warnings == []


async def test_a_signature_is_explained_as_far_as_that_needs_no_secret(house: House) -> None:
    made = await house.webhook(authentication=SIGNED)
    await house.call(made)
    (call,) = await house.history()
    await lose(house, made.id, "main")
    explained = await signatures.explain(house.gateway, OWNER, call.id)
    assert (explained.code, explained.would_verify_if) == ("signature_missing", [])
    test = validated(SignatureTest, {"webhookId": made.id, "invocationId": call.id})
    refusal = await refused(signatures.test(house.gateway, OWNER, test))
    assert (refusal.code, "POSTERN_SECRET_KEYS" in refusal.detail) == ("temporarily_unavailable", True)


async def test_a_schedules_run_fails_with_the_reason_and_can_be_mended(house: House) -> None:
    source = {"url": "https://shop.example/orders", "every": 3600}
    made = await house.webhook(schedule={**source, "headers": {"X-Key": "k"}})
    await lose(house, made.id, "header:x-key")
    run = await schedules.run_now(house.gateway, OWNER, made.id)
    assert (run.result, "POSTERN_SECRET_KEYS" in (run.reason or "")) == ("failed", True)
    assert (await schedules.run_now(house.gateway, OWNER, made.id)).result == "failed", (
        "it is not at work still"
    )
    changed = await webhooks.change(house.gateway, OWNER, made.id, {"schedule": {"headers": {"X-Key": None}}})
    assert not [one for one in changed.warnings if "503" in one]


async def test_no_secret_is_revealed_without_the_main_one(house: House) -> None:
    tokens = {"method": "token", "token": "t" * 32, "secondToken": "s" * 32}
    made = await house.webhook(authentication=tokens)
    assert await webhooks.reveal(house.gateway, OWNER, made.id) == {"main": "t" * 32, "second": "s" * 32}
    await lose(house, made.id, "main")
    refusal = await refused(webhooks.reveal(house.gateway, OWNER, made.id))
    assert (refusal.code, "POSTERN_SECRET_KEYS" in refusal.detail) == ("temporarily_unavailable", True)


async def test_the_example_has_no_command(house: House) -> None:
    assert await example.example_curl(house.gateway) is not None
    (listed,) = house.gateway.runtime.directory.listed()
    await lose(house, listed.id, "main")
    assert await example.example_curl(house.gateway) is None
