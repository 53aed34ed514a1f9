"""The list of webhooks however many there are: filtered, in order, page by page."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from postern.core.problems import Refused
from postern.core.watch.alarms import Found
from postern.core.webhooks.listing import WebhookFilter
from postern.usecases import stored_webhook
from postern.usecases.access import audit
from postern.usecases.shapes import validated
from postern.usecases.webhooks import listing, many, webhooks
from postern.usecases.webhooks.listing import WebhookFilterRequest, WebhooksPage
from support.desk import ACTOR, Desk, on_both
from support.house import OWNER, House
from support.refusals import fields_of, fields_refused, refused
from support.stored import NEWER, overwrite


async def listed(of: Desk | House, **wanted: Any) -> list[str]:
    page = await listing.listing(of.gateway, ACTOR, 200, wanted=WebhookFilter(**wanted), sort="name")
    return [one.name for one in page.items]


async def test_every_webhook_is_on_one_page_and_one_alone(desk: Desk) -> None:
    made = [await desk.webhook(f"Number {number % 3}") for number in range(7)]
    for sort in ("created", "name", "failing", "last_call", "folder", "last_day"):
        for reverse in (False, True):
            seen: list[str] = []
            cursor = None
            for size in (2, 2, 2, 1):
                page = await listing.listing(desk.gateway, ACTOR, 2, cursor, sort=sort, reverse=reverse)
                assert (page.total, len(page.items)) == (7, size)
                seen += [one.id for one in page.items]
                cursor = page.next_cursor
            assert (sorted(seen), cursor) == (sorted(made), None), (sort, reverse)


async def numbered(
    of: Desk | House, wanted: WebhookFilter, sort: Any = "created", number: int = 1, size: int = 50
) -> WebhooksPage:
    return await listing.page(of.gateway, OWNER, wanted, sort=sort, reverse=False, number=number, size=size)


async def test_a_page_goes_on_after_a_webhook_that_was_deleted_meanwhile(desk: Desk) -> None:
    made = [await desk.webhook(f"Number {number}") for number in range(4)]
    page = await listing.listing(desk.gateway, ACTOR, 2)
    await webhooks.remove(desk.gateway, ACTOR, made[2])
    rest = await listing.listing(desk.gateway, ACTOR, 2, page.next_cursor)
    assert [one.id for one in rest.items] == [made[1], made[0]]
    refusal = await refused(listing.listing(desk.gateway, ACTOR, 2, page.next_cursor, sort="name"))
    assert "begin again" in refusal.errors[0].message


async def opens_incident(house: House, webhook_id: str) -> None:
    await house.gateway.store.incidents.begin(webhook_id, "rejected", Found(1.0, 1.0, 3, {}), 1.0)
    house.gateway.runtime.incidents = await house.gateway.store.incidents.open()


async def test_what_has_an_incident_stands_first_and_is_found_by_its_state(house: House) -> None:
    fine, guarded = await house.webhook(name="Fine"), await house.webhook(name="Guarded")
    quiet = await house.webhook(name="Quiet")
    await house.call(fine)
    assert (await house.call(guarded, b"not JSON")).status == 400
    assert (await numbered(house, listing.EVERYTHING)).failing == 0, "one bad call is no incident"
    await opens_incident(house, guarded.id)
    page = await numbered(house, listing.EVERYTHING, sort="failing")
    assert (page.order, page.failing) == ([guarded.id, quiet.id, fine.id], 1)
    assert await listed(house, state="failing") == ["Guarded"]
    assert await listed(house, state="never_called") == ["Quiet"]
    now = house.gateway.clock()
    assert await listed(house, not_called_since=now - 60) == ["Quiet"]
    assert await listed(house, not_called_since=now + 60) == ["Fine", "Guarded", "Quiet"]
    house.gateway.clock = lambda: now + 1
    await house.call(fine)
    for sort in ("last_call", "last_day"):
        assert (await numbered(house, listing.EVERYTHING, sort=sort)).order == [fine.id, guarded.id, quiet.id]
    asked: many.ManyRequest = validated(many.ManyRequest, {"action": "disable", "filter": {}})
    house.gateway.runtime.last_day_until = float("inf")
    await house.call(fine)
    assert (await many.effects(house.gateway, OWNER, asked)).last_day == 3, "as it was counted before"
    house.gateway.runtime.last_day_until = 0.0
    assert (await many.effects(house.gateway, OWNER, asked)).last_day == 4


@on_both
async def test_the_list_knows_at_once_what_another_process_changed(desk: Desk) -> None:
    webhook = await desk.webhook("Ours", tags=["eu"])
    stored = await stored_webhook.stored(desk.gateway, webhook)
    stored.version += 1
    stored.settings = replace(stored.settings, tags=["us"])
    note = audit.noted(desk.gateway, ACTOR, "webhook changed", webhook)
    await desk.gateway.store.webhooks.update_each([(stored, note)])
    assert (await listed(desk, tag="eu"), await listed(desk, tag="us")) == ([], ["Ours"])
    note = audit.noted(desk.gateway, ACTOR, "webhook deleted", webhook)
    await desk.gateway.store.bin.delete(note, desk.gateway.clock())
    assert (await listing.listing(desk.gateway, ACTOR)).total == 0


async def test_a_page_by_its_number_is_never_beyond_the_end(house: House, tmp_path: Path) -> None:
    async def page(number: int, size: int = 2) -> tuple[list[str], int, int]:
        found = await numbered(house, WebhookFilter(folder="shops"), "name", number, size)
        assert [one.id for one in [*found.items, *found.unreadable]] == found.order
        names = [one.name for one in [*found.items, *found.unreadable]]
        return names, found.number, found.pages

    assert await page(7) == ([], 1, 1)
    for name, folder in (("A", "Shops"), ("B", "Shops"), ("Else", None), ("C", "Shops/Europe")):
        await house.webhook(name=name, folder=folder)
    assert await page(0) == await page(1) == (["A", "B"], 1, 2)
    assert await page(2) == await page(3) == (["C"], 2, 2)
    assert await page(2, 3) == (["A", "B", "C"], 1, 1), "a page that is just full is the last one"
    found = await numbered(house, WebhookFilter(search="b"))
    assert (found.total, found.failing, found.groups.folders) == (1, 0, {"Shops": 2, "Shops/Europe": 1})
    await opens_incident(house, found.items[0].id)
    found = await numbered(house, listing.EVERYTHING, size=1)
    assert (found.total, found.failing) == (4, 1), "of all that match, not of this page alone"


async def test_folders_tell_how_many_are_in_them_and_how_many_of_these_fail(
    house: House, tmp_path: Path
) -> None:
    """One whose settings cannot be read fails, and is in no folder that is known."""
    made = [
        await house.webhook(name=name, folder=folder)
        for name, folder in (("A", "Shops"), ("B", "shops"), ("C", "Shops/Europe"), ("D", "Alone"))
    ]
    for one in made[:2]:
        await opens_incident(house, one.id)

    async def counts(**wanted: Any) -> list[tuple[str | None, int, int]]:
        found = await listing.folders(house.gateway, OWNER, WebhookFilter(**wanted))
        return [(one.name, one.count, one.failing) for one in found]

    assert await counts() == [("Alone", 1, 0), ("Shops", 2, 2), ("Shops/Europe", 1, 0)]
    assert await counts(search="c") == [("Shops/Europe", 1, 0)], "what does not match is not counted"
    newer = await house.webhook(name="Newer")
    await house.webhook(name="In none")
    overwrite(tmp_path / "data", newer.id, NEWER)
    assert (await counts())[3:] == [(None, 2, 1)]
    assert await counts(search="in none") == [(None, 1, 0)]


async def test_those_with_a_retention_of_their_own_are_reported_by_name(house: House) -> None:
    named = [("b", None, 0), ("C", 1, None), ("D", 9, 2)]
    for name, history, body in (named[1], named[0], ("A", None, None), named[2]):
        await house.webhook(name=name, historyRetentionDays=history, bodyRetentionDays=body)
    own = await listing.with_own_retention(house.gateway, OWNER)
    assert [(one.name, one.history_days, one.body_days) for one in own] == named


async def test_blanks_around_what_is_looked_for_do_not_count(house: House) -> None:
    made = await house.webhook(name="Orders", folder="Shops", tags=["eu"])
    await house.webhook(name="Else")
    for given in ({"search": " order "}, {"sender": " none "}, {"tag": " eu "}, {"folder": " shops "}):
        request: WebhookFilterRequest = validated(WebhookFilterRequest, {"search": "orders", **given})
        found = await listing.all_that_match(house.gateway, request.wanted())
        assert [one.id for one in found] == [made.id], given
    bounds = {"search": 200, "sender": 80, "tag": 80, "folder": 200}
    nothing: WebhookFilterRequest = validated(WebhookFilterRequest, dict.fromkeys(bounds))
    assert nothing.wanted() == listing.EVERYTHING
    for field, longest in bounds.items():
        validated(WebhookFilterRequest, {field: "x" * longest})
        with pytest.raises(Refused):
            validated(WebhookFilterRequest, {field: "x" * (longest + 1)})


async def test_a_sender_that_nobody_knows_is_refused_and_not_a_list_of_none(house: House) -> None:
    for sender in ("nonsense", "hmac", "shop"):
        request: WebhookFilterRequest = validated(WebhookFilterRequest, {"sender": sender})
        with pytest.raises(Refused) as caught:
            request.wanted()
        wrong = fields_of(caught.value)
        assert wrong.keys() == {"sender"} and "shopify" in wrong["sender"]
        asked: many.ManyRequest = validated(
            many.ManyRequest, {"action": "hold", "filter": {"sender": sender}}
        )
        assert list(await fields_refused(many.change(house.gateway, OWNER, asked))) == ["filter.sender"]
