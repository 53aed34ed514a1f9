"""Anything is found: by keyboard, by value, in the whole history, and taken along as a file."""

import csv
import io
import json
from typing import Any

import pytest
from playwright.sync_api import expect

from support.waiting import wait_until
from surfaces.console.conftest import Console


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return {}


@pytest.fixture
def orders(console: Console, made: dict[str, Any]) -> dict[str, Any]:
    """A webhook whose calls can be found by their values."""
    if not made:
        made |= console.webhook(name="Find me by name", fieldMapping={"fieldOne": "order"})
        for number in ("P-1001", "=1+1"):
            assert console.call(made["url"], {"order": number})[0] == 200
        wait_until(
            lambda: len(console.api.get("invocations?value=%3D1%2B1").json["items"]) == 1,
            what="the calls to be findable",
            timeout=60,
        )
    return made


def test_a_value_leads_to_its_call(console: Console, orders: dict[str, Any]) -> None:
    console.open("/history")
    console.page.keyboard.press("/")
    box = console.page.get_by_label("Find calls by a mapped value")
    expect(box).to_be_focused()
    box.press_sequentially("p-1001")
    rows = console.page.locator("table.calls tbody tr")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("P-1001")
    assert console.violations() == []


def test_the_palette_finds_webhooks_calls_pages_and_settings(
    console: Console, orders: dict[str, Any]
) -> None:
    console.open("/volume")
    keys = console.page.keyboard
    keys.press("Control+k")
    found = console.page.locator("#find .found a")
    expect(found.first).to_be_visible()
    assert console.violations() == []
    for typed, wanted in (
        ("find me by", "Webhook"),
        ("P-1001", "Call"),
        ("tester", "Page"),
        ("HISTORY_DAYS", "Setting"),
    ):
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


def test_filters_by_address_and_time_are_in_the_address(console: Console, orders: dict[str, Any]) -> None:
    at = f"/history?webhook={orders['id']}"
    rows = console.page.locator("table.calls tbody tr")
    console.open(f"{at}&address=127.0.0.1&since=2020-01-01T00:00:00")
    expect(rows).to_have_count(2)
    expect(console.page.get_by_label("Sender's address")).to_be_visible()
    assert console.violations() == []
    console.open(f"{at}&until=2020-01-01T00:00:00")
    expect(console.page.get_by_text("No call matches")).to_be_visible()
    console.open(f"{at}&address=192.0.2.1")
    expect(console.page.get_by_text("No call matches")).to_be_visible()


def test_a_filtered_list_is_taken_along_as_a_file(console: Console, orders: dict[str, Any]) -> None:
    console.open(f"/history?webhook={orders['id']}")
    with console.page.expect_download() as begun:
        console.click("CSV", "link")
    table = list(csv.DictReader(io.StringIO(begun.value.path().read_text())))
    assert {row["values"] for row in table} == {"P-1001", "'=1+1"}, "no formula for a spreadsheet"
    with console.page.expect_download() as begun:
        console.click("JSON lines", "link")
    lines = [json.loads(line) for line in begun.value.path().read_text().splitlines()]
    assert sorted(one["values"] for one in lines) == [["=1+1"], ["P-1001"]]
    for path in ("?format=exe", "?format=csv&status=nothing"):
        assert console.page.request.get(f"{console.program.url}/history/export{path}").status == 422


def test_pages_go_forward_and_back(console: Console, orders: dict[str, Any]) -> None:
    webhook = console.webhook(name="Many calls")
    for number in range(51):
        assert console.call(webhook["url"], {"n": number})[0] == 200
    console.open(f"/history?webhook={webhook['id']}")
    first = console.page.locator("table.calls tbody tr a").first.get_attribute("href")
    console.click("Older calls", "link")
    expect(console.page.locator("table.calls tbody tr")).to_have_count(1)
    console.click("Newer calls", "link")
    expect(console.page.locator("table.calls tbody tr")).to_have_count(50)
    assert console.page.locator("table.calls tbody tr a").first.get_attribute("href") == first
