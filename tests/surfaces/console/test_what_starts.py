"""Conditions are made of recorded calls, tried on them, and saved with the rest of a webhook's settings."""

from playwright.sync_api import expect

from surfaces.console.conftest import Console


def test_rows_are_made_by_clicking_values_and_tried_before_they_are_saved(console: Console) -> None:
    webhook = console.webhook(name="Choosy")
    for status, total in (("paid", 150), ("paid", 80), ("open", 150)):
        console.call(webhook["url"], {"status": status, "order": {"total": total}}, X_Event_Type="order")
    console.open(f"/webhooks/{webhook['id']}/settings#what-starts")
    expect(console.page.locator(".condition")).to_be_hidden()  # until one is added, or a value is chosen
    console.page.get_by_text("Choose from the last calls").click()
    choices = console.page.locator("#row-choices")
    choices.get_by_role("button", name="order, 3 calls").click()
    expect(console.page.locator("#tried-rows")).to_contain_text(
        "0 of the last 3 calls would not have started."
    )
    choices.get_by_role("button", name="open", exact=True).click()
    expect(console.page.locator("#tried-rows")).to_contain_text(
        "2 of the last 3 calls would not have started."
    )
    console.page.locator("[name='conditions.1.is']").select_option(label="is not one of")
    expect(console.page.locator("#tried-rows")).to_contain_text(
        "1 of the last 3 calls would not have started."
    )
    console.page.locator("[name='conditions.2.of']").fill("order.total")
    console.page.locator("[name='conditions.2.is']").select_option(label="is greater than")
    expect(console.page.locator("#tried-rows")).to_contain_text("line 3, values: write one number")
    console.page.locator("[name='conditions.2.values']").fill("100")
    console.page.locator("[name='conditions.2.values']").blur()
    expect(console.page.locator("#tried-rows")).to_contain_text(
        "2 of the last 3 calls would not have started."
    )
    console.page.get_by_text("The newest that would not have started").click()
    expect(console.page.locator("#tried-rows")).to_contain_text("row 3: order.total is 80")
    console.save()
    assert [(one["of"], one["is"], one["values"]) for one in console.settings_of(webhook)["conditions"]] == [
        ("event", "oneOf", ["order"]),
        ("status", "notOneOf", ["open"]),
        ("order.total", "greater", ["100"]),
    ]
    console.page.locator("[name='conditions.0.of']").fill("")
    console.page.locator("[name='conditions.1.of']").fill("$.status")
    console.click("Save")
    expect(console.page.get_by_text("Write it without $ in front")).to_be_visible()
    assert len(console.settings_of(webhook)["conditions"]) == 3


def test_a_condition_is_begun_at_a_recorded_call_and_a_filtered_one_is_started_by_hand(
    console: Console,
) -> None:
    webhook = console.webhook(name="Begun")
    call = console.called(webhook["url"], {"sender": {"login": "my-bot"}}, X_Topic="orders/paid")
    console.open(f"/calls/{call}?show=tree")
    console.page.get_by_role("button", name="my-bot").click()
    console.page.get_by_role("button", name="Start only calls with it").click()
    expect(console.page.locator("[name='conditions.0.of']")).to_have_value("sender.login")
    expect(console.page.locator("[name='conditions.0.values']")).to_have_value("my-bot")
    console.page.locator("[name='conditions.0.is']").select_option(label="is not one of")
    console.save()
    console.open(f"/calls/{call}?show=headers")
    console.page.locator("tr", has_text="orders/paid").get_by_role("link").click()
    expect(console.page.locator("[name='conditions.1.of']")).to_have_value("header:x-topic")
    filtered = console.called(webhook["url"], {"sender": {"login": "my-bot"}})
    console.open(f"/calls/{filtered}")
    expect(console.page.get_by_text("Not started: row 1: sender.login is")).to_be_visible()
    console.click("Start it")
    expect(console.page.get_by_text("started it by hand")).to_be_visible()
