"""The list of webhooks however many there are, and the same done with many of them."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import update

from postern.core.problems import Refused
from postern.core.webhooks.listing import WebhookFilter
from postern.stores.sql.tables import webhooks as table
from postern.usecases.access import audit
from postern.usecases.deliveries import holds
from postern.usecases.webhooks import activity, as_code, bin, listing, many, picking, webhooks
from postern.usecases.webhooks.configuration import validated
from postern.usecases.webhooks.many import ManyRequest
from postern.usecases.webhooks.views import Many
from support.desk import ACTOR, Desk
from support.house import OWNER, House

pytestmark = pytest.mark.anyio


async def change(desk: Desk, action: str, **asked: Any) -> Many:
    request: ManyRequest = validated(ManyRequest, {"action": action, **asked})
    return await many.change(desk.gateway, ACTOR, request)


async def listed(desk: Desk, **wanted: Any) -> list[str]:
    page = await listing.listing(desk.gateway, ACTOR, 200, None, WebhookFilter(**wanted), "name")
    return [one.name for one in page.items]


# --- the list --------------------------------------------------------------------------------------------------------


async def test_every_webhook_is_on_one_page_and_one_alone(desk: Desk) -> None:
    made = [await desk.webhook(f"Number {number % 3}") for number in range(7)]
    for sort in ("created", "name", "failing", "last_call", "folder", "last_day"):
        for reverse in (False, True):
            seen: list[str] = []
            cursor = None
            while True:
                page = await listing.listing(
                    desk.gateway, ACTOR, 2, cursor, listing.EVERYTHING, sort, reverse
                )
                assert page.total == 7
                seen += [one.id for one in page.items]
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert sorted(seen) == sorted(made), (sort, reverse)


async def test_a_page_goes_on_after_a_webhook_that_was_deleted_meanwhile(desk: Desk) -> None:
    made = [await desk.webhook(f"Number {number}") for number in range(4)]
    page = await listing.listing(desk.gateway, ACTOR, 2)
    await webhooks.remove(desk.gateway, ACTOR, made[2])
    rest = await listing.listing(desk.gateway, ACTOR, 2, page.next_cursor)
    assert [one.id for one in rest.items] == [made[1], made[0]]
    with pytest.raises(Refused) as refusal:
        await listing.listing(desk.gateway, ACTOR, 2, page.next_cursor, listing.EVERYTHING, "name")
    assert "begin again" in refusal.value.errors[0].message


async def test_what_fails_stands_first_and_is_found_by_its_state(desk: Desk) -> None:
    fine, guarded, quiet = [
        await desk.webhook("Fine"),
        await desk.webhook("Guarded", authentication={"method": "token", "token": "0123456789abcdef"}),
        await desk.webhook("Quiet"),
    ]
    await desk.accepted(fine, {})
    assert (await desk.call(guarded, {})).status == 401
    page = await listing.page(desk.gateway, ACTOR, listing.EVERYTHING, "failing", False, 1, 50)
    assert (page.order, page.failing) == ([guarded, quiet, fine], 1)
    assert await listed(desk, state="failing") == ["Guarded"]
    assert await listed(desk, state="never_called") == ["Quiet"]
    by_calls = await listing.listing(desk.gateway, ACTOR, 1, None, listing.EVERYTHING, "last_call")
    assert by_calls.items[0].id == guarded


async def test_of_very_many_what_was_counted_is_kept_for_a_while(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity, "EXACT_UP_TO", 0)
    webhook = await desk.webhook()
    assert await listed(desk, state="never_called") == ["Orders"]
    await desk.accepted(webhook, {})
    assert await listed(desk, state="never_called") == ["Orders"]
    desk.gateway.runtime.counted.at -= (
        activity.KEPT_FOR + desk.gateway.runtime.counted.took * activity.SHARE + 1
    )
    await listed(desk, state="never_called")
    task = desk.gateway.runtime.counted.task
    assert task is not None
    await asyncio.wait_for(task, 30)
    assert await listed(desk, state="never_called") == []


async def test_the_list_knows_at_once_what_another_process_changed(desk: Desk) -> None:
    webhook = await desk.webhook("Ours", tags=["eu"])
    stored = await webhooks.stored(desk.gateway, webhook)
    stored.version += 1
    stored.settings = replace(stored.settings, tags=["us"])
    await desk.gateway.store.webhooks.update_each(
        [(stored, audit.noted(desk.gateway, ACTOR, "webhook changed", webhook))]
    )
    assert (await listed(desk, tag="eu"), await listed(desk, tag="us")) == ([], ["Ours"])
    await desk.gateway.store.webhooks.delete(webhook, desk.gateway.clock())
    assert (await listing.listing(desk.gateway, ACTOR)).total == 0


# --- many at once ----------------------------------------------------------------------------------------------------


async def test_a_filter_takes_all_that_match_and_no_other(desk: Desk) -> None:
    for name, folder in (("A", "Shops/Europe"), ("B", "Shops"), ("C", "Else"), ("D", None)):
        await desk.webhook(name, folder=folder)
    done = await change(desk, "tag", filter={"folder": "shops"}, tags=["eu", " EU "])
    assert (done.matched, done.done, done.unchanged, done.not_done) == (2, 2, 0, 0)
    assert await listed(desk, tag="EU") == ["A", "B"]
    again = await change(desk, "tag", filter={}, tags=["eu"])
    assert (again.matched, again.done, again.unchanged) == (4, 2, 2)
    await change(desk, "untag", filter={"folder": "Else"}, tags=["Eu"])
    assert await listed(desk, tag="eu") == ["A", "B", "D"]
    await change(desk, "move", filter={"tag": "eu"}, folder=" New / Place ")
    assert await listed(desk, folder="New") == ["A", "B", "D"]
    await change(desk, "move", filter={"tag": "eu"}, folder=None)
    assert await listed(desk, folder="-") == ["A", "B", "D"]


async def test_disabling_and_enabling_many_is_followed_by_calls(desk: Desk) -> None:
    made = [await desk.webhook(name) for name in "AB"]
    await change(desk, "disable", webhookIds=made)
    assert [(await desk.call(one, {})).status for one in made] == [403, 403]
    assert (await change(desk, "disable", webhookIds=made)).unchanged == 2
    await change(desk, "enable", filter={"state": "disabled"})
    assert [(await desk.call(one, {})).status for one in made] == [200, 200]


async def test_what_waited_behind_many_holds_is_started(desk: Desk) -> None:
    made = [await desk.webhook(name) for name in "ABC"]
    await change(desk, "hold", filter={})
    for one in made[:2]:
        await desk.accepted(one, {})
    found = await many.effects(
        desk.gateway, ACTOR, validated(ManyRequest, {"action": "release", "filter": {}})
    )
    assert (found.count, found.waiting) == (3, 2)
    done = await change(desk, "release", filter={"state": "held"})
    assert (done.done, done.released) == (3, 2)
    assert (await holds.release(desk.gateway, ACTOR, made[0])).released == 0


async def test_one_with_which_it_cannot_be_done_is_named_and_keeps_no_other_from_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = await desk.webhook("Full", tags=[f"tag {number}" for number in range(20)])
    newer, fine = await desk.webhook("Newer"), await desk.webhook("Fine")
    document = '{"name": "Newer", "authentication": {"method": "none"}, "quietHours": 3}'
    await desk.store.writer.write(
        lambda connection: connection.execute(
            update(table).where(table.c.id == newer).values(document=document)
        )
    )
    unknown = "wh_" + "0" * 32
    done = await change(desk, "tag", webhookIds=[full, newer, unknown, fine, fine], tags=["eu"])
    assert (done.matched, done.done, done.not_done) == (4, 1, 3)
    reasons = {one.name: one.reason for one in done.reasons}
    assert "20 is the most" in reasons["Full"]
    assert "quietHours" in reasons["Newer"]
    assert "no webhook with this id" in reasons[""]
    assert await listed(desk, tag="eu") == ["Fine"]


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
    done = await change(desk, "tag", webhookIds=[webhook], tags=["mine"])
    assert (done.done, done.not_done) == (0, 1)
    assert "somebody else" in done.reasons[0].reason
    assert (await webhooks.show(desk.gateway, ACTOR, webhook)).tags == ["theirs"]


async def test_deleted_ones_are_in_the_bin_page_by_page(desk: Desk) -> None:
    made = [await desk.webhook(f"Number {number}") for number in range(5)]
    kept = await desk.webhook("Kept", tags=["keep"])
    await change(desk, "delete", webhookIds=made, expected=5)
    assert await listed(desk) == ["Kept"]
    first = await bin.listing(desk.gateway, ACTOR, 3)
    rest = await bin.listing(desk.gateway, ACTOR, 3, first.next_cursor)
    assert first.total == 5
    assert sorted(one.id for one in [*first.items, *rest.items]) == sorted(made)
    assert rest.next_cursor is None
    await bin.restore(desk.gateway, ACTOR, made[0])
    assert (await desk.call(made[0], {})).status == 200
    assert (await desk.call(kept, {})).status == 200


async def test_a_dry_run_does_nothing_and_another_number_than_expected_is_refused(desk: Desk) -> None:
    for name in "AB":
        await desk.webhook(name)
    planned = await change(desk, "delete", filter={}, dryRun=True)
    assert (planned.dry_run, planned.done) == (True, 2)
    await desk.webhook("C")
    with pytest.raises(Refused, match="about 3 webhooks now") as refusal:
        await change(desk, "delete", filter={}, expected=planned.matched)
    assert refusal.value.code == "conflict"
    assert await listed(desk) == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"action": "enable"}, "webhookIds"),
        ({"action": "enable", "webhookIds": ["wh_1"], "filter": {}}, "webhookIds"),
        ({"action": "enable", "webhookIds": []}, "webhookIds"),
        ({"action": "tag", "filter": {}}, "tags"),
        ({"action": "tag", "filter": {}, "tags": ["a,b"]}, "tags.0"),
        ({"action": "move", "filter": {}}, "folder"),
        ({"action": "move", "filter": {}, "folder": "a//b"}, "folder"),
        ({"action": "paint", "filter": {}}, "action"),
        ({"action": "enable", "filter": {"state": "asleep"}}, "filter.state"),
    ],
)
async def test_what_is_not_said_clearly_is_refused(house: House, asked: dict[str, Any], field: str) -> None:
    with pytest.raises(Refused) as refusal:
        await many.change(house.gateway, OWNER, validated(ManyRequest, asked))
    assert [error.field for error in refusal.value.errors] == [field]


async def test_each_is_noted_with_how_many_there_were(desk: Desk) -> None:
    made = [await desk.webhook(name) for name in "AB"]
    await change(desk, "tag", webhookIds=made, tags=["eu"])
    for webhook in made:
        (note,) = [
            one
            for one in (await audit.listing(desk.gateway, ACTOR, 10, None, webhook)).items
            if one.action == "webhook changed"
        ]
        assert note.changes == {"tags": {"before": [], "after": ["eu"]}, "together": 2}


async def test_more_than_one_transaction_takes_them_all(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many, "AT_ONCE", 2)
    for number in range(5):
        await house.webhook(name=f"Number {number}")
    done = await many.change(house.gateway, OWNER, validated(ManyRequest, {"action": "hold", "filter": {}}))
    assert done.done == 5
    page = await listing.listing(house.gateway, OWNER, 50, None, WebhookFilter(state="held"))
    assert page.total == 5


# --- choosing one ----------------------------------------------------------------------------------------------------


async def test_a_choice_is_found_by_a_part_of_its_name_those_that_begin_so_first(house: House) -> None:
    for name in ("My orders", "Orders", "orders of Monday", "Else"):
        await house.webhook(name=name)
    found = await picking.choices(house.gateway, OWNER, "ORDERS")
    assert [one.name for one in found] == ["Orders", "orders of Monday", "My orders"]
    newest = await picking.choices(house.gateway, OWNER)
    assert newest[0].name == "Else"


async def test_thousands_are_twenty_choices_and_the_oldest_is_no_deleted_one(house: House) -> None:
    oldest = await house.webhook(name="The oldest")
    for number in range(picking.MOST + 3):
        await house.webhook(name=f"Number {number}")
    assert len(await picking.choices(house.gateway, OWNER)) == picking.MOST
    assert await picking.names(house.gateway, OWNER, [oldest.id], deleted=True) == {oldest.id: "The oldest"}
    assert [one.id for one in await picking.choices(house.gateway, OWNER, "oldest")] == [oldest.id]


async def test_a_name_that_one_alone_has_is_enough(house: House) -> None:
    twin, other = await house.webhook(name="Twin"), await house.webhook(name="twin")
    single = await house.webhook(name="Single")
    assert await picking.meant(house.gateway, OWNER, " single ") == single.id
    assert await picking.meant(house.gateway, OWNER, twin.id) == twin.id
    assert await picking.meant(house.gateway, OWNER, "") == ""
    for typed, wrong in (("Twin", "2 webhooks have this name"), ("Nobody", "no webhook has this name")):
        with pytest.raises(Refused) as refusal:
            await picking.meant(house.gateway, OWNER, typed)
        assert wrong in refusal.value.errors[0].message
    assert {one.typed for one in await picking.choices(house.gateway, OWNER)} == {twin.id, other.id, "Single"}


async def test_a_deleted_one_can_be_chosen_where_its_calls_are_looked_at(house: House) -> None:
    gone = await house.webhook(name="Gone")
    await webhooks.remove(house.gateway, OWNER, gone.id)
    assert await picking.choices(house.gateway, OWNER, "gone") == []
    (found,) = await picking.choices(house.gateway, OWNER, "gone", deleted=True)
    assert (found.id, found.name) == (gone.id, "Gone (deleted)")
    assert await picking.meant(house.gateway, OWNER, "gone (deleted)") == gone.id


async def test_only_those_whose_callers_sign_are_offered_where_signatures_are_tried(house: House) -> None:
    await house.webhook(name="Open")
    signed = await house.webhook(
        name="Signed", authentication={"method": "hmac", "provider": "generic", "secret": "a secret to sign"}
    )
    assert [one.id for one in await picking.choices(house.gateway, OWNER, signed=True)] == [signed.id]


# --- as a file -------------------------------------------------------------------------------------------------------


async def test_folder_and_tags_go_through_a_file_and_come_back(house: House) -> None:
    await house.webhook(name="Filed", folder=" Shops / Europe ", tags=["eu", "EU", "paid"])
    document = await as_code.export(house.gateway, OWNER)
    (exported,) = document.webhooks
    assert (exported["folder"], exported["tags"]) == ("Shops/Europe", ["eu", "paid"])
    applied = await as_code.apply(
        house.gateway, OWNER, {"version": 1, "webhooks": [exported | {"tags": ["us"]}]}, lambda *_: None
    )
    assert applied.changes[0].differences["tags"].after == ["us"]
    page = await listing.listing(house.gateway, OWNER, 50, None, WebhookFilter(tag="us", folder="shops"))
    assert [one.name for one in page.items] == ["Filed"]
