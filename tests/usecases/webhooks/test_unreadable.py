"""A webhook whose stored settings this version cannot read: it is named wherever webhooks are, nothing of it is
lost, and the others are served as ever."""

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from postern.core.problems import Refused
from postern.usecases.answers import UNSET, as_plain
from postern.usecases.operations import retention
from postern.usecases.webhooks import as_code, listing, webhooks
from postern.usecases.webhooks.views import Webhook
from support.house import OWNER, House
from support.stored import NEWER, overwrite


async def unreadable(house: House, tmp_path: Path, document: str = NEWER, **settings: Any) -> Webhook:
    """A webhook that another version has saved since."""
    webhook = await house.webhook(name="Newer", **settings)
    overwrite(tmp_path / "data", webhook.id, document)
    await house.gateway.runtime.directory.refresh()
    return webhook


async def refused(asked: Any) -> Refused:
    with pytest.raises(Refused) as refusal:
        await asked
    return refusal.value


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


async def test_what_is_asked_of_it_is_refused_with_the_reason(house: House, tmp_path: Path) -> None:
    other = await unreadable(house, tmp_path)
    asked = [
        webhooks.show(house.gateway, OWNER, other.id),
        webhooks.change(house.gateway, OWNER, other.id, {"name": "Mine"}),
        webhooks.switch(house.gateway, OWNER, other.id, False),
    ]
    for one in asked:
        refusal = await refused(one)
        assert refusal.code == "temporarily_unavailable"
        assert "quietHours" in refusal.detail


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


async def test_it_can_be_deleted(house: House, tmp_path: Path) -> None:
    other = await unreadable(house, tmp_path)
    await webhooks.remove(house.gateway, OWNER, other.id)
    assert (await refused(webhooks.show(house.gateway, OWNER, other.id))).code == "not_found"
    assert (await house.call(other)).status == 404


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
    house.gateway.clock = lambda: time.time() + 60 * 86400
    await retention.prune(house.gateway, OWNER)
    assert bool(await house.history()) is kept
