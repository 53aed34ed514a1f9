"""A webhook's own target is set on its settings' page, and what is secret of it stays so."""

from playwright.sync_api import expect

from surfaces.console.conftest import Console


def test_a_target_is_set_corrected_revealed_and_taken_away(console: Console) -> None:
    webhook = console.webhook(name="Aimed")
    console.open(f"/webhooks/{webhook['id']}/settings#where-it-goes")
    console.page.get_by_text("To a program of your own instead").click()
    console.page.locator("[name='target.url']").fill("https://erp.example.com/in")
    console.page.locator("[name='target.forward']").select_option("original")
    console.page.locator("[name='target.headers']").fill("X-Key: very secret\nX-About: {fieldFive}")
    console.click("Save")
    expect(console.page.get_by_text("there is no {fieldFive}")).to_be_visible()
    console.page.locator("[name='target.headers']").fill("X-Key: very secret\nX-About: {fieldOne}")
    console.save()
    target = console.settings_of(webhook)["target"]
    assert (target["url"], target["forward"], target["headers"]) == (
        "https://erp.example.com/in",
        "original",
        ["X-About", "X-Key"],
    )
    console.open(f"/webhooks/{webhook['id']}/settings#where-it-goes")
    expect(console.page.locator("[name='target.headers']")).to_have_value("X-About\nX-Key")
    expect(console.page.get_by_text("gets its calls, and no workflow does")).to_be_visible()
    expect(console.page.get_by_text("No workflow wants its calls")).to_have_count(0)
    console.open(f"/webhooks/{webhook['id']}")
    expect(console.page.get_by_text("gets its calls, and no workflow does")).to_be_visible()
    console.open(f"/webhooks/{webhook['id']}/settings#where-it-goes")
    console.click("Reveal the key")
    expect(console.page.locator("#target-key")).to_contain_text("whsec_")
    console.page.locator("[name='target.headers']").fill("X-Key")
    console.save()
    assert console.settings_of(webhook)["target"]["headers"] == ["X-Key"]
    console.open(f"/webhooks/{webhook['id']}/settings#where-it-goes")
    console.page.locator("[name='target.url']").fill("")
    console.save()
    assert console.settings_of(webhook)["target"] is None
