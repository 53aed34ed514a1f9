"""Send a test call: from an empty gateway to a verified, mapped call without leaving the browser."""

import re

from playwright.sync_api import expect

from surfaces.console.conftest import Console, Plain


def test_another_event_another_body_and_what_is_wrong(console: Console) -> None:
    webhook = console.shop("Shop")
    console.open(f"/webhooks/{webhook['id']}")
    console.page.get_by_role("link", name="Send a test call").click()
    page, result = console.page, console.page.locator("#test-result")
    page.get_by_label("Event", exact=True).select_option("products/update")
    body = page.locator('fieldset[data-when="event:products/update"] textarea')
    expect(body).to_be_visible()  # as soon as the page's script has seen which event it is
    expect(body).to_have_value(re.compile("Green tea"))
    body.fill('{"id": {number}, "title": "Black tea"}')
    console.click("Send it")
    expect(result).to_contain_text("Accepted, answered 200")
    (item,) = console.api.get(f"invocations?webhookId={webhook['id']}").json["items"]
    shown = console.api.get(f"invocations/{item['id']}").json
    assert re.fullmatch(r'\{"id": \d{12}, "title": "Black tea"\}', shown["body"])
    assert dict(shown["headers"])["x-shopify-topic"] == "products/update"

    page.get_by_label("What is wrong with it").select_option("secret")
    console.click("Send it")
    expect(result).to_contain_text("another secret")
    assert len(console.api.get(f"invocations?webhookId={webhook['id']}").json["items"]) == 2
    page.get_by_label("What is wrong with it").select_option("stale")
    console.click("Send it")
    expect(result).to_contain_text("signs no time")
    assert console.violations() == []


def test_it_works_without_javascript(plain: Plain) -> None:
    token = {"method": "token", "token": "a token of its own"}
    plain.open(f"/webhooks/{plain.webhook(name='Plain', authentication=token)['id']}/calls")
    plain.fill("Body", '{"typed": "here"}')
    assert "here" in plain.press("Send it") and plain.path.startswith("/calls/inv_")


def test_a_secret_that_is_awaited_is_asked_for_first(plain: Plain) -> None:
    awaited = {"method": "hmac", "provider": "slack", "secret": {"generate": True}}
    plain.open(f"/webhooks/{plain.webhook(name='Later', authentication=awaited)['id']}/calls")
    assert "Slack's secret has not been set yet" in plain.text(".//*[@id='test-call']")
    assert not plain.named("Send it", "button")
