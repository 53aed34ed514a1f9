"""A row of history says what has happened, to the millisecond and in one zone."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from support.waiting import wait_until
from surfaces.console.conftest import Console, Outside, Plain
from surfaces.console.plain import words


@pytest.fixture(scope="module")
def shop(outside: Outside) -> str:
    """A webhook with an order, and the same delivery twice more."""
    mapping = {"fieldOne": "name", "fieldTwo": "customer.email"}
    shop = outside.shop("Shop of rows", fieldMapping=mapping, duplicateProtection={"enabled": True})
    body = b'{"name": "#1234", "customer": {"email": "ada@example.com"}}'
    for _ in range(3):
        more = {"X_Shopify_Topic": "orders/create", "X_Shopify_Event_Id": "e-1"}
        assert outside.sold(shop, body, **more)[0] == 200
    return str(shop["id"])


def test_a_row_says_event_values_webhook_and_answer(console: Console, shop: str) -> None:
    console.open(f"/calls?webhook={shop}")
    expect(console.page.get_by_role("heading", name="Calls", exact=True)).to_be_visible()
    expect(console.page.get_by_role("columnheader", name="What came")).to_be_visible()
    rows = console.page.locator("table.calls tbody tr:visible")
    expect(rows).to_have_count(1)  # duplicates are folded below their first call
    console.page.get_by_role("button", name="+2 duplicates").click()
    expect(rows).to_have_count(3)
    first = console.page.locator("table.calls tbody tr", has_text="#1234").first
    for text in ("orders/create", "#1234", "ada@example.com", "200", "Shop of rows"):
        expect(first).to_contain_text(text)
    expect(first.locator("time")).to_have_text(re.compile(r"^\d\d:\d\d:\d\d$"))


def test_a_day_is_said_once_above_its_first_call(console: Console, shop: str) -> None:
    console.open(f"/calls?webhook={shop}")
    console.page.get_by_role("button", name="+2 duplicates").click()
    days = """(ages) => {
        const times = [...document.querySelectorAll("table.calls time")];
        times.forEach((one, place) => (one.dateTime = new Date(Date.now() - ages[place] * 86400000).toISOString()));
        document.dispatchEvent(new CustomEvent("postern:times", { detail: document }));
        return times.map((one) => one.dataset.day !== undefined && one.textContent.length === 8);
    }"""
    for ages, said in (([0, 0, 0], [0, 0, 0]), ([0, 3, 3], [0, 1, 0]), ([3, 4, 9], [1, 1, 1])):
        assert console.page.evaluate(days, ages) == [bool(one) for one in said]
    assert console.violations() == []


def test_how_long_a_caller_waited_is_said_where_it_is_noted(plain: Plain) -> None:
    """A call that is answered at once hears it when it is on disk, long after it was judged. On a busy machine that
    may take so long that it is noted as well: of ten calls one is quick."""
    one = plain.webhook(name="At once or later")
    ten = [plain.called(one["url"]) for _ in range(10)]
    later = {"synchronousResponse": {"enabled": True, "timeoutSeconds": 5}}
    assert plain.api.patch(f"webhooks/{one['id']}", later).status == 200
    wait_until(lambda: plain.call(one["url"])[1]["status"] == "completed", what="the change to be followed")
    newest = f"invocations?webhookId={one['id']}&limit=1"
    wait_until(lambda: plain.api.get(newest).json["items"][0]["answeredAt"], what="the wait to be noted")
    last = plain.api.get(newest).json["items"][0]["id"]
    at_once = next(id for id in ten if plain.api.get(f"invocations/{id}").json["answeredAt"] is None)
    plain.open(f"/webhooks/{one['id']}/calls")

    def heard(call: str) -> str:
        cells = plain.root.iterfind(f".//tr[@id='call-{call}']/td")
        return next(words(one) for one in cells if "heard" in one.get("class", "").split())

    assert re.fullmatch(r"200\s+[\d,.]+ ms", heard(last)) and heard(at_once) == "200"
    said = plain.open(f"/calls/{at_once}")
    assert "answered 200" in said and "answered 200 in" not in said
    plain.open(f"/volume?webhook={one['id']}")
    assert plain.text(".//*[@id='charts']//dl").count("at most") == 2


def test_times_are_in_one_named_zone(console: Console, shop: str) -> None:
    with console.another_browser(timezone_id="Asia/Tokyo") as page:
        page.goto(f"{console.program.url}/calls?webhook={shop}")
        zone, moment = page.locator(".zone [data-zone]"), page.locator("td.received time").first
        expect(zone).to_have_text("Asia/Tokyo")
        there = moment.inner_text()
        page.locator(".who").click()
        page.get_by_role("button", name="Times in UTC").click()
        expect(zone).to_have_text("UTC")
        assert moment.inner_text() != there
        page.goto(f"{console.program.url}/volume?range=hour")
        expect(page.locator(".plot canvas").first).to_be_visible()
        page.locator(".plot").first.hover()
        hovered = datetime.strptime(page.locator(".tip:visible strong").inner_text(), "%b %d, %Y, %I:%M %p")
        assert abs(hovered - datetime.now(UTC).replace(tzinfo=None)) < timedelta(hours=2)


def test_a_call_has_two_lines_on_a_phone(console: Console, shop: str) -> None:
    console.page.set_viewport_size({"width": 390, "height": 844})
    console.open(f"/calls?webhook={shop}")
    rows = console.page.locator("table.calls tbody tr:visible")
    boxes = [box for row in rows.all() if (box := row.bounding_box()) is not None]
    highest = max(box["height"] for box in boxes)
    assert highest < 65, "the duplicates of a call stand beside its outcome"
    console.fits("nothing")
