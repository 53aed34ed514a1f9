"""A webhook whose stored settings this version cannot read: it is named wherever webhooks are, nothing of it is
lost, and the others are served as ever. And one whose secrets cannot be decrypted any more, as after their key was lost:
it is shown, says so, and can be given new ones."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from postern.stores.secrets.vault import Vault
from postern.stores.sql.tables import secrets
from postern.usecases import schedules
from postern.usecases.answers import UNSET, as_plain
from postern.usecases.operations import example, retention
from postern.usecases.shapes import validated
from postern.usecases.signatures import signatures
from postern.usecases.signatures.signatures import SignatureTest
from postern.usecases.webhooks import as_code, listing, webhooks
from postern.usecases.webhooks.views import Webhook
from support.clock import later
from support.house import OWNER, House
from support.refusals import refused
from support.stored import NEWER, overwrite


async def unreadable(house: House, tmp_path: Path, document: str = NEWER, **settings: Any) -> Webhook:
    """A webhook that another version has saved since."""
    webhook = await house.webhook(name="Newer", **settings)
    overwrite(tmp_path / "data", webhook.id, document)
    await house.gateway.runtime.directory.refresh()
    return webhook


async def test_the_others_are_served_and_shown_and_it_is_named(house: House, tmp_path: Path) -> None:
    before, other = await house.webhook(name="Before"), await unreadable(house, tmp_path)
    after = await house.webhook(name="After")
    statuses = [(await house.call(one)).status for one in (before, other, after)]
    assert statuses == [200, 503, 200]

    page = await listing.listing(house.gateway, OWNER, 2)
    assert [item.id for item in page.items] == [after.id]
    assert [(one.id, one.name, one.url) for one in page.unreadable] == [(other.id, "Newer", other.url)]
    assert "quietHours" in page.unreadable[0].detail
    rest = await listing.listing(house.gateway, OWNER, 2, page.next_cursor)
    assert ([item.id for item in rest.items], rest.unreadable) == ([before.id], UNSET)


async def test_what_is_asked_of_it_is_refused_with_the_reason_until_it_is_deleted(
    house: House, tmp_path: Path
) -> None:
    other = await unreadable(house, tmp_path)
    for one in (
        webhooks.show(house.gateway, OWNER, other.id),
        webhooks.change(house.gateway, OWNER, other.id, {"name": "Mine"}),
        webhooks.switch(house.gateway, OWNER, other.id, False),
    ):
        refusal = await refused(one)
        assert refusal.code == "temporarily_unavailable"
        assert "quietHours" in refusal.detail
    await webhooks.remove(house.gateway, OWNER, other.id)
    assert (await refused(webhooks.show(house.gateway, OWNER, other.id))).code == "not_found"
    assert (await house.call(other)).status == 404


async def test_a_file_of_the_configuration_neither_lacks_nor_replaces_it(
    house: House, tmp_path: Path
) -> None:
    kept = await house.webhook(name="Kept")
    exported = as_plain(await as_code.export(house.gateway, OWNER))
    other = await unreadable(house, tmp_path)
    assert "Newer" in (await refused(as_code.export(house.gateway, OWNER))).detail

    def apply(*webhooks: dict[str, Any]) -> Any:
        document = {"version": 1, "webhooks": [*exported["webhooks"], *webhooks]}
        return as_code.apply(house.gateway, OWNER, document, lambda kind, where: None, prune=True)

    done = as_plain(await apply())
    assert (done["changes"], done["unchanged"]) == ([], 1)
    assert any("quietHours" in note for note in done["notes"])
    for named in ({"name": "Newer"}, {"id": other.id, "name": "Other"}):
        refusal = await refused(apply({**named, "authentication": {"method": "none"}}))
        assert [error.field for error in refusal.errors] == ["webhooks.1.id"]
    page = await listing.listing(house.gateway, OWNER)
    assert ([one.id for one in page.items], [one.id for one in page.unreadable]) == ([kept.id], [other.id])


@pytest.mark.parametrize(
    ("document", "kept"),
    [
        (NEWER, False),
        (json.dumps({**json.loads(NEWER), "historyRetentionDays": 90}), True),
        (json.dumps({**json.loads(NEWER), "historyRetentionDays": "ninety"}), True),
        ("{", True),
    ],
)
async def test_its_history_is_kept_as_long_as_it_says_or_until_it_can_be_read(
    house: House, tmp_path: Path, document: str, kept: bool
) -> None:
    webhook = await house.webhook()
    await house.call(webhook)
    await house.deliver()
    other = await unreadable(house, tmp_path, document)
    with closing(sqlite3.connect(tmp_path / "data" / "postern.db")) as database, database:
        database.execute("UPDATE invocations SET webhook_id = ?", (other.id,))
    later(house.gateway, 60 * 86400)
    await retention.prune(house.gateway, OWNER)
    assert bool(await house.history()) is kept


# --- secrets whose key is lost ---------------------------------------------------------------------------------------


SIGNED = {"method": "hmac", "provider": "github", "secret": "s" * 32, "secondSecret": "t" * 32}


async def lose(house: House, webhook_id: str, field: str) -> None:
    envelope = Vault(["a key that is not there"]).seal(b"", webhook_id, field)
    of_it = secrets.c.webhook_id == webhook_id, secrets.c.field == field
    lost = update(secrets).where(*of_it).values(envelope=envelope)
    await house.gateway.store.writer.write(lambda connection: connection.execute(lost))


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
    call = await house.recorded(made)
    await lose(house, made.id, "main")
    explained = await signatures.explain(house.gateway, OWNER, call)
    assert (explained.code, explained.would_verify_if) == ("signature_missing", [])
    test = validated(SignatureTest, {"webhookId": made.id, "invocationId": call})
    refusal = await refused(signatures.test(house.gateway, OWNER, test))
    assert refusal.code == "temporarily_unavailable" and "POSTERN_SECRET_KEYS" in refusal.detail


async def test_a_schedules_run_fails_with_the_reason_and_can_be_mended(house: House) -> None:
    source = {"url": "https://shop.example/orders", "every": 3600}
    made = await house.webhook(schedule={**source, "headers": {"X-Key": "k"}})
    await lose(house, made.id, "header:x-key")
    for _ in range(2):  # after the first it is not at work still
        run = await schedules.run_now(house.gateway, OWNER, made.id)
        assert run.result == "failed" and "POSTERN_SECRET_KEYS" in (run.reason or "")
    changed = await webhooks.change(house.gateway, OWNER, made.id, {"schedule": {"headers": {"X-Key": None}}})
    assert not [one for one in changed.warnings if "503" in one]


async def test_no_secret_is_revealed_without_the_main_one(house: House) -> None:
    tokens = {"method": "token", "token": "t" * 32, "secondToken": "s" * 32}
    made = await house.webhook(authentication=tokens)
    assert await webhooks.reveal(house.gateway, OWNER, made.id) == {"main": "t" * 32, "second": "s" * 32}
    await lose(house, made.id, "main")
    refusal = await refused(webhooks.reveal(house.gateway, OWNER, made.id))
    assert refusal.code == "temporarily_unavailable" and "POSTERN_SECRET_KEYS" in refusal.detail


async def test_the_example_has_no_command(house: House) -> None:
    assert await example.example_curl(house.gateway) is not None
    (listed,) = house.gateway.runtime.directory.listed()
    await lose(house, listed.id, "main")
    assert await example.example_curl(house.gateway) is None
