"""From a rejected call to an accepted one, and everything that can be done with a recorded call."""

import hmac
import json
import re
import time
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from support.stored import rows
from surfaces.console.conftest import ROOT, Console, Outside, Plain, stripe_signature

BODY = b'{"id":"evt_1","type":"charge.succeeded","data":{"object":{"id":"ch_1","amount":10.00}}}'

NASTY = [
    "<script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "{{7*7}}${7*7}",
    "<svg/onload=document.title='owned'>",
    "</pre></div><iframe srcdoc='<p>'></iframe>",
    "javascript:document.title='owned'",
]


def test_a_wrongly_signed_stripe_call_is_diagnosed_fixed_and_admitted(console: Console) -> None:
    """The webhook was made for the wrong sender: the inspector sees whose signature it is."""
    webhook = console.webhook(
        name="Payments", authentication={"method": "hmac", "provider": "generic", "secret": "whsec_right"}
    )
    console.open(f"/webhooks/{webhook['id']}/calls?live=1")
    expect(console.page.get_by_text("Listening")).to_be_visible()
    status, answer = console.call(
        webhook["url"], BODY, Stripe_Signature=stripe_signature("whsec_right", BODY)
    )
    assert status == 401
    row = console.page.locator(f"#call-{answer['invocationId']}")
    row.get_by_role("link").click()
    call = console.page.locator("[data-panel]")
    expect(call.get_by_text("It would verify if…")).to_be_visible()
    remedy = call.locator(".remedy", has_text="Stripe")
    remedy.get_by_role("button", name="Apply").click()
    expect(console.page.get_by_text("The fix is applied.")).to_be_visible()
    assert console.api.get(f"webhooks/{webhook['id']}").json["authentication"]["provider"] == "stripe"
    console.click("Check again and admit")
    expect(console.page.get_by_text("Admitted: the call was checked again")).to_be_visible()
    again = console.call(webhook["url"], BODY, Stripe_Signature=stripe_signature("whsec_right", BODY))
    assert again[0] == 200


def test_a_value_is_mapped_by_clicking_it(console: Console) -> None:
    webhook = console.webhook(name="Mapped")
    console.call(webhook["url"], {"customer": {"e.mail": "ada@example.com"}, "total": 12.5})
    console.open(f"/webhooks/{webhook['id']}/settings#mapping")
    console.page.get_by_role("button", name="ada@example.com").click()
    console.page.get_by_role("button", name="12.5").click()
    expect(console.page.locator("#slots")).to_contain_text("12.5")
    console.click("Undo fieldTwo")
    expect(console.page.get_by_label("Field two")).to_have_value("")
    console.page.evaluate("scrollTo(0, 200)")
    console.save()
    saved = console.settings_of(webhook)["fieldMapping"]
    assert (saved["fieldOne"], saved["fieldTwo"]) == ("customer.e\\.mail", None)
    expect(console.page.locator("#slots")).to_contain_text("ada@example.com")
    assert console.page.evaluate("[scrollY, document.activeElement.textContent.trim()]") == [200, "Save"]


def test_a_mapping_is_made_from_what_was_accepted_not_from_what_strangers_send(plain: Plain) -> None:
    token = {"method": "token", "token": "a token"}
    webhook = plain.webhook(name="Not theirs", authentication=token, fieldMapping={"fieldOne": "n"})
    page, slots = f"/webhooks/{webhook['id']}/settings", ".//*[@id='slots']"
    plain.call(webhook["url"], {"n": "a stranger's"})
    assert "No call has been accepted yet: this one was rejected" in plain.open(page)
    assert "a stranger's" in plain.text(slots)
    plain.call(webhook["url"], {"n": "the sender's"}, X_Api_Key="a token")
    plain.call(webhook["url"], {"n": "a stranger's"})
    assert "No call has been accepted yet" not in plain.open(page)
    assert "the sender's" in plain.text(slots)


def test_the_four_values_follow_what_is_typed(console: Console) -> None:
    webhook = console.webhook(name="Typed")
    console.call(webhook["url"], b'{"total": 10.00, "items": [{"sku": "TEA"}]}')
    console.open(f"/webhooks/{webhook['id']}/settings#mapping")
    for typed, said in (
        ("total", "10.00"),
        ("items[0].sku", "TEA"),
        ("nowhere", "nothing there"),
        ("$.total", "Write it without $ in front"),
    ):
        console.page.get_by_label("Field one").fill(typed)
        expect(console.page.locator("#slots")).to_contain_text(said)


def test_what_strangers_send_is_only_ever_text(console: Console) -> None:
    webhook = console.webhook(name="Attacked")
    body = json.dumps({"a": NASTY} | dict.fromkeys(NASTY, 1)).encode()
    headers = {f"X_Note_{n}": text for n, text in enumerate(NASTY)}
    query = "?" + urlencode([("q", text) for text in NASTY])
    call = console.called(webhook["url"] + query, body, **headers)
    for path, seen in (
        *((f"/calls/{call}?show={show}", ".sent") for show in ("tree", "headers", "query")),
        (f"/webhooks/{webhook['id']}/settings#mapping", "#slots"),
        (f"/webhooks/{webhook['id']}/calls?live=1", "[data-panel] .trace"),
    ):
        console.open(path)
        if path.endswith("live=1"):
            console.page.locator("table.calls a.opens").first.click()
        expect(console.page.locator(seen)).to_be_visible()
        if seen == ".sent":
            expect(console.page.locator(seen)).to_contain_text(NASTY[0])
        assert console.page.title() != "owned"
        assert console.page.locator("main iframe, main script, main img").count() == 0


def test_a_secret_is_changed_over_and_promoted(plain: Plain) -> None:
    webhook = plain.webhook(name="Rotated", authentication={"method": "token", "token": "the old token"})
    page, promoted = f"/webhooks/{webhook['id']}/settings", "The second secret is now the main one."

    def heard(token: str) -> int:
        return plain.call(webhook["url"], {}, X_Api_Key=token)[0]

    plain.open(page)
    plain.fill("Second valid secret", "the new token")
    assert "Two secrets are valid" in plain.press("Save the second secret")
    assert (heard("the old token"), heard("the new token")) == (200, 200)
    said = plain.open(page)
    wait = r"Wait until no call has used the main one for an hour: in (1 hour|5\d minutes) at the earliest\."
    assert re.search(wait, said) and "safe to promote" not in said
    said = plain.press("Promote the second secret now", status=409)
    assert "the main secret was used or set within the last hour" in said
    passed(plain, hours=3)
    assert heard("the new token") == 200
    sentence = "No call has used the main secret for 3 hours; 2 have used the second. The sender has changed over: safe to promote."
    assert sentence in plain.open(page)
    assert promoted in plain.press("Promote the second secret")
    assert (heard("the old token"), heard("the new token")) == (401, 200)
    two = {"method": "token", "token": "a", "secondToken": "b"}
    plain.open(f"/webhooks/{plain.webhook(name='At once', authentication=two)['id']}/settings")
    plain.tick("Calls with the main secret are rejected from then on")
    assert promoted in plain.press("Promote the second secret now")


def passed(outside: Outside, hours: int) -> None:
    """As if everything that was counted so far had been so many hours earlier."""
    database, earlier = outside.program.data_dir / "postern.db", hours * 3_600_000
    rows(database, "UPDATE tallies SET last_at = last_at - ?", earlier)
    rows(database, "UPDATE secrets SET created_at = created_at - ?", earlier)


def test_a_token_is_revealed_here_and_the_whole_url_with_it(console: Console) -> None:
    in_url = {"method": "token", "placement": "url", "token": {"generate": True}}
    webhook = console.webhook(name="Revealed", authentication=in_url)
    console.open(f"/webhooks/{webhook['id']}/settings#authentication")
    assert "whk_" not in console.page.content()
    console.click("Reveal")
    shown = console.page.locator("#secrets .copyable code", has_text="?token=whk_").inner_text()
    assert console.call(shown, {})[0] == 200


def signed(shape: str, secret: str, body: bytes) -> str:
    at = str(int(time.time()))
    content = f"{at}.".encode() + body if shape == "listed" else body
    signature = hmac.digest(secret.encode(), content, "sha256").hex()
    return {"header": signature, "prefixed": f"sha256={signature}", "listed": f"t={at},v1={signature}"}[shape]


@pytest.mark.parametrize(
    "shape, button",
    [
        ("header", "The signature stands alone in a header"),
        ("prefixed", "With its algorithm in front"),
        ("listed", "In a list, with the time"),
    ],
)
def test_a_scheme_of_ones_own_is_saved_in_each_shape_and_verifies(
    console: Console, shape: str, button: str
) -> None:
    webhook = console.webhook(
        name="Own scheme", authentication={"method": "hmac", "provider": "generic", "secret": "generic"}
    )
    console.open(f"/webhooks/{webhook['id']}/settings#authentication")
    console.page.get_by_label("Signature provider").select_option("custom")
    console.page.get_by_role("button", name=button).click()
    console.page.get_by_label("Where the signature is").fill("header:X-Own-Signature")
    console.page.get_by_label("Signing secret of the new sender").fill("a secret of ours")
    console.page.get_by_role("checkbox", name=re.compile("Delete the current signing secret")).check()
    console.click("Save")
    expect(console.page.get_by_text("Saved.")).to_be_visible()
    assert console.settings_of(webhook)["authentication"]["provider"] == "custom"
    body = b'{"n":1}'
    signatures = {one: signed(one, "a secret of ours", body) for one in ("header", "prefixed", "listed")}
    signatures["forged"] = signed(shape, "another secret", body)
    for one, signature in signatures.items():
        status, _ = console.call(webhook["url"], body, X_Own_Signature=signature)
        assert status == (200 if one == shape else 401), one


def test_what_waits_behind_a_hold_is_dropped_and_stays_in_the_history(plain: Plain) -> None:
    webhook = plain.webhook(name="On hold")
    plain.api.post(f"webhooks/{webhook['id']}/hold")
    call = plain.called(webhook["url"], {"n": 1})
    assert "1 call waits now." in plain.open(f"/webhooks/{webhook['id']}")
    assert "Drop them" in plain.press("Drop what waits…")
    assert "None waits yet." in plain.press("Drop them")
    assert plain.api.get(f"invocations/{call}").json["status"] == "dropped"
    plain.press("Release")
    assert "On hold" not in plain.text(".//h2")


def test_rejected_calls_are_checked_again_and_admitted_together(plain: Plain) -> None:
    webhook = plain.shop("Mended", "wrong")
    ids = [plain.sold(webhook, b'{"n": %d}' % number)[1] for number in range(3)]
    plain.sold(webhook, b"{}", "a stranger's")
    plain.open(f"/webhooks/{webhook['id']}/calls")
    assert "4 calls would still be rejected" in plain.follow("Check rejected calls again")
    plain.api.patch(f"webhooks/{webhook['id']}", {"authentication": {"secret": "right"}})
    said = plain.open(f"/webhooks/{webhook['id']}/rejected")
    assert "3 calls would start now" in said
    assert "1 call would still be rejected" in said and "0 calls cannot be admitted" in said
    assert "admitted. Their workflows are started." in plain.press("Admit 3 calls")
    assert all(plain.api.get(f"invocations/{one}").json["deliveries"] for one in ids)
    assert "0 calls would start now" in plain.open(f"/webhooks/{webhook['id']}/rejected")


def test_the_tester_explains_a_pasted_request(console: Console) -> None:
    console.open("/tester")
    console.page.get_by_label("As a sender signs").check()
    console.page.get_by_label("Sender", exact=True).select_option("stripe")
    console.page.get_by_label("Signing secret").fill("whsec_right")
    signed = f"Stripe-Signature: {stripe_signature('whsec_right', BODY)}\n\n{BODY.decode()}"
    console.page.get_by_label("Raw request or curl command").fill(signed)
    console.click("Test the signature")
    expect(console.page.get_by_text("The signature matches")).to_be_visible()


def test_the_tester_takes_a_key_set_in_the_place_of_the_senders(console: Console) -> None:
    (made, *_) = json.loads((ROOT / "tests" / "vectors" / "pubsub.json").read_text())["vectors"]
    sent = dict(made["call"]["headers"])["Authorization"]
    console.open("/tester")
    console.page.get_by_label("As a sender signs").check()
    console.page.get_by_label("Sender", exact=True).select_option("pubsub")
    console.page.get_by_label("Signing secret").fill(made["secret"])
    console.page.get_by_label("Key set (JWKS)").fill('{"keys": []}')
    console.page.get_by_label("Raw request or curl command").fill(f"Authorization: {sent}\n\n{{}}")
    console.click("Test the signature")
    expect(console.page.get_by_text("its key is not in the sender's set of keys").first).to_be_visible()


def test_recorded_events_become_variables_to_copy(console: Console) -> None:
    webhook = console.webhook(name="Recorded", fieldMapping={"fieldOne": "order.number"})
    console.open(f"/workflows?webhook={webhook['id']}")
    console.click("Record the next event")
    recording = re.compile(r"Recording until \d\d:\d\d: the next")
    expect(console.page.get_by_text(recording)).to_be_visible()
    console.click("Stop recording")
    console.click("Record the next event")
    expect(console.page.get_by_role("button", name="Stop recording")).to_be_visible()
    console.call(webhook["url"], {"order": {"number": "1001"}})
    expect(console.page.get_by_role("button", name="Copy fieldOne")).to_be_visible()
    console.click("Begin a workflow", "link")
    expect(console.page.get_by_label("workflow", exact=True)).to_contain_text("def ")


def test_a_recorded_event_that_cannot_be_read_is_shown_as_there(plain: Plain) -> None:
    webhook = plain.webhook(name="Too large")
    plain.api.post(f"webhooks/{webhook['id']}/record-events")
    plain.call(webhook["url"], b'{"amount":1e999}')
    said = plain.open(f"/workflows?webhook={webhook['id']}")
    assert "a number that is too large to be read" in said and not plain.named("Begin a workflow", "a")
    assert "Nothing has been recorded yet." in plain.press("Delete the recording")


def test_the_audit_log_is_read_for_one_webhook(plain: Plain) -> None:
    one, other = plain.webhook(name="Audited alone"), plain.webhook(name="Audited beside")
    for number in range(51):  # more than a page
        plain.api.patch(f"webhooks/{one['id']}", {"tags": [f"tag-{number}"]})
    assert plain.api.delete(f"webhooks/{other['id']}").status == 204
    rows = ".//tbody/tr"
    plain.open("/settings/audit")
    plain.fill("Webhook", "Audited alone")
    plain.send(plain.form_of(plain.field("Webhook")))
    assert plain.count(rows) == 50
    plain.follow("Older entries")
    assert plain.count(rows) == 2 and "Webhook created" in plain.text(f"{rows}[2]")
    plain.follow("Take away: only Audited alone")
    assert "Audited beside (deleted)" in plain.text(f"{rows}[1]")
    plain.follow("Only changes of Audited beside (deleted)")
    assert plain.count(rows) == 2


def test_the_audit_log_names_a_webhook_and_tells_what_its_schedule_became(plain: Plain) -> None:
    webhook = plain.webhook(name="Noted <b>down</b>")
    schedule = {"url": "https://example.com/orders", "every": "15m", "headers": {"X-Key": "of a header"}}
    for patch in ({"schedule": schedule, "name": "Noted"}, {"schedule": None, "name": webhook["name"]}):
        assert plain.api.patch(f"webhooks/{webhook['id']}", patch).status == 200
    plain.open(f"/settings/audit?subject={webhook['id']}")
    assert "https://example.com/orders → nothing" in plain.text(".//tbody/tr[1]")
    assert "of a header" not in plain.html and "{" not in plain.text(".//tbody/tr[2]")
    (link, *_) = plain.named("Noted <b>down</b>", "a")
    assert (link.get("title"), link.get("href")) == (webhook["id"], f"/webhooks/{webhook['id']}")


def test_an_api_key_is_shown_once(plain: Plain) -> None:
    plain.open("/settings")
    plain.fill("Name", "A script")
    plain.press("Create key")
    key = plain.text(".//*[@role='alert']//code")
    assert key.startswith("pk_")
    plain.open("/settings")
    assert key not in plain.html
