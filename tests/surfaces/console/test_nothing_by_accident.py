"""What costs something says so first, and what is lost by mistake can be had back."""

from playwright.sync_api import expect

from surfaces.console.conftest import Console


def test_a_deletion_says_what_follows_wants_the_name_and_can_be_undone(console: Console) -> None:
    webhook = console.webhook(name="Wholesale orders")
    for _ in range(3):
        assert console.call(webhook["url"])[0] == 200
    console.open(f"/webhooks/{webhook['id']}")
    console.click("More actions")
    console.click("Delete…", "link")
    dialog = console.page.get_by_role("dialog", name="Delete Wholesale orders?")
    expect(dialog.get_by_text("3 calls came in the last 24 hours.")).to_be_visible()
    assert console.violations() == []
    dialog.get_by_label("Type its name").fill("Wholesale")
    dialog.get_by_role("button", name="Delete the webhook").click()
    expect(dialog).to_be_visible()
    assert console.call(webhook["url"])[0] == 200

    dialog.get_by_label("Type its name").fill("Wholesale orders")
    dialog.get_by_role("button", name="Delete the webhook").click()
    console.page.wait_for_url("**/webhooks?undo=*")
    assert console.call(webhook["url"])[0] == 404
    assert console.violations() == []
    console.click("Restore Wholesale orders")
    expect(console.page.get_by_text("Restored, as it was.")).to_be_visible()
    assert console.call(webhook["url"])[0] == 200


def test_a_server_that_is_sent_another_name_deletes_nothing(console: Console) -> None:
    webhook = console.webhook(name="Kept")
    console.open(f"/webhooks/{webhook['id']}/confirm/delete")
    console.page.evaluate("document.getElementById('answer').noValidate = true")
    console.page.get_by_label("Type its name").fill("Something else")
    console.click("Delete the webhook")
    expect(console.page.get_by_text("Type the name as it is: Kept")).to_be_visible()
    assert console.violations() == []
    assert console.call(webhook["url"])[0] == 200


def test_the_bin_gives_back_and_empties(console: Console) -> None:
    one, other = console.webhook(name="Come back"), console.webhook(name="Go away")
    for webhook in (one, other):
        console.api.delete(f"webhooks/{webhook['id']}")
    console.open("/webhooks")
    console.page.get_by_role("link", name="Bin (").click()
    assert console.violations() == []
    console.page.get_by_role("row", name="Go away").get_by_role("link", name="Delete for good…").click()
    dialog = console.page.get_by_role("dialog", name="Delete Go away for good?")
    dialog.get_by_label("Type its name").fill("Go away")
    dialog.get_by_role("button", name="Delete it for good").click()
    expect(console.page.get_by_text("Deleted for good.")).to_be_visible()
    assert other["id"] not in [item["id"] for item in console.api.get("bin").json["items"]]
    console.click("Restore Come back")
    expect(console.page.get_by_text("Restored, as it was.")).to_be_visible()
    assert console.call(one["url"])[0] == 200


def test_disabling_says_who_would_notice_and_offers_to_hold(console: Console) -> None:
    webhook = console.webhook(name="Busy")
    assert console.call(webhook["url"])[0] == 200
    console.open(f"/webhooks/{webhook['id']}")
    console.click("Disable…", "link")
    expect(console.page.get_by_text("1 call came in the last 24 hours.")).to_be_visible()
    console.click("Leave it enabled", "link")
    expect(console.page.get_by_role("dialog")).to_be_hidden()
    console.click("Disable…", "link")
    console.click("Hold instead")
    expect(console.page.get_by_text("On hold: calls are checked")).to_be_visible()
    assert console.call(webhook["url"])[0] == 200
