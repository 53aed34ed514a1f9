"""From nothing to a working webhook, by each of the five answers."""

import re

from playwright.sync_api import expect

from surfaces.console.conftest import Console, stripe_signature


def answer(console: Console, title: str) -> None:
    console.open("/webhooks/new")
    console.page.get_by_role("link", name=re.compile(re.escape(title))).click()


def made(console: Console) -> str:
    """The new webhook's id."""
    console.page.wait_for_url("**/ready*")
    return console.path.split("/")[2]


def test_an_automation_tool_gets_a_token_and_a_curl_that_works(console: Console) -> None:
    answer(console, "An automation tool or custom code")
    console.page.get_by_label("Name").fill("My tool")
    console.click("Create webhook")
    webhook = console.api.get(f"webhooks/{made(console)}").json
    assert webhook["authentication"]["placement"] == "header"
    curl = console.page.get_by_label("curl", exact=True).inner_text()
    token = re.search(r"X-Api-Key: (whk_[\w-]{43})", curl)
    assert token is not None and webhook["url"] in curl
    assert console.call(webhook["url"], {"orderNumber": "1001"}, X_Api_Key=token[1])[0] == 200
    assert console.call(webhook["url"], {"orderNumber": "1001"}, X_Api_Key="guess")[0] == 401
    console.click("Python")
    expect(console.page.get_by_label("Python", exact=True)).to_contain_text("HTTPConnection")
    console.page.reload()  # it is shown once, and the form is not sent again
    expect(console.page.get_by_label("curl", exact=True)).to_contain_text("X-Api-Key: YOUR_TOKEN")
    expect(console.page.get_by_role("heading", level=1)).to_have_text("My tool is created")
    assert token[1] not in console.page.content()
    assert len(console.api.get("webhooks?search=My%20tool").json["items"]) == 1


def test_the_first_call_appears_while_its_page_is_open(console: Console) -> None:
    answer(console, "An automation tool or custom code")
    console.click("Create webhook")
    webhook = console.api.get(f"webhooks/{made(console)}").json
    expect(console.page.get_by_text("Nothing has come yet")).to_be_visible()
    console.call(webhook["url"], {})
    expect(console.page.locator("[data-live] tr")).to_contain_text("Rejected")
    expect(console.page.get_by_text("Nothing has come yet")).to_be_hidden()


def test_a_signing_service_is_found_by_searching_and_needs_one_secret(console: Console) -> None:
    answer(console, "A service that signs its webhooks")
    console.page.get_by_label("Search services").fill("shop")
    expect(console.page.get_by_role("link", name="Stripe")).to_be_hidden()
    console.page.get_by_role("link", name="Shopify").click()
    expect(console.page.get_by_text("Shopify admin > Settings")).to_be_visible()
    console.page.get_by_label("Signing secret").fill("a shop's secret")
    console.click("Create webhook")
    webhook = console.api.get(f"webhooks/{made(console)}").json
    assert webhook["authentication"]["provider"] == "shopify"
    assert webhook["duplicateProtection"]["enabled"] is True
    assert console.sold(webhook, b'{"id": 1}', "a shop's secret")[0] == 200
    assert "a shop's secret" not in console.page.content()


def test_a_sender_that_sends_again_for_weeks_gets_the_longest_window(console: Console) -> None:
    console.open("/webhooks/new/signed?provider=adyen")
    console.page.get_by_label("Signing secret").fill("0A" * 32)
    console.click("Create webhook")
    protection = console.api.get(f"webhooks/{made(console)}").json["duplicateProtection"]
    assert protection["windowSeconds"] == 7 * 86_400


def test_a_sender_that_wants_the_url_first_gets_its_secret_afterwards(console: Console) -> None:
    console.webhook(name="shopify")
    answer(console, "A service that signs its webhooks")
    console.page.get_by_role("link", name="Shopify").click()
    console.click("Create webhook")
    webhook = console.api.get(f"webhooks/{made(console)}").json
    assert re.fullmatch(r"Shopify \d", webhook["name"]), "another one is called shopify"
    console.page.get_by_text("Only this machine can reach it").click()
    expect(console.page.get_by_text("start a tunnel")).to_be_visible()
    _, rejected = console.sold(webhook, b'{"id":2}', "came later")

    # Wherever one comes back to, it is still asked for.
    console.open("/webhooks")
    row = console.page.get_by_role("row", name=webhook["name"])
    row.get_by_role("link", name="Paste Shopify's secret").click()
    expect(console.page.get_by_text("matched 0 calls")).to_be_hidden()
    expect(console.page.get_by_text("Shopify's signing secret is not set yet")).to_be_visible()
    console.open(f"/calls/{rejected}")
    expect(console.page.get_by_text("Shopify's secret is not set here yet")).to_be_visible()
    expect(console.page.get_by_role("link", name="Set the secret")).to_be_visible()
    for path in ("", "/settings", "/ready"):
        console.open(f"/webhooks/{webhook['id']}{path}")
        expect(console.page.locator("#secrets").get_by_label("Signing secret")).to_be_visible()

    console.page.get_by_label("Signing secret").fill("came later")
    console.click("Save the signing secret")
    console.page.wait_for_url("**/settings*")
    assert console.sold(webhook, b'{"id":2}', "came later")[0] == 200
    for path in ("/webhooks", f"/webhooks/{webhook['id']}", f"/webhooks/{webhook['id']}/ready"):
        console.open(path)
        expect(console.page.get_by_text("Paste Shopify's secret")).to_be_hidden()


def test_a_browser_script_gets_cors_and_a_fetch_that_works_from_its_page(console: Console, shop: str) -> None:
    answer(console, "A browser or storefront script")
    console.page.get_by_label("Sites whose pages may call").fill(shop)
    console.click("Create webhook")
    webhook = console.api.get(f"webhooks/{made(console)}").json
    assert webhook["cors"] == {"enabled": True, "origins": [shop]}
    snippet = console.page.get_by_label("fetch snippet", exact=True).inner_text()
    console.page.goto(shop)
    with console.page.expect_console_message() as message:
        console.page.evaluate(f"async () => {{ {snippet} }}")
    answered = message.value.args[0].json_value()
    assert answered["status"] == "accepted"
    call = console.api.get(f"invocations/{answered['invocationId']}").json
    assert call["payload"] == {"email": "ada@example.com"}


def test_a_service_is_found_by_a_call_that_it_has_sent(console: Console) -> None:
    answer(console, "A service that signs its webhooks")
    pasted = f"Stripe-Signature: {stripe_signature('any', b'{}')}\n\n{{}}"
    console.page.get_by_label("A call it has sent").fill(pasted)
    console.click("Find the service")
    expect(console.page.get_by_role("heading", name="It looks like Stripe")).to_be_visible()
    console.page.locator("#found").get_by_role("link", name="Stripe").click()
    expect(console.page.get_by_label("Signing secret")).to_be_visible()
    webhook = console.webhook(name="Unsure", authentication={"method": "token", "token": "a token of mine"})
    console.open(f"/calls/{console.sold(webhook, b'{}')[1]}")
    console.click("Which service signed it?", "link")
    expect(console.page.get_by_role("heading", name="It looks like Shopify")).to_be_visible()
    console.open("/webhooks/new/signed")
    console.page.get_by_label("A call it has sent").fill("Content-Type: application/json")
    console.click("Find the service")
    expect(console.page.get_by_text("No built-in service sends calls like this one")).to_be_visible()


def test_a_schedule_is_set_on_the_tab_that_opens_next(console: Console) -> None:
    answer(console, "Nothing; runs on a schedule")
    console.page.get_by_label("Name").fill("Stock")
    console.page.get_by_label("Source URL").fill("ftp://api.example.com/stock.json")
    console.click("Continue to the schedule")
    expect(console.page.get_by_label("Source URL")).to_have_attribute("aria-invalid", "true")
    console.page.get_by_label("Source URL").fill("https://api.example.com/stock.json")
    console.click("Continue to the schedule")
    console.page.wait_for_url(re.compile(r"/webhooks/wh_\w+/schedule"))
    webhook = console.path.split("/")[2]
    assert console.api.get(f"webhooks/{webhook}").json["scheduleState"]["inWords"] == "every 15 minutes"
    console.page.get_by_label("Timer interval", exact=True).fill("2")
    console.page.get_by_label("Unit").select_option("h")
    console.click("Save the schedule")
    expect(console.page.get_by_text("Every 2 hours")).to_be_visible()
    saved = console.api.get(f"webhooks/{webhook}").json["schedule"]
    assert saved["url"] == "https://api.example.com/stock.json"
    assert saved["onlyWhenChanged"] is False  # each fetch starts the workflow, as everywhere else


def test_everything_else_chooses_its_method(console: Console) -> None:
    answer(console, "Other, or decide later")
    console.page.get_by_label("Name").fill("Test only")
    console.page.get_by_label("None").check()
    console.click("Create webhook")
    webhook = console.api.get(f"webhooks/{made(console)}").json
    assert webhook["authentication"] == {"method": "none"}
    assert console.call(webhook["url"], {"a": 1})[0] == 200
