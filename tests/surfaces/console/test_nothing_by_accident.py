"""What costs something says so first, and what is lost by mistake can be restored."""

import re
import sqlite3
from typing import Any

from playwright.sync_api import Dialog, expect

from support.client import PASSWORD, with_level
from support.waiting import wait_until
from surfaces.console.conftest import Console, Outside, Plain
from surfaces.console.plain import words


def test_what_callers_would_notice_is_asked_first_and_can_be_undone(console: Console) -> None:
    webhook = console.webhook(name="Wholesale orders")
    for _ in range(3):
        assert console.call(webhook["url"])[0] == 200
    for deed, status, undone in (
        ("Delete", 404, "Restored, as it was."),
        ("Disable", 403, "The webhook accepts calls again."),
        ("Hold", 200, "Released"),
    ):
        console.open(f"/webhooks/{webhook['id']}")
        console.choose_for_webhook(deed)
        dialog = console.page.get_by_role("dialog", name=f"{deed} Wholesale orders?")
        expect(dialog.get_by_text("calls came in the last 24 hours.")).to_be_visible()
        dialog.get_by_role("button", name=f"{deed} the webhook").click()
        expect(console.page.get_by_role("button", name="Undo")).to_be_visible()
        assert console.call(webhook["url"])[0] == status
        assert console.violations() == []
        console.click("Undo")
        expect(console.page.get_by_text(undone)).to_be_visible()
        assert console.call(webhook["url"])[0] == 200


def test_what_nobody_would_notice_is_done_at_once_and_can_be_undone(plain: Plain) -> None:
    webhook = plain.webhook(name="Never called")
    for deed, undone in (
        ("Disable", "accepts calls again"),
        ("Hold", "Released"),
        ("Delete", "Restored, as it was."),
    ):
        plain.open("/webhooks?search=Never+called")
        plain.press(deed)
        assert undone in plain.press("Undo")
        assert plain.settings_of(webhook)["enabled"] is True


def gone(outside: Outside, *names: str) -> list[dict[str, Any]]:
    """Webhooks in the bin."""
    made = [outside.webhook(name=name) for name in names]
    for webhook in made:
        assert outside.api.delete(f"webhooks/{webhook['id']}").status == 204
    return made


def test_the_bin_gives_back_and_empties(plain: Plain) -> None:
    one, other = gone(plain, "Come back", "Go away")
    plain.open("/webhooks")
    plain.open(next(each.attrib["href"] for each in plain.root.iter("a") if re.match(r"Bin \d", words(each))))
    assert "Delete Go away for good?" in plain.press("Delete for good Go away")
    assert "Deleted for good." in plain.press("Delete it for good")
    assert other["id"] not in [item["id"] for item in plain.api.get("bin").json["items"]]
    assert "Restored, as it was." in plain.press("Restore Come back")
    assert plain.call(one["url"])[0] == 200


def test_several_come_back_from_the_bin_at_once(console: Console) -> None:
    webhooks = gone(console, *(f"Together {number}" for number in range(3)))
    console.open("/bin")
    restore = console.page.get_by_role("button", name="Restore those chosen")
    expect(restore).to_be_hidden()
    for number in (0, 2):
        console.page.get_by_label(f"Choose Together {number}").check()
    expect(console.page.get_by_text("2 chosen")).to_be_visible()
    assert console.violations() == []
    # Somebody else was faster with one of them.
    assert console.api.post(f"bin/{webhooks[2]['id']}/restore").status == 200
    restore.click()
    done = console.page.get_by_role("status").filter(has_text="restored")
    expect(done).to_have_text("1 webhook restored, as it was. 1 was no longer in the bin.")
    assert [console.call(webhook["url"])[0] for webhook in webhooks] == [200, 404, 200]


def test_disabling_says_who_would_notice_and_offers_to_hold(console: Console) -> None:
    webhook = console.webhook(name="Busy")
    assert console.call(webhook["url"])[0] == 200
    console.open(f"/webhooks/{webhook['id']}")
    console.choose_for_webhook("Disable")
    expect(console.page.get_by_text("1 call came in the last 24 hours.")).to_be_visible()
    console.click("Cancel", "link")
    expect(console.page.get_by_role("dialog")).to_be_hidden()
    console.choose_for_webhook("Disable")
    console.click("Hold instead")
    expect(console.page.get_by_text("On hold: calls are checked")).to_be_visible()
    assert console.call(webhook["url"])[0] == 200


def test_a_webhook_on_hold_that_is_disabled_is_not_said_to_take_calls(plain: Plain) -> None:
    webhook = plain.webhook(name="Held and disabled")
    page = f"/webhooks/{webhook['id']}"
    assert plain.call(webhook["url"])[0] == 200
    assert plain.api.post(f"webhooks/{webhook['id']}/hold").status == 200
    assert "Calls are checked and stored as usual" in plain.open(page)
    said = plain.press("Disable")
    assert "Calls that wait behind its hold stay there." in said and "Hold instead" not in said
    assert "The webhook now rejects calls with 403." in plain.press("Disable the webhook")
    said = plain.open(page)
    assert "No calls come in while it is disabled" in said and "Disabled: callers get 403." in said
    for untrue in ("stored as usual", "POST JSON here", "anybody who knows"):
        assert untrue not in said
    assert plain.api.delete(f"webhooks/{webhook['id']}").status == 204
    plain.open("/bin")
    said = plain.press("Restore Held and disabled")
    assert "Restored, as it was. Its URL leads to it again." in said


def typed_meanwhile(plain: Plain, patch: dict[str, Any]) -> dict[str, Any]:
    """A webhook whose settings are open, and are changed in another tab while a rate is typed in this one."""
    webhook = plain.webhook(name="Two tabs")
    plain.open(f"/webhooks/{webhook['id']}/settings")
    assert plain.api.patch(f"webhooks/{webhook['id']}", patch).status == 200
    plain.fill("Calls a second", "33")
    return webhook


def test_what_two_tabs_change_apart_from_each_other_is_both_saved(plain: Plain) -> None:
    """What the form does not show is not told."""
    patch = {"rateLimit": {"burst": 77}, "synchronousResponse": {"enabled": True}}
    webhook = typed_meanwhile(plain, patch)
    merged = "together with what somebody else changed meanwhile"
    assert merged in plain.press("Save")
    saved = plain.settings_of(webhook)
    assert saved["rateLimit"] == {"callsPerSecond": 33, "burst": 77}
    assert saved["synchronousResponse"]["enabled"] is True
    webhook = typed_meanwhile(plain, {"enabled": False})
    assert plain.api.post(f"webhooks/{webhook['id']}/enable").status == 200
    said = plain.press("Save")
    assert "Saved. It applies" in said and merged not in said
    assert plain.settings_of(webhook)["rateLimit"]["callsPerSecond"] == 33


def test_a_tab_that_is_saved_as_it_is_changes_no_number(plain: Plain) -> None:
    numbers = {
        "rateLimit": {"callsPerSecond": 0.4, "burst": 3},
        "duplicateProtection": {"enabled": True, "key": "header:X-Id", "windowSeconds": 600_001},
        "payloadLimitBytes": 1_000_001,
        "arrays": "whole",
        "historyRetentionDays": 3,
        "bodyRetentionDays": 0,
        "synchronousResponse": {"enabled": True, "timeoutSeconds": 2.5},
        "schedule": {"url": "https://example.com/", "every": "90m", "timeoutSeconds": 7.5, "enabled": False},
    }
    webhook = plain.webhook(name="Fractions", **numbers)

    def save(page: str, button: str) -> None:
        plain.open(f"/webhooks/{webhook['id']}/{page}")
        assert "Saved" in plain.press(button)

    save("settings", "Save")
    save("schedule", "Save the schedule")
    saved = plain.settings_of(webhook)
    assert {name: saved[name] for name in numbers} == {**numbers, "schedule": saved["schedule"]}
    assert (saved["schedule"]["every"], saved["schedule"]["timeoutSeconds"]) == ("90m", 7.5)
    for every in (90, "2 H"):
        plain.api.patch(f"webhooks/{webhook['id']}", {"schedule": {"every": every}})
        save("schedule", "Save the schedule")
        assert plain.settings_of(webhook)["schedule"]["every"] == every
    plain.open(f"/webhooks/{webhook['id']}/settings")
    plain.fill("Keep calls for days", "1.5")
    plain.press("Save", status=422)
    assert "write a whole number" in plain.text(".//p[@class='wrong']").lower()


def test_what_two_tabs_change_differently_is_shown_before_either_wins(plain: Plain) -> None:
    webhook = typed_meanwhile(plain, {"rateLimit": {"burst": 77, "callsPerSecond": 12}})
    plain.press("Save", status=412)
    assert "Somebody saved 12 meanwhile, and here it is 33" in plain.text(".//*[@class='wrong']")
    assert plain.field("At once").get("value") == "77"
    assert plain.settings_of(webhook)["rateLimit"]["callsPerSecond"] == 12
    plain.press("Save")
    assert plain.settings_of(webhook)["rateLimit"] == {"callsPerSecond": 33, "burst": 77}


def test_leaving_a_form_that_is_not_saved_asks_first(console: Console) -> None:
    webhook = console.webhook(name="Half typed")
    console.open(f"/webhooks/{webhook['id']}/settings#limits")
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    console.page.on("dialog", stay)
    console.page.get_by_label("Calls a second").fill("33")
    console.page.get_by_role("link", name="Overview").click(no_wait_after=True)
    wait_until(lambda: asked == ["beforeunload"] or console.page.evaluate("1") is None, what="the question")
    expect(console.page.get_by_label("Calls a second")).to_have_value("33")
    console.save()
    assert asked == ["beforeunload"]


def test_an_ended_session_gives_the_form_back_but_for_secrets(console: Console) -> None:
    webhook = console.webhook(name="Interrupted")
    console.open(f"/webhooks/{webhook['id']}/settings#authentication")
    console.page.get_by_label("Static token").check()
    console.page.get_by_text("Advanced settings").click()
    console.page.get_by_label("Auth header name", exact=True).fill("X-Shop-Key")
    console.page.get_by_label("Token", exact=True).fill("a secret that is typed")
    console.page.get_by_role("button", name="Show it").locator("visible=true").first.click()
    cookies = console.page.context.cookies()
    console.page.context.clear_cookies(name="postern_session")
    console.page.get_by_role("button", name="Save", exact=True).click()
    expect(console.page.get_by_text("what you typed is given back, but for secrets")).to_be_visible()
    assert "a secret that is typed" not in console.page.evaluate("JSON.stringify(sessionStorage)")
    assert console.violations() == []
    console.page.get_by_label("Name").fill("admin")
    console.page.get_by_label("Password").fill(PASSWORD)
    console.click("Sign in")
    expect(console.page.get_by_text("What you typed is here again")).to_be_visible()
    # What a choice does not enable is not sent.
    assert cookies and console.path == f"/webhooks/{webhook['id']}/settings"
    expect(console.page.get_by_label("Auth header name", exact=True)).to_have_value("X-Shop-Key")
    expect(console.page.get_by_label("Token", exact=True)).to_have_value("")
    console.save()
    assert console.settings_of(webhook)["authentication"]["headerName"] == "X-Shop-Key"


def test_a_secret_is_not_lost_by_choosing_none(plain: Plain) -> None:
    webhook = plain.webhook(name="Guarded", authentication={"method": "token", "token": "0123456789abcdef"})
    plain.open(f"/webhooks/{webhook['id']}/settings")
    plain.tick("None")
    plain.press("Save", status=422)
    assert "Tick that everybody may call" in plain.text(".//*[@class='wrong']")
    assert plain.settings_of(webhook)["authentication"]["method"] == "token"
    plain.tick("Delete the token that is set here")
    plain.press("Save")
    assert plain.settings_of(webhook)["authentication"]["method"] == "none"


def test_a_form_whose_webhook_was_deleted_meanwhile_leads_to_the_bin_and_gets_back_what_was_typed(
    console: Console,
) -> None:
    webhook = console.webhook(name="Deleted meanwhile")
    console.open(f"/webhooks/{webhook['id']}/settings#mapping")
    console.page.get_by_label("Field two").fill("customer.email")
    assert console.api.delete(f"webhooks/{webhook['id']}").status == 204
    console.page.get_by_role("button", name="Save").click()
    expect(console.page.get_by_text("Deleted meanwhile is in the bin")).to_be_visible()
    assert console.violations() == []
    console.click("Restore Deleted meanwhile")
    expect(console.page.get_by_text("Restored, as it was.")).to_be_visible()
    console.page.get_by_role("link", name="Settings", exact=True).last.click()
    expect(console.page.get_by_text("This was not saved. What you typed is here again")).to_be_visible()
    expect(console.page.get_by_label("Field two")).to_have_value("customer.email")
    console.save()
    assert console.settings_of(webhook)["fieldMapping"]["fieldTwo"] == "customer.email"


def test_what_a_locked_database_kept_from_being_saved_stays_where_it_was_typed(console: Console) -> None:
    webhook = console.webhook(name="Locked")
    console.open(f"/webhooks/{webhook['id']}/settings#mapping")
    console.page.get_by_label("Field two").fill("customer.email")
    reader = with_level(console.program, "read")
    assert reader.get("webhooks").status == 200
    database = sqlite3.connect(console.program.data_dir / "postern.db", isolation_level=None)
    try:
        # Last used more than a minute ago: that they are used is not noted now, which is no reason to refuse.
        database.execute("UPDATE sessions SET seen_at = seen_at - 120000")
        database.execute("UPDATE api_keys SET last_used_at = last_used_at - 120000")
        database.execute("BEGIN IMMEDIATE")
        console.click("Save")
        expect(console.page.locator(".save-bar")).to_contain_text("The database cannot be used now.")
        assert console.page.request.get(console.page.url).status == 200
        assert reader.get("webhooks").status == 200
        refused = console.api.patch(f"webhooks/{webhook['id']}", {"name": "Other"})
        assert refused.status == 503
        assert refused.json["detail"] == "The database cannot be used now. Nothing was changed."
        console.notes.check(but="the server responded with a status of 503")
    finally:
        database.close()
    expect(console.page.get_by_label("Field two")).to_have_value("customer.email")
    wait_until(lambda: console.program.is_ready(), what="the database to be there again")
    console.save()
    assert console.settings_of(webhook)["fieldMapping"]["fieldTwo"] == "customer.email"


def test_the_call_of_a_webhook_that_was_deleted_meanwhile_has_its_name_and_says_why_it_cannot_be_replayed(
    console: Console,
) -> None:
    webhook = console.webhook(name="Gone meanwhile")
    console.open(f"/calls/{console.called(webhook['url'])}")
    # While a call is under way its page follows it, and soon has no button any more.
    expect(console.page.locator("[hx-trigger='every 1s']")).to_have_count(0)
    assert console.api.delete(f"webhooks/{webhook['id']}").status == 204
    console.choose("Replay")
    expect(console.page.get_by_role("alert").get_by_text("Its webhook has been deleted")).to_be_visible()
    expect(console.page.get_by_text("Gone meanwhile (deleted)").first).to_be_visible()


def test_a_part_that_asks_again_stays_while_it_is_pressed(console: Console) -> None:
    page, webhook = console.page, console.webhook(name="Asks again")
    console.open(f"/webhooks/{webhook['id']}/ready")
    steps = page.locator("#steps[hx-trigger^=every]")
    steps.evaluate("one => (one.dataset.old = '')")
    steps.hover()
    page.mouse.down()
    page.evaluate("new Promise(is => document.addEventListener('htmx:finally:request', is, { once: true }))")
    expect(steps).to_have_attribute("data-old", "")
    page.mouse.up()
    expect(steps).not_to_have_attribute("data-old", "")
