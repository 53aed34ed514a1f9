"""A webhook's settings: one page with an index, a bar that counts what is not saved, and the calls as they come at the side."""

import time
from typing import Any

import pytest
from playwright.sync_api import expect

from postern.surfaces.console.views.webhooks import settings
from postern.surfaces.console.visit import Form
from support.stored import rows
from surfaces.console.conftest import Console, Outside

PLACE = "one => one.getBoundingClientRect().top + scrollY"


@pytest.fixture
def webhook(outside: Outside) -> dict[str, Any]:
    webhook = outside.webhook(name="Set", fieldMapping={"fieldOne": "order"})
    outside.call(webhook["url"], {"order": 7})
    return webhook


@pytest.fixture
def at(webhook: dict[str, Any]) -> str:
    return f"/webhooks/{webhook['id']}/settings"


def test_what_is_changed_is_counted_and_can_be_discarded(
    console: Console, webhook: dict[str, Any], at: str
) -> None:
    page, bar = console.page, console.page.locator(".save-bar")
    console.open(at)
    expect(bar).to_be_hidden()
    page.get_by_label("Folder").fill("Shops")
    page.get_by_label("Window in hours").fill("999")
    page.get_by_role("radio", name="Static token").check()
    expect(bar.get_by_text("3 changes")).to_be_visible()
    console.click("Save")  # refused: all is still to be saved
    expect(bar).to_contain_text("Not saved")
    page.get_by_label("Tags").fill("new")
    expect(bar.get_by_text("4 changes")).to_be_visible()
    console.click("Discard", "link")
    expect(bar).to_be_hidden()
    expect(page.get_by_label("Folder")).to_have_value("")
    expect(page.get_by_label("Window in hours")).to_have_value("24")
    expect(page.get_by_label("Where the token is sent")).to_be_hidden()
    page.get_by_label("Tags").fill("one")
    expect(bar.get_by_text("1 change", exact=True)).to_be_visible()
    console.save()
    expect(bar.get_by_text("1 change", exact=True)).to_be_hidden()
    assert console.settings_of(webhook)["tags"] == ["one"]
    page.reload()  # and nothing asks before


def test_the_index_marks_where_one_is(console: Console, at: str) -> None:
    console.page.set_viewport_size({"width": 1440, "height": 1080})  # the last two have room together
    console.open(at)
    index = console.page.get_by_role("navigation", name="Settings")
    titles = index.get_by_role("link").all_inner_texts()
    assert titles == [
        *("Authentication", "Mapping", "What starts", "Where it goes", "Response"),
        *("Duplicates", "Limits", "Retention", "Alarms", "Name"),
    ]
    for title in ("Authentication", "Limits", "Alarms", "Name"):
        index.get_by_role("link", name=title).click()
        expect(index.locator("[aria-current]")).to_have_text(title)


def test_help_stands_over_the_page_and_moves_nothing(console: Console, at: str) -> None:
    console.open(at)
    page = console.page
    below = page.get_by_label("At once")
    page.wait_for_load_state("networkidle")  # parts above it are asked for by the page
    place = below.evaluate(PLACE)
    expect(page.get_by_text("More is rejected with 429.")).to_be_hidden()
    page.get_by_label("Calls a second").focus()
    expect(page.get_by_text("More is rejected with 429.")).to_be_visible()
    assert below.evaluate(PLACE) == place
    assert console.violations() == []


@pytest.mark.parametrize("width", [1440, 390])
def test_a_call_that_comes_while_one_edits_opens_over_the_page_with_room(
    console: Console, webhook: dict[str, Any], at: str, width: int
) -> None:
    page = console.page
    page.set_viewport_size({"width": width, "height": 844})
    console.open(at)
    drawer = page.locator(".beside-settings")
    if width < 1000:
        drawer.locator("summary").first.click()
    page.get_by_label("Folder").fill("Shops")
    call = console.called(webhook["url"], {"order": 8})
    drawer.locator(f"#call-{call} a.opens").click()
    opened = page.locator("[data-panel]")
    expect(opened.get_by_role("heading", level=1)).to_contain_text("8")
    box = opened.bounding_box()
    assert box is not None and box["y"] == 0 and box["width"] == min(960, width)
    console.fits("an open call")
    opened.get_by_label("Close").click()
    expect(opened).to_be_empty()
    expect(page.get_by_label("Folder")).to_have_value("Shops")
    page.evaluate("onbeforeunload = null; document.getElementById('settings').reset()")
    console.click("Discard", "link")
    expect(page.locator(".save-bar")).to_be_hidden()
    page.set_viewport_size({"width": 1280, "height": 800})


@pytest.mark.parametrize("row", ["Mon-Fri 8-18: 120", "Sat-Sun 0-24: 45", "Tue 9-17: 4321", ""])
def test_a_sentence_saves_the_rhythm_that_it_shows(row: str) -> None:
    rhythm = {"rows": [row], "timeZone": "Europe/Berlin"} if row else None
    said = settings._said(rhythm)
    assert said is not None and (said["quiet"] or "") in said["quiets"]
    assert said["days"] in said["days_offered"] and {said["begin"], said["end"]} <= said["hours"].keys()
    chosen = {"quiet": said["quiet"] or "", "days": said["days"], "from": said["begin"], "to": said["end"]}
    form = {f"rhythm.{name}": str(one) for name, one in chosen.items()} | {"alarms.rhythm.rows": ""}
    patch = settings.request_of(Form(form | {"alarms.rhythm.timeZone": "Europe/Berlin"}))
    assert patch == {"alarms": {"rhythm": rhythm}}
    assert (settings.DAYS["Mon-Fri"], settings.DAYS["Mon-Sun"]) == ("on weekdays", "on every day")


def test_a_rhythm_is_said_in_a_sentence_and_proposed_from_its_calls(
    console: Console, webhook: dict[str, Any], at: str
) -> None:
    page = console.page

    def rhythm() -> Any:
        return console.settings_of(webhook)["alarms"]["rhythm"]

    def say(*choices: str) -> None:
        for label, choice in zip(("Longest quiet", "Days", "From hour", "To hour"), choices, strict=True):
            page.get_by_label(label, exact=True).press_sequentially(choice)

    console.open(at)
    say("2 hours", "on weekdays", "8", "18")
    console.save()
    assert rhythm() == {"rows": ["Mon-Fri 8-18: 120"], "timeZone": "UTC"}
    say("2 hours", "on weekdays", "18", "8")
    console.click("Save")
    expect(page.locator('[id="wrong-alarms.rhythm.rows"]')).to_contain_text("Hours, like 8-18")
    say("(do not tell me)", "on weekdays", "8", "18")
    console.save()
    assert rhythm() is None
    minute = int(time.time() // 60)
    for ago in range(30 * 48):
        made = "INSERT OR REPLACE INTO volumes (webhook_id, minute, code, shard, calls) VALUES (?, ?, 'accepted', 0, 1)"
        rows(console.program.data_dir / "postern.db", made, webhook["id"], minute - 30 * ago)
    console.open(at)
    page.locator("#proposed").scroll_into_view_if_needed()
    console.click("Use it")
    expect(page.locator("#proposed")).to_contain_text("Save it to watch for silence.")
    expect(page.get_by_label("Longest quiet", exact=True)).not_to_have_value("")
    console.save()
    assert rhythm()["timeZone"] == "UTC" and rhythm()["rows"][0].startswith("Mon-Sun 0-24: ")
    two = {"rows": ["Mon-Fri 8-18: 90", "Mon-Sun 0-24: 300"], "timeZone": "Europe/Berlin"}
    console.api.patch(f"webhooks/{webhook['id']}", {"alarms": {"rhythm": two}})
    console.open(at)
    expect(page.get_by_text("Its rhythm has rows of its own")).to_be_visible()
    console.save_as_it_is()
    assert rhythm() == two
