"""What people do beside reading a call: mark it, write a note, compare it, start its workflow with a changed copy; and
how long its parts took."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from surfaces.console.conftest import Console, Outside


@pytest.fixture(scope="module")
def calls(outside: Outside) -> dict[str, Any]:
    """Two calls to a webhook whose workflow answers, and so both went well."""
    webhook = outside.webhook(name="Beside", fieldMapping={"fieldOne": "orderNumber"})
    old = outside.called(webhook["url"], b'{"orderNumber": "1001", "total": 10.00}', X_Shop="a")
    new = outside.called(webhook["url"], b'{"orderNumber": "1002"}', X_Shop="b")
    return {"webhook": webhook, "old": old, "new": new}


def fits(console: Console, what: str) -> None:
    console.page.set_viewport_size({"width": 360, "height": 740})
    console.fits(what)
    console.page.set_viewport_size({"width": 1280, "height": 860})


def test_a_call_is_marked_and_the_history_shows_what_is(console: Console, calls: dict[str, Any]) -> None:
    console.open(f"/calls/{calls['old']}")
    console.click("More actions")
    console.click("Bookmark")
    expect(console.page.get_by_text("Bookmarked. The list shows bookmarked calls")).to_be_visible()
    console.open(f"/calls?webhook={calls['webhook']['id']}")
    rows = console.page.locator("table.calls tbody tr")
    expect(rows).to_have_count(2)
    console.ask("is:bookmarked")
    expect(rows).to_have_count(1)
    expect(rows.get_by_text("Bookmarked")).to_be_attached()
    assert console.violations() == []
    console.open(f"/calls/{calls['old']}")
    console.click("More actions")
    console.click("Remove the bookmark")
    expect(console.page.get_by_text("No longer bookmarked.")).to_be_visible()
    assert console.api.get("invocations?bookmarked=true").json["items"] == []


def test_a_note_is_written_shown_as_text_and_deleted(console: Console, calls: dict[str, Any]) -> None:
    console.open(f"/calls/{calls['old']}")
    console.page.get_by_text("Add a note").click()
    console.page.get_by_label("A note").fill("Asked the shop.\n<b>They</b> look into it.")
    console.click("Save the note")
    note = console.page.locator("#notes li")
    expect(note).to_contain_text("<b>They</b> look into it.")
    expect(note).to_contain_text("admin")
    assert console.violations() == []
    fits(console, "a note")
    console.click("Delete the note of admin")
    expect(note).to_have_count(0)
    console.page.get_by_text("Add a note").click()
    console.page.get_by_label("A note").fill("   ")
    console.click("Save the note")
    expect(console.page.locator("#wrong-text")).to_have_text("Write something")


def test_a_call_is_compared_with_the_last_good_one_and_with_any(
    console: Console, calls: dict[str, Any]
) -> None:
    console.open(f"/calls/{calls['new']}/compare?to={calls['old']}")
    row = console.page.get_by_role("row")
    for what in ("changed x-shop a b", 'changed orderNumber "1001" "1002"', "removed total 10.00 not there"):
        expect(row.filter(has_text=re.compile(re.escape(what).replace("\\ ", r"\s*")))).to_be_visible()
    assert console.violations() == []
    fits(console, "a comparison")
    console.page.get_by_label("Compare with").fill("inv_nothing")
    console.click("Compare")
    expect(console.page.get_by_text("There is no invocation with this id")).to_be_visible()
    console.open(f"/calls/{calls['old']}")
    console.click("More actions")
    console.click("Compare", "link")
    expect(console.page.get_by_text("is known to have gone well")).to_be_visible()


def test_a_changed_copy_starts_the_workflow_and_says_what_it_is(
    console: Console, calls: dict[str, Any]
) -> None:
    console.open(f"/calls/{calls['old']}")
    console.click("More actions")
    console.click("Edit and replay", "link")
    assert console.violations() == []
    fits(console, "editing")
    console.click("Replay the changed copy")
    expect(console.page.get_by_text("Nothing was changed: replay the call as it is")).to_be_visible()
    console.page.get_by_label("Body", exact=True).fill('{"orderNumber": ')
    console.click("Replay the changed copy")
    expect(console.page.locator("#wrong-body")).to_be_visible()
    console.page.get_by_label("Body", exact=True).fill('{"orderNumber": "7", "total": 10.00}')
    console.page.get_by_label(re.compile("Field two")).fill("by hand")
    console.click("Replay the changed copy")
    expect(console.page.get_by_text("Nobody sent this.")).to_be_visible()
    made = console.path.rpartition("/")[2]
    assert made != calls["old"]
    expect(console.page.get_by_text("orderNumber changed, fieldTwo set by hand")).to_be_visible()
    fields = console.api.get(f"invocations/{made}").json["deliveries"][0]["fields"]
    assert fields == {"fieldOne": "7", "fieldTwo": "by hand"}
    before = console.api.get(f"invocations/{calls['old']}").json["body"]
    assert before == '{"orderNumber": "1001", "total": 10.00}'
    assert console.violations() == []
    console.page.get_by_role("link", name=calls["old"][-8:]).click()
    expect(console.page.get_by_role("link", name=made[-8:])).to_be_visible()


def test_a_body_that_indenting_would_make_huge_is_edited_as_it_came(console: Console) -> None:
    deep = '{"a":' + "[" * 90 + ",".join("1" * 20_000) + "]" * 90 + "}"
    call = console.called(console.webhook(name="Deep")["url"], deep.encode())
    console.open(f"/calls/{call}/edit")
    assert len(console.page.content()) < 120 * 1024
    expect(console.page.get_by_label("Body", exact=True)).to_have_value(deep)


def test_many_long_differences_are_read_page_by_page(console: Console) -> None:
    webhook = console.webhook(name="Very different")
    old, new = (
        console.called(webhook["url"], {f"{number:03}": letter * 200 for number in range(150)})
        for letter in ("\u2014", "\u2026")
    )
    console.open(f"/calls/{new}/compare?to={old}")
    page, seen = console.page, []
    while True:
        assert len(page.content().encode()) < 120 * 1024
        seen += page.locator("table.differences th bdi").all_inner_texts()
        shown = page.locator("table.differences tbody tr").count()
        expect(page.get_by_text(f"{shown} of 150 are on this page.")).to_be_visible()
        further = page.get_by_role("link", name="Further differences")
        if not further.count():
            break
        further.click()
        page.wait_for_url(f"**from={len(seen)}")
    assert seen == [f"{number:03}" for number in range(150)]
    console.click("The first differences", "link")
    expect(page.locator("table.differences th bdi").first).to_have_text("000")
