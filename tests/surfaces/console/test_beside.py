"""What people do beside reading a call: mark it, write a note, compare it, start its workflow with a changed copy."""

from typing import Any

import pytest
from playwright.sync_api import expect

from surfaces.console.conftest import Console, Outside, Plain
from surfaces.console.plain import words


@pytest.fixture(scope="module")
def calls(outside: Outside) -> dict[str, Any]:
    """Two calls to a webhook whose workflow answers, and so both went well."""
    webhook = outside.webhook(name="Beside", fieldMapping={"fieldOne": "orderNumber"})
    old = outside.called(webhook["url"], b'{"orderNumber": "1001", "total": 10.00}', X_Shop="a")
    new = outside.called(webhook["url"], b'{"orderNumber": "1002"}', X_Shop="b")
    return {"webhook": webhook, "old": old, "new": new}


def test_a_call_is_marked_and_the_history_shows_what_is(plain: Plain, calls: dict[str, Any]) -> None:
    plain.open(f"/calls/{calls['old']}")
    assert "Bookmarked. The list shows bookmarked calls" in plain.press("Bookmark")
    rows = ".//table[@class='calls']/tbody/tr"
    plain.open(f"/calls?webhook={calls['webhook']['id']}")
    assert plain.count(rows) == 2
    plain.open(f"/calls?webhook={calls['webhook']['id']}&q=is:bookmarked")
    assert plain.count(rows) == 1 and "Bookmarked" in plain.text(rows)
    plain.open(f"/calls/{calls['old']}")
    assert "No longer bookmarked." in plain.press("Remove the bookmark")
    assert plain.api.get("invocations?bookmarked=true").json["items"] == []


def test_a_note_is_written_shown_as_text_and_deleted(console: Console, calls: dict[str, Any]) -> None:
    console.open(f"/calls/{calls['old']}")
    console.page.get_by_text("Add a note").click()
    console.page.get_by_label("A note").fill("Asked the shop.\n<b>They</b> look into it.")
    console.click("Save the note")
    note = console.page.locator("#notes li")
    expect(note).to_contain_text("<b>They</b> look into it.")
    expect(note).to_contain_text("admin")
    assert console.violations() == []
    console.page.set_viewport_size({"width": 360, "height": 740})
    console.fits("a note")
    console.click("Delete the note of admin")
    expect(note).to_have_count(0)
    console.page.get_by_text("Add a note").click()
    console.page.get_by_label("A note").fill("   ")
    console.click("Save the note")
    expect(console.page.locator("#wrong-text")).to_have_text("Write something")


def test_a_call_is_compared_with_the_last_good_one_and_with_any(plain: Plain, calls: dict[str, Any]) -> None:
    plain.open(f"/calls/{calls['new']}/compare?to={calls['old']}")
    told = [words(row) for row in plain.root.iter("tr")]
    for what in ("changed x-shop a b", 'changed orderNumber "1001" "1002"', "removed total 10.00 not there"):
        assert any(what in row for row in told), (what, told)
    plain.fill("Compare with", "inv_nothing")
    assert "There is no invocation with this id" in plain.press("Compare")
    plain.open(f"/calls/{calls['old']}")
    assert "is known to have gone well" in plain.follow("Compare")


def test_a_changed_copy_starts_the_workflow_and_says_what_it_is(plain: Plain, calls: dict[str, Any]) -> None:
    plain.open(f"/calls/{calls['old']}")
    plain.follow("Edit and replay")
    button = "Replay the changed copy"
    assert "Nothing was changed: replay the call as it is" in plain.press(button, status=422)
    plain.fill("Body", '{"orderNumber": ')
    plain.press(button, status=422)
    assert plain.count(".//*[@id='wrong-body']") == 1
    plain.fill("Body", '{"orderNumber": "7", "total": 10.00}')
    plain.fill("Field two", "by hand")
    said = plain.press(button)
    made = plain.path.partition("?")[0].rpartition("/")[2]
    assert made != calls["old"] and "Nobody sent this." in said
    assert "orderNumber changed, fieldTwo set by hand" in said
    fields = plain.api.get(f"invocations/{made}").json["deliveries"][0]["fields"]
    assert fields == {"fieldOne": "7", "fieldTwo": "by hand"}
    before = plain.api.get(f"invocations/{calls['old']}").json["body"]
    assert before == '{"orderNumber": "1001", "total": 10.00}'
    plain.follow(calls["old"][-8:])
    assert plain.named(made[-8:], "a")


def test_a_body_that_indenting_would_make_huge_is_edited_as_it_came(plain: Plain) -> None:
    deep = '{"a":' + "[" * 90 + ",".join("1" * 20_000) + "]" * 90 + "}"
    plain.open(f"/calls/{plain.called(plain.webhook(name='Deep')['url'], deep.encode())}/edit")
    assert len(plain.html) < 120 * 1024
    assert (plain.field("Body").text or "").strip("\n") == deep


def test_many_long_differences_are_read_page_by_page(plain: Plain) -> None:
    webhook, seen, name = plain.webhook(name="Very different"), [], ".//tbody/tr/th/bdi"
    old, new = (
        plain.called(webhook["url"], {f"{number:03}": letter * 200 for number in range(150)})
        for letter in ("\u2014", "\u2026")
    )
    said = plain.open(f"/calls/{new}/compare?to={old}")
    while True:
        assert len(plain.html.encode()) < 120 * 1024
        here = plain.text(name).split()
        seen += here
        assert f"{len(here)} of 150 are on this page." in said
        if not plain.named("Further differences", "a"):
            break
        said = plain.follow("Further differences")
        assert plain.path.endswith(f"from={len(seen)}")
    assert seen == [f"{number:03}" for number in range(150)]
    plain.follow("The first differences")
    assert plain.text(name).startswith("000")
