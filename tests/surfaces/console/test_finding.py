"""Anything is found: by keyboard, by value, in the whole history, and taken along as a file."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from support.stored import rows
from support.waiting import wait_until
from surfaces.console.conftest import Console, Outside


@pytest.fixture(scope="module")
def orders(outside: Outside) -> dict[str, Any]:
    """A webhook whose calls can be found by their values."""
    made = outside.webhook(name="Find me by name", fieldMapping={"fieldOne": "order"})
    for number in ("P-1001", "=1+1"):
        assert outside.call(made["url"], {"order": number})[0] == 200
    newest = "invocations?value=%3D1%2B1"
    wait_until(lambda: outside.api.get(newest).json["items"], what="the calls to be findable")
    return made


def test_a_value_leads_to_its_call(console: Console, orders: dict[str, Any]) -> None:
    console.open("/calls")
    console.page.keyboard.press("/")
    box = console.page.get_by_label("Search calls")
    expect(box).to_be_focused()
    box.press_sequentially("p-1001")
    box.press("Enter")  # it searches, and plans no replay
    rows = console.page.locator("table.calls tbody tr")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("P-1001")
    assert console.api.get("replays").json["items"] == []


def test_the_palette_finds_webhooks_calls_pages_and_settings(
    console: Console, orders: dict[str, Any]
) -> None:
    console.open("/volume")
    keys = console.page.keyboard
    keys.press("Control+k")
    found = console.page.locator("#find .found a")
    expect(found.first).to_be_visible()
    finds = {"find me by": "Webhook", "P-1001": "Call", "tester": "Page", "HISTORY_DAYS": "Setting"}
    for typed, wanted in finds.items():
        console.page.get_by_label("Find anything").fill(typed)
        expect(found.filter(has_text=wanted).first).to_be_visible()
    assert console.violations() == []
    console.page.get_by_label("Find anything").fill("find me by")
    expect(found.first).to_contain_text("Find me by name")
    keys.press("ArrowDown")
    expect(found.first).to_be_focused()
    keys.press("Enter")
    console.page.wait_for_url(f"**/webhooks/{orders['id']}")
    keys.press("Control+k")
    expect(console.page.locator("#find")).to_be_visible()
    keys.press("Escape")
    expect(console.page.locator("#find")).to_be_hidden()


def test_enter_never_opens_another_call_than_the_one_typed(console: Console, orders: dict[str, Any]) -> None:
    console.open("/volume")
    console.page.keyboard.press("Control+k")
    console.page.get_by_label("Find anything").fill("P-100")
    found = console.page.locator("#find .found a")
    expect(found.first).to_contain_text("No call has the value “P-100”")
    alike = found.filter(has_text="Begins with P-100")
    expect(alike.first).to_contain_text("P-1001")
    assert console.violations() == []
    console.page.keyboard.press("Enter")
    console.page.wait_for_url("**/calls?search=P-100")
    # Before anything is found for it.
    console.open("/volume")
    console.page.keyboard.press("Control+k")
    expect(found.first).to_be_visible()
    console.page.get_by_label("Find anything").fill("P-1001")
    console.page.keyboard.press("Enter")
    console.page.wait_for_url(re.compile(r"/find\?find=P-1001|/calls/inv_"))


def test_the_list_says_how_many_calls_there_are(console: Console, orders: dict[str, Any]) -> None:
    console.open(f"/calls?webhook={orders['id']}")
    expect(console.page.locator(".counting")).to_have_text("2 calls")
    console.open(f"/calls?webhook={orders['id']}&field=order%3DP-1001")
    console.click("Count these calls")
    expect(console.page.locator(".counting")).to_have_text("1 call")


def test_the_beginning_of_a_value_is_enough(console: Console, orders: dict[str, Any]) -> None:
    console.open("/calls?value=p-10")
    console.page.get_by_role("link", name="Values that begin with it").click()
    expect(console.page.locator("table.calls tbody tr")).to_have_count(1)
    console.page.wait_for_load_state()  # the key is heard by a script
    console.page.keyboard.press("Control+k")
    console.page.get_by_label("Find anything").fill("p-10")
    expect(console.page.locator("#find .found a").filter(has_text="Call").first).to_be_visible()


def test_filters_are_kept_under_a_name(console: Console, orders: dict[str, Any]) -> None:
    page = console.page
    console.open(f"/calls?webhook={orders['id']}&status=rejected")
    console.click("View")
    page.get_by_label("Save as a tab").fill("Rejected orders")
    assert console.violations() == []
    console.click("Save")
    expect(page.get_by_text("Saved: the view is a tab of the page Calls")).to_be_visible()
    page.wait_for_load_state()  # the key is heard by a script
    page.keyboard.press("Control+k")
    page.get_by_label("Find anything").fill("rejected ord")
    found = page.locator("#find .found a")
    # Not in the list of all pages, which stands there before anything is typed and goes away.
    expect(found.filter(has_text="Volume")).to_have_count(0)
    found.filter(has_text="View").click()
    page.wait_for_url(f"**/calls?status=rejected&webhook={orders['id']}")
    expect(page.get_by_role("link", name="Rejected orders")).to_have_attribute("aria-current", "page")
    console.click("View")
    page.get_by_label("This tab").fill("Only rejected")
    console.click("Rename")
    page.get_by_role("link", name="Only rejected").click()
    console.click("View")
    console.click("Delete")
    expect(page.get_by_text("The view is deleted.")).to_be_visible()
    expect(page.get_by_role("link", name="Only rejected")).to_have_count(0)


def test_what_cannot_be_searched_for_stays_in_the_field(console: Console, orders: dict[str, Any]) -> None:
    console.open(f"/calls?webhook={orders['id']}")
    rows = console.page.locator("table.calls tbody tr").count()
    console.ask("Status:gone")
    expect(console.page.locator("#wrong-q")).to_be_visible()
    expect(console.page.get_by_label("Search calls")).to_have_value("Status:gone")
    expect(console.page.locator("table.calls tbody tr")).to_have_count(rows)
    assert console.violations() == []
    console.ask("STATUS:Rejected")
    expect(console.page.locator(".chip", has_text="rejected")).to_be_visible()


def test_what_is_marked_is_done_together_and_a_row_follows_its_call(console: Console) -> None:
    page = console.page
    webhook = console.shop("Marked", "typo", fieldMapping={"fieldOne": "n"})
    for number, key in enumerate(("right", "right", "typo")):
        console.sold(webhook, b'{"n": %d}' % number, key)
    console.api.patch(f"webhooks/{webhook['id']}", {"authentication": {"secret": "right"}})
    console.open(f"/calls?webhook={webhook['id']}")
    for key in "jxjxk":
        page.keyboard.press(key)
    expect(page.locator("#marked")).to_contain_text("2 marked")
    expect(page.get_by_role("button", name="Replay 1")).to_be_visible()
    assert console.violations() == []
    console.click("Admit 1")
    expect(page.get_by_role("heading", name="1 of 1 call admitted")).to_be_visible()
    console.click("Back to the calls", "link")
    last = page.locator("table.calls tbody tr").last
    expect(last.locator(".badge")).to_have_text("Rejected")
    last.locator("a.opens").click()
    console.click("Check again and admit")
    expect(page.get_by_text("Its progress is shown below")).to_be_visible()
    expect(last.locator(".state")).not_to_contain_text("Rejected")


def test_a_time_is_chosen_by_drawing_over_the_strip(console: Console, orders: dict[str, Any]) -> None:
    console.open("/calls")
    strip = console.page.locator(".strip-of-time svg")
    box = strip.bounding_box()
    assert box is not None
    console.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 9)
    console.page.mouse.down()
    console.page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 9)  # within the last bar
    console.page.mouse.up()
    expect(strip.locator(".chosen")).to_have_count(1)
    assert re.search(r"since=\S+Z&until=\S+Z", console.page.url)
    expect(console.page.locator(".chip time")).to_have_count(2)
    expect(console.page.locator("table.calls tbody tr").first).to_be_visible()


LONG = """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= 5100)
    INSERT INTO invocations SELECT (columns) FROM n, (SELECT * FROM invocations WHERE webhook_id = ? LIMIT 1)
"""


def test_a_search_says_how_far_it_is_and_can_be_stopped(console: Console) -> None:
    webhook = console.webhook(name="Called long ago")
    console.call(webhook["url"], {"n": "here"})
    database = console.program.data_dir / "postern.db"
    names = [row[1] for row in rows(database, "PRAGMA table_info(invocations)")]
    old = "printf('inv_%012x7000800000000000%04x', 1600000000000 + i, i)"
    copied = LONG.replace("(columns)", ", ".join(old if name == "id" else name for name in names))
    rows(database, copied, webhook["id"])
    page = console.page
    held: list[Any] = []
    page.route("**/calls?*after=*", lambda route: held.append(route))
    console.open(f"/calls?webhook={webhook['id']}&search=nowhere-at-all")
    looking = page.locator("[data-looking]")
    expect(looking).to_contain_text("Searched back to")
    expect(looking.locator("progress")).to_have_attribute("value", re.compile(r"\d+"))
    assert console.violations() == []
    console.click("Stop")
    expect(looking).to_have_count(0)
    expect(page.locator("#announced")).to_have_text("Stopped")
    for route in held:
        route.abort()
    page.unroute("**/calls?*after=*")
    console.click("Continue from here", "link")
    expect(page.get_by_text("No call matches")).to_be_visible()


def test_a_call_opened_beside_its_list_is_there_after_a_reload_and_never_beside_another_address(
    console: Console, orders: dict[str, Any]
) -> None:
    page, panel = console.page, console.page.locator("[data-panel]")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{console.program.url}/calls?webhook={orders['id']}")
    links = page.locator("table.calls a.opens")
    first, second = [links.nth(place).get_attribute("href") for place in (0, 1)]
    links.nth(0).click()
    expect(panel.locator(f"[data-id={str(first)[7:]}]")).to_be_visible()
    page.reload()
    expect(panel.locator(f"[data-id={str(first)[7:]}]")).to_be_visible()
    assert f"webhook={orders['id']}#call-" in page.url
    expect(page.locator("tr[aria-current]")).to_have_count(1)
    page.route(re.compile(f"{second}$"), lambda route: route.fulfill(status=503, body="away"))
    links.nth(1).click()
    expect(panel).to_have_text("This call cannot be shown now: open it again in a moment.")
    assert page.url.endswith(f"#call-{str(second)[7:]}")
    assert console.violations() == []
    page.set_viewport_size({"width": 390, "height": 800})
    page.reload()
    page.wait_for_url(re.compile(f"/calls/{str(second)[7:]}$"))
    console.notes.check(but="the server responded with a status of 503")
