"""What is typed into a form is judged at once: a secret in the page itself, a key and a path by the last calls."""

import json
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from postern import presets
from postern.usecases.signatures import senders
from surfaces.console.conftest import Console

TRIED = [
    "",
    *["whsec_abc", "sk_live_1", "xoxb-1", "<>", "shpat_1", "lin_api_1", "ghp_1"],
    "0123456789abcdef" * 2,
]


def sentence(page: Page, field: str) -> Any:
    return expect(page.locator(f"#judged-{field}"))


def test_a_pasted_secret_is_judged_and_stays_in_the_page(console: Console) -> None:
    page = console.page
    console.open("/webhooks/new/signed?provider=stripe")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    field = page.get_by_label("Signing secret")
    for typed, said in (
        ("sk_live_0123", "This looks like an API key of Stripe, which is not the signing secret."),
        ("0123", "It does not look like a signing secret of Stripe: they begin with whsec_."),
        (" whsec_0123 ", "It looks like a signing secret of Stripe."),
    ):
        field.fill(typed)
        sentence(page, "secret").to_have_text(said)
    field.blur()
    expect(field).to_have_value("whsec_0123")
    sentence(page, "secret").to_contain_text("The blanks around it were left out.")
    assert console.violations() == []
    assert [one for one in asked if "/static/" not in one] == []
    field.fill("sk_live_0123")
    console.click("Create webhook")
    expect(page.get_by_text("this looks like an API key of Stripe")).to_be_visible()


def test_the_browser_judges_as_the_gateway_does(console: Console) -> None:
    page = console.page
    console.open("/webhooks/new/signed?provider=stripe")
    field = page.get_by_label("Signing secret")
    field.fill("x")  # the script is there
    sentence(page, "secret").to_be_visible()
    forms, expected = [], []
    for name in senders.names():
        form = senders.about(name).secret.form
        shown = {
            "pattern": form.pattern,
            "like": form.like,
            "unlike": form.unlike,
            "others": [{"pattern": one.pattern, "sentence": one.sentence} for one in form.others],
        }
        forms.append(json.dumps(shown))
        fits = form.like if form.pattern else ""
        expected.append(["" if not secret else presets.problem_of(name, secret) or fits for secret in TRIED])
    typed = """(field, [forms, secrets]) => forms.map((form) => {
        field.dataset.secretForm = form;
        return secrets.map((secret) => {
            field.value = secret;
            field.dispatchEvent(new Event("input", { bubbles: true }));
            return document.getElementById("judged-secret").textContent;
        });
    })"""
    assert field.evaluate(typed, [forms, TRIED]) == expected
    speaking = [told for told in expected if any(told)]  # of the others a secret is any text
    assert len({sentence for told in speaking for sentence in told}) > len(speaking) > 20


def test_the_sender_that_is_chosen_is_the_one_that_is_meant(console: Console) -> None:
    page = console.page
    webhook = console.webhook(authentication={"method": "token", "token": "a token of the tests"})
    console.open(f"/webhooks/{webhook['id']}/settings#authentication")
    page.get_by_text("Replace at once").click()
    page.get_by_label("New main secret").fill("short")
    sentence(page, "secret").to_have_text("Short enough to be guessed: 16 characters or more are safe.")
    page.get_by_label("HMAC SHA-256").check()
    page.get_by_label("Signature provider").select_option("slack")
    page.get_by_label("Signing secret", exact=True).fill("pdl_ntfset_1")
    sentence(page, "newSigningSecret").to_contain_text("of Slack")
    page.locator("[data-eye=newSigningSecret]").click()
    expect(page.get_by_label("Signing secret", exact=True)).to_have_attribute("type", "text")
    page.get_by_label("Signature provider").select_option("paddle")
    sentence(page, "newSigningSecret").to_have_text("It looks like a signing secret of Paddle.")


@pytest.mark.parametrize("field", ["secret", "second"])
def test_blanks_around_a_secret_are_not_saved(console: Console, field: str) -> None:
    """Also without a script."""
    webhook = console.webhook(authentication={"method": "hmac", "provider": "stripe", "secret": "whsec_0123"})
    page = console.page
    sent = page.request.post(
        f"{console.program.url}/webhooks/{webhook['id']}/settings/secret",
        form={field: " whsec_4567\r\n", "understood": "on"},
        headers={"Origin": console.program.url},
    )
    assert sent.ok, sent.text()
    assert console.api.get(f"webhooks/{webhook['id']}").json["warnings"] == []


def test_a_key_is_tried_on_the_last_calls(console: Console) -> None:
    page = console.page
    webhook = console.webhook()
    assert console.call(webhook["url"], {"order": {"id": 7}}, X_Event_Id="evt_1")[0] == 200
    console.open(f"/webhooks/{webhook['id']}/settings#duplicates")
    tried = expect(page.locator("#tried-key"))
    key = page.get_by_label("Recognise a call by")
    for typed, message in (
        ("X-Event-Id", "Not in the last call, which has header:X-Event-Id."),
        ("header:X-Event-Id", "Found in the last call: evt_1"),
        ("order.id", "Found in the last call: 7"),
        ("$.order.id", "Write it without $ in front, like customer.email."),
        ("", ""),
    ):
        key.fill(typed)
        tried.to_have_text(message)
    key.fill("https://example.com")
    console.click("Save")
    expect(page.locator(".wrong:visible")).to_contain_text("his is an address")
