"""The same done with many webhooks at once."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from postern.core.problems import Refused
from postern.core.webhooks.listing import WebhookFilter
from postern.stores.sql.tables import webhooks as table
from postern.usecases import stored_webhook
from postern.usecases.access import audit
from postern.usecases.shapes import validated
from postern.usecases.webhooks import bin, listing, many, webhooks
from postern.usecases.webhooks.many import ManyRequest
from postern.usecases.webhooks.views import Many
from support.clock import HeldClock
from support.desk import ACTOR, Desk, on_both
from support.house import OWNER, House
from support.refusals import fields_refused
from support.stored import NEWER, overwrite
from usecases.webhooks.test_listing import listed


async def do(of: Desk | House, action: str, **asked: Any) -> Many:
    request: ManyRequest = validated(ManyRequest, {"action": action, **asked})
    return await many.change(of.gateway, OWNER, request)


@on_both
async def test_a_filter_takes_all_that_match_and_no_other(desk: Desk) -> None:
    for name, folder in (("A", "Shops/Europe"), ("B", "Shops"), ("C", "Else"), ("D", None)):
        await desk.webhook(name, folder=folder)
    done = await do(desk, "tag", filter={"folder": "shops"}, tags=["eu", " EU "])
    assert (done.matched, done.done, done.unchanged, done.not_done) == (2, 2, 0, 0)
    assert await listed(desk, tag="EU") == ["A", "B"]
    again = await do(desk, "tag", filter={}, tags=["eu"])
    assert (again.matched, again.done, again.unchanged) == (4, 2, 2)
    await do(desk, "untag", filter={"folder": "Else"}, tags=["Eu"])
    assert await listed(desk, tag="eu") == ["A", "B", "D"]
    await do(desk, "move", filter={"tag": "eu"}, folder=" New / Place ")
    assert await listed(desk, folder="New") == ["A", "B", "D"]
    await do(desk, "move", filter={"tag": "eu"}, folder=None)
    assert await listed(desk, folder="-") == ["A", "B", "D"]


async def test_a_release_that_was_interrupted_goes_on(desk: Desk) -> None:
    made = await desk.webhook("A")
    await do(desk, "hold", webhookIds=[made])
    await desk.accepted(made, {})
    webhook = await stored_webhook.stored(desk.gateway, made)
    webhook.held = False  # as it is stored before what waits is moved
    note = audit.noted(desk.gateway, ACTOR, "webhook released", made)
    await stored_webhook.save(desk.gateway, webhook, {}, note)
    assert (await do(desk, "release", webhookIds=[made], dryRun=True)).released == 0
    done = await do(desk, "release", webhookIds=[made])
    assert (done.done, done.unchanged, done.released) == (0, 1, 1)


async def test_one_with_which_it_cannot_be_done_is_named_and_keeps_no_other_from_it(desk: Desk) -> None:
    full = await desk.webhook("Full", tags=[f"tag {number}" for number in range(20)])
    newer, fine = await desk.webhook("Newer"), await desk.webhook("Fine")
    saved = update(table).where(table.c.id == newer).values(document=NEWER)
    await desk.store.writer.write(lambda connection: connection.execute(saved))
    unknown = "wh_" + "0" * 32
    done = await do(desk, "tag", webhookIds=[full, newer, unknown, fine, fine], tags=["eu"])
    assert (done.matched, done.done, done.not_done) == (4, 1, 3)
    reasons = {one.name: one.reason for one in done.reasons}
    assert "20 is the most" in reasons["Full"]
    assert "quietHours" in reasons["Newer"]
    assert "no webhook with this id" in reasons[""]
    assert await listed(desk, tag="eu") == ["Fine"]


@on_both
async def test_one_that_somebody_else_changed_meanwhile_is_left_to_them(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = await desk.webhook("Contested")
    read = desk.gateway.store.webhooks.some

    async def then_somebody_saves(ids: list[str]) -> Any:
        found = await read(ids)
        monkeypatch.setattr(desk.gateway.store.webhooks, "some", read)
        await webhooks.change(desk.gateway, ACTOR, webhook, {"tags": ["theirs"]})
        return found

    monkeypatch.setattr(desk.gateway.store.webhooks, "some", then_somebody_saves)
    done = await do(desk, "tag", webhookIds=[webhook], tags=["mine"])
    assert (done.done, done.not_done) == (0, 1)
    assert "somebody else" in done.reasons[0].reason
    assert (await webhooks.show(desk.gateway, ACTOR, webhook)).tags == ["theirs"]


async def test_a_dry_run_does_nothing_and_another_number_than_expected_is_refused(desk: Desk) -> None:
    for name in "AB":
        await desk.webhook(name)
    planned = await do(desk, "delete", filter={}, dryRun=True)
    assert (planned.dry_run, planned.done) == (True, 2)
    assert planned.webhooks and [one.name for one in planned.webhooks] == ["A", "B"]
    await desk.webhook("C")
    with pytest.raises(Refused, match="about 3 webhooks now") as refusal:
        await do(desk, "delete", filter={}, expected=planned.matched)
    assert refusal.value.code == "conflict"
    assert await listed(desk) == ["A", "B", "C"]


async def test_what_is_not_clear_is_refused(house: House) -> None:
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"action": "enable"}, "webhookIds"),
        ({"action": "enable", "webhookIds": ["wh_1"], "filter": {}}, "webhookIds"),
        ({"action": "enable", "webhookIds": []}, "webhookIds"),
        ({"action": "tag", "filter": {}}, "tags"),
        ({"action": "untag", "filter": {}}, "tags"),
        ({"action": "tag", "filter": {}, "tags": ["a,b"]}, "tags.0"),
        ({"action": "move", "filter": {}}, "folder"),
        ({"action": "move", "filter": {}, "folder": "a//b"}, "folder"),
        ({"action": "paint", "filter": {}}, "action"),
        ({"action": "enable", "filter": {"state": "asleep"}}, "filter.state"),
    )
    for asked, field in wrong:
        assert list(await fields_refused(do(house, **asked))) == [field], asked


async def test_more_than_one_transaction_takes_them_all(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many, "WEBHOOKS_AT_ONCE", 2)
    for number in range(5):
        await house.webhook(name=f"Number {number}")
    assert (await do(house, "hold", filter={})).done == 5
    page = await listing.listing(house.gateway, OWNER, wanted=WebhookFilter(state="held"))
    assert page.total == 5


# --- what each action is, and what is said of it ---------------------------------------------------------------------


ACTIONS: tuple[tuple[str, dict[str, Any], str, dict[str, tuple[Any, Any]]], ...] = (
    ("disable", {}, "webhook changed", {"enabled": (True, False)}),
    ("enable", {}, "webhook changed", {"enabled": (False, True)}),
    ("hold", {}, "webhook held", {}),
    ("release", {}, "webhook released", {}),
    ("tag", {"tags": ["b", "A"]}, "webhook changed", {"tags": (["a", "c"], ["a", "c", "b"])}),
    ("untag", {"tags": ["C", "d"]}, "webhook changed", {"tags": (["a", "c"], ["a"])}),
    ("move", {"folder": "New"}, "webhook changed", {"folder": ("Old", "New")}),
    ("move", {"folder": ""}, "webhook changed", {"folder": ("Old", None)}),
)
"""What is done, as what it is noted, and which settings it changes."""


async def test_an_action_changes_one_thing_and_says_which(house: House) -> None:
    clock = HeldClock(house.gateway)
    for action, given, noted, differs in ACTIONS:
        made = await house.webhook(tags=["a", "c"], folder="Old", enabled=action != "enable")
        if action == "release":
            await do(house, "hold", webhookIds=[made.id])
        before = await webhooks.show(house.gateway, OWNER, made.id)
        clock.now += 100
        assert (await do(house, action, webhookIds=[made.id], **given)).done == 1
        after = await webhooks.show(house.gateway, OWNER, made.id)
        assert after.version == before.version + 1
        assert after.updated_at == clock.now
        fields = after.__struct_fields__
        changed = {name for name in fields if getattr(after, name) != getattr(before, name)}
        assert changed == {"version", "updated_at", *(differs or ["held"])}
        changes = {name: {"before": was, "after": now} for name, (was, now) in differs.items()}
        assert await house.noted() == (noted, made.id, {**changes, "together": 1})
        again = await do(house, action, webhookIds=[made.id], **given)
        assert (again.done, again.unchanged, again.not_done) == (0, 1, 0)
        assert (await webhooks.show(house.gateway, OWNER, made.id)).version == after.version


async def test_what_is_deleted_is_noted_by_its_name_even_where_it_cannot_be_read(
    house: House, tmp_path: Path
) -> None:
    made = [(await house.webhook(name=name)).id for name in ("Newer", "Other")]
    overwrite(tmp_path / "data", made[0], NEWER)
    now = HeldClock(house.gateway).now
    assert (await do(house, "delete", webhookIds=made)).done == 2
    notes = (await audit.listing(house.gateway, OWNER, 2)).items
    assert {(note.action, note.subject, note.changes["name"]) for note in notes} == {
        ("webhook deleted", made[0], "Newer"),
        ("webhook deleted", made[1], "Other"),
    }
    assert [note.changes["together"] for note in notes] == [2, 2]
    binned = (await bin.listing(house.gateway, OWNER)).items
    assert [one.deleted_at for one in binned] == [now, now]


async def test_one_that_could_not_be_served_is_not_enabled(house: House, tmp_path: Path) -> None:
    token = {"method": "token", "token": "a token of the tests"}
    broken = await house.webhook(name="Broken", enabled=False, authentication=token)
    fine = await house.webhook(name="Fine", enabled=False)
    with closing(sqlite3.connect(tmp_path / "data" / "postern.db")) as database, database:
        database.execute("UPDATE secrets SET envelope = 'damaged'")
    done = await do(house, "enable", filter={})
    assert (done.done, done.not_done) == (1, 1)
    assert (done.reasons[0].id, done.reasons[0].name) == (broken.id, "Broken")
    assert done.reasons[0].reason
    assert (await webhooks.show(house.gateway, OWNER, fine.id)).enabled
    assert (await do(house, "tag", filter={}, tags=["found"])).done == 2, "its settings are still its owner's"


async def test_reasons_are_reported_the_first_hundred_and_all_are_counted(house: House) -> None:
    asked = [f"wh_{number}" for number in range(101)]
    done = await do(house, "hold", webhookIds=asked)
    assert (done.matched, done.not_done, [one.id for one in done.reasons]) == (101, 101, asked[:100])
    assert (done.action, done.dry_run, done.done, done.released) == ("hold", False, 0, 0)


async def test_who_would_notice_a_change_of_many_is_reported_before_it(house: House) -> None:
    called = [await house.webhook(name=f"Called {number}") for number in range(2)]
    for one in called:
        await house.call(one)
        await house.call(one, b"not JSON")
    others = [(await house.webhook(name=f"Number {number}")).id for number in range(many.MOST_SHOWN)]
    await webhooks.remove(house.gateway, OWNER, others[0])
    await do(house, "hold", filter={})
    await house.call(called[0])

    async def effects(action: str, **asked: Any) -> many.Effects:
        request: ManyRequest = validated(ManyRequest, {"action": action, **asked})
        return await many.effects(house.gateway, OWNER, request)

    ids = [one.id for one in called]
    assert await effects("release", webhookIds=[*others, *ids]) == many.Effects(
        len(others) + 2, ["Number 1", "Number 2", "Number 3", "Number 4", "Number 0 (deleted)"], 5, 1
    )
    assert await effects("hold", webhookIds=ids) == many.Effects(2, ["Called 0", "Called 1"], 5, 0)
    assert (await effects("hold", filter={"search": "called 0"})).last_day == 3
