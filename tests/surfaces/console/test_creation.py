"""From nothing to a working webhook, by each of the five answers."""

import re
from typing import Any

from playwright.sync_api import expect

from surfaces.console.conftest import Console, Plain, stripe_signature
from surfaces.console.plain import words


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


def test_a_sender_that_sends_again_for_weeks_gets_the_longest_window(plain: Plain) -> None:
    plain.open("/webhooks/new/signed?provider=adyen")
    plain.fill("Signing secret", "0A" * 32)
    assert created(plain)["duplicateProtection"]["windowSeconds"] == 7 * 86_400


def created(plain: Plain) -> dict[str, Any]:
    """By the form that is filled in."""
    plain.press("Create webhook")
    assert "/ready" in plain.path
    return dict(plain.api.get(f"webhooks/{plain.path.split('/')[2]}").json)


def asked(plain: Plain, title: str) -> None:
    """The answer with this title to what will call is chosen."""
    plain.open("/webhooks/new")
    plain.open(next(one.attrib["href"] for one in plain.root.iter("a") if title in words(one)))


def test_a_sender_that_wants_the_url_first_gets_its_secret_afterwards(plain: Plain) -> None:
    plain.webhook(name="shopify")
    plain.open("/webhooks/new/signed?provider=shopify")
    webhook = created(plain)
    page = f"/webhooks/{webhook['id']}"
    assert re.fullmatch(r"Shopify \d", webhook["name"]), "another one is called shopify"
    assert "Only this machine can reach it" in plain.text() and "start a tunnel" in plain.text()
    _, rejected = plain.sold(webhook, b'{"id":2}', "came later")
    # Wherever one comes back to, it is still asked for.
    plain.open("/webhooks")
    said = plain.follow("Paste Shopify's secret")
    assert page in plain.path and "matched 0 calls" not in said
    assert "Shopify's signing secret is not set yet" in said
    said = plain.open(f"/calls/{rejected}")
    assert "Shopify's secret is not set here yet" in said and plain.named("Set the secret", "a")
    for path in ("", "/settings", "/ready"):
        plain.open(page + path)
        assert plain.count(".//*[@id='secrets']") == 1
        plain.fill("Signing secret", "came later")
    plain.press("Save the signing secret")
    assert plain.path.startswith(f"{page}/settings")
    assert plain.sold(webhook, b'{"id":2}', "came later")[0] == 200
    for path in ("/webhooks", page, f"{page}/ready"):
        assert "Paste Shopify's secret" not in plain.open(path)


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


def test_a_service_is_found_by_a_call_that_it_has_sent(plain: Plain) -> None:
    asked(plain, "A service that signs its webhooks")
    plain.fill("A call it has sent", f"Stripe-Signature: {stripe_signature('any', b'{}')}\n\n{{}}")
    assert "It looks like Stripe" in plain.press("Find the service")
    assert "Stripe" in plain.text(".//*[@id='found']//a")
    webhook = plain.webhook(name="Unsure", authentication={"method": "token", "token": "a token of mine"})
    plain.open(f"/calls/{plain.sold(webhook, b'{}')[1]}")
    assert "It looks like Shopify" in plain.follow("Which service signed it?")
    plain.open("/webhooks/new/signed")
    plain.fill("A call it has sent", "Content-Type: application/json")
    assert "No built-in service sends calls like this one" in plain.press("Find the service")


def test_a_schedule_is_set_on_the_tab_that_opens_next(plain: Plain) -> None:
    asked(plain, "Nothing; runs on a schedule")
    plain.fill("Name", "Stock")
    plain.fill("Source URL", "ftp://api.example.com/stock.json")
    plain.press("Continue to the schedule", status=422)
    assert plain.field("Source URL").get("aria-invalid") == "true"
    plain.fill("Source URL", "https://api.example.com/stock.json")
    plain.press("Continue to the schedule")
    found = re.match(r"/webhooks/(wh_\w+)/schedule", plain.path)
    assert found is not None
    assert plain.api.get(f"webhooks/{found[1]}").json["scheduleState"]["inWords"] == "every 15 minutes"
    plain.fill("Timer interval", "2")
    plain.fill("Unit", "h")
    assert "Every 2 hours" in plain.press("Save the schedule")
    saved = plain.api.get(f"webhooks/{found[1]}").json["schedule"]
    assert saved["url"] == "https://api.example.com/stock.json"
    assert saved["onlyWhenChanged"] is False  # each fetch starts the workflow, as everywhere else


def test_everything_else_chooses_its_method(plain: Plain) -> None:
    asked(plain, "Other, or decide later")
    plain.fill("Name", "Test only")
    plain.tick("None")
    webhook = created(plain)
    assert webhook["authentication"] == {"method": "none"}
    assert plain.call(webhook["url"], {"a": 1})[0] == 200
