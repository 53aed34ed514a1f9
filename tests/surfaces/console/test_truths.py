"""What the console says is so, even where it would be easier to say something else."""

import hmac
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from support.client import PASSWORD
from support.program import StartProgram
from support.waiting import wait_until
from surfaces.console.conftest import Console, sign_in


def test_a_call_through_an_unlisted_proxy_says_what_to_set(console: Console) -> None:
    webhook = console.webhook(name="Proxied")
    console.open(f"/calls/{console.called(webhook['url'], X_Forwarded_For='203.0.113.7')}")
    expect(console.page.get_by_text("POSTERN_TRUSTED_PROXIES=127.0.0.1")).to_be_visible()
    console.open(f"/calls/{console.called(webhook['url'])}")
    expect(console.page.get_by_text("POSTERN_TRUSTED_PROXIES")).to_have_count(0)


def test_what_came_again_is_not_offered_and_what_was_admitted_is_counted(console: Console) -> None:
    webhook = console.shop("Came again", "typo")
    for body in (b'{"n":1}', b'{"n":2}'):
        assert console.sold(webhook, body)[0] == 401
    console.api.patch(f"webhooks/{webhook['id']}", {"authentication": {"secret": "right"}})
    _, accepted = console.sold(webhook, b'{"n":1}')
    console.open(f"/webhooks/{webhook['id']}/rejected")
    expect(
        console.page.get_by_text("1 call is another attempt at what was accepted or admitted")
    ).to_be_visible()
    expect(console.page.get_by_role("link", name=accepted)).to_be_visible()
    console.click("Admit 1 call")
    expect(console.page.get_by_text("1 admitted.")).to_be_visible()
    expect(console.page.get_by_text("Nothing is left to admit")).to_be_visible()


def test_what_cannot_be_done_with_a_call_is_reported_on_its_page(console: Console) -> None:
    console.open(f"/calls/{console.sold(console.shop('Stays', 'typo'), b'{}')[1]}")
    expect(console.page.get_by_role("button", name="Check again and admit")).to_be_hidden()
    console.choose("Check again and admit")
    expect(console.page.locator(".call-page [role=alert]")).to_contain_text("It was not admitted")


def test_a_replay_may_carry_the_recorded_values_where_the_mapping_has_changed(console: Console) -> None:
    webhook = console.webhook(name="Chosen", fieldMapping={"fieldOne": "a"})
    call = console.called(webhook["url"], {"a": "x", "b": "y"})
    console.api.patch(f"webhooks/{webhook['id']}", {"fieldMapping": {"fieldOne": "b"}})
    console.open(f"/calls/{call}")
    console.choose("Replay")
    expect(console.page.get_by_text("Replayed with the recorded payload")).to_be_visible()
    deliveries = console.api.get(f"invocations/{call}").json["deliveries"]
    assert [one["fields"]["fieldOne"] for one in deliveries] == ["x", "x"]
    console.choose("Replay with today’s mapping")
    expect(console.page.locator("ol.trace").get_by_text("admin replayed it again")).to_be_visible()


def test_many_are_replayed_with_todays_or_with_the_recorded_values_by_choice(console: Console) -> None:
    webhook = console.webhook(name="Chosen together", fieldMapping={"fieldOne": "a"})
    call = console.called(webhook["url"], {"a": "x", "b": "y"})
    console.api.patch(f"webhooks/{webhook['id']}", {"fieldMapping": {"fieldOne": "b"}})
    for button, notice in (
        ("Replay 1 call", "1 of 1 call replayed as they were recorded"),
        ("Replay with today’s mapping", "1 of 1 call replayed with the mapping of that moment"),
    ):
        console.open(f"/calls?webhook={webhook['id']}")
        console.replay_all()
        console.click(button)
        expect(console.page.get_by_text(notice)).to_be_visible()
    deliveries = console.api.get(f"invocations/{call}").json["deliveries"]
    assert [one["fields"]["fieldOne"] for one in deliveries] == ["x", "x", "y"]


def test_an_admitted_call_says_who_admitted_it(console: Console) -> None:
    webhook, trace = console.shop("Let in", "typo", fieldMapping={"fieldOne": "id"}), "ol.trace"
    _, call = console.sold(webhook, b'{"id": 1042}')
    console.api.patch(f"webhooks/{webhook['id']}", {"authentication": {"secret": "right"}})
    assert console.api.get(f"invocations/{call}").json["payload"] is None
    console.open(f"/calls/{call}")
    console.click("Check again and admit")
    expect(console.page.locator(trace).get_by_text("admin checked it again and admitted it")).to_be_visible()
    expect(console.page.get_by_text("Its progress is shown below")).to_be_visible()
    assert console.api.get(f"invocations/{call}").json["payload"] == {"id": 1042}
    expect(console.page.get_by_text("The mapping finds other values now")).to_be_hidden()


def test_a_schedules_headers_stay_go_and_change_as_the_page_says(console: Console) -> None:
    headers = {"Authorization": "Bearer topsecret", "X-Foo": "1"}
    schedule = {"url": "https://api.example.com/x", "every": "1d", "headers": headers}
    webhook = console.webhook(name="Headers", schedule=schedule)
    for text, kept in (
        ("authorization\nX-Foo\nX-Bar: 2", ["Authorization", "X-Bar", "X-Foo"]),
        ("Authorization", ["Authorization"]),
        ("", []),
        ("X-New", None),
    ):
        console.open(f"/webhooks/{webhook['id']}/schedule")
        console.page.get_by_text("Headers and limits").click()
        console.page.get_by_label("Headers to send").fill(text)
        console.click("Save the schedule")
        if kept is None:
            expect(console.page.locator("#wrong-headers")).to_be_visible()
        else:
            expect(console.page.get_by_text("Saved. The next fetch goes by it.")).to_be_visible()
            assert list(console.settings_of(webhook)["schedule"]["headers"]) == kept


def test_a_cron_expression_says_its_next_runs_while_it_is_typed_and_once_it_is_saved(
    console: Console,
) -> None:
    webhook = console.webhook(name="Mornings")
    console.open(f"/webhooks/{webhook['id']}/schedule")
    console.page.get_by_label("Source URL").fill("https://api.example.com/x")
    console.page.get_by_text("At set times").click()
    said, cron = (
        console.page.locator("#next-runs"),
        console.page.get_by_role("textbox", name="Cron expression"),
    )
    three = re.compile(r"Next runs: (Sun \d+ \w+ \d{4} 07:30(, )?){3} \(Asia/Tokyo\)\.")
    console.page.get_by_label("Time zone").fill("Asia/Tokyo")
    cron.fill("30 7 * *")
    expect(said).to_contain_text("Write five fields")
    cron.press_sequentially(" SUN")
    expect(said).to_have_text(three)
    console.click("Save the schedule")
    expect(console.page.get_by_text("Saved. The next fetch goes by it.")).to_be_visible()
    expect(said).to_have_text(three)


UNUSUAL = {
    "signature": ["header:X-One", "query:sig"],
    "encoding": "auto",
    "signedContent": "{method}\n{body}\n",
    "timestamp": ["header:X-Time"],
    "timestampFormat": "http_date",
    "timestampRequired": False,
    "toleranceSeconds": 300,
    "urlUnescape": ":/?",
    "bodyDigest": ["header:X-Digest"],
}


def test_saving_a_custom_scheme_unchanged_changes_nothing(console: Console) -> None:
    how = {"method": "hmac", "provider": "custom", "secret": "a secret", "scheme": UNUSUAL}
    webhook = console.webhook(name="Unusual", authentication=how)
    before = webhook["authentication"]["scheme"]
    console.open(f"/webhooks/{webhook['id']}/settings#authentication")
    console.save_as_it_is()
    assert console.settings_of(webhook)["authentication"]["scheme"] == before


def test_how_long_a_senders_signatures_are_valid_is_shown_kept_and_changed(console: Console) -> None:
    how = {"method": "hmac", "provider": "stripe", "secret": "a secret", "toleranceSeconds": 60}
    webhook = console.webhook(name="An hour late", authentication=how)
    field = console.page.locator("[data-when='provider:stripe']").get_by_label("Valid for seconds")

    def saved(text: str | None) -> object:
        console.open(f"/webhooks/{webhook['id']}/settings#authentication")
        if text is None:
            console.save_as_it_is()
        else:
            field.fill(text)
            console.save()
        return console.settings_of(webhook)["authentication"]["toleranceSeconds"]

    assert saved(None) == 60
    assert (saved("0"), saved(None), saved("7200"), saved("")) == (0, 0, 7200, None)
    console.open(f"/webhooks/{webhook['id']}/settings#authentication")
    field.fill("an hour")
    console.click("Save")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_value("an hour")


def test_a_custom_scheme_keeps_the_url_and_the_time_that_were_set_beside_it(console: Console) -> None:
    how = {"method": "hmac", "provider": "custom", "secret": "a secret", "scheme": UNUSUAL}
    beside = {"publicUrl": "https://hooks.example.com/in", "toleranceSeconds": 45}
    webhook = console.webhook(name="Beside", authentication={**how, **beside})
    console.open(f"/webhooks/{webhook['id']}/settings#authentication")
    expect(console.page.get_by_label("Valid for seconds").last).to_have_value("45")
    console.save_as_it_is()
    after = console.settings_of(webhook)["authentication"]
    # The time is the scheme's own from now on, and the same.
    assert (after["publicUrl"], after["toleranceSeconds"]) == (beside["publicUrl"], None)
    assert after["scheme"]["toleranceSeconds"] == 45


@pytest.mark.parametrize("preset", ["hubspot", "klaviyo"])
def test_a_custom_scheme_is_made_while_creating_from_a_preset_with_all_of_it(
    console: Console, preset: str
) -> None:
    console.open(f"/webhooks/new/signed?provider=custom&start={preset}")
    console.page.get_by_label("Name", exact=True).fill(f"Like {preset}")
    console.page.get_by_label("Signing secret").fill("a secret of theirs")
    console.click("Create webhook")
    console.page.wait_for_url("**/ready")
    made = console.api.get(f"webhooks/{console.path.split('/')[2]}").json["authentication"]
    known = console.api.get(f"providers/{preset}").json["scheme"]
    assert (made["provider"], {name: made["scheme"][name] for name in known}) == ("custom", known)


def test_a_custom_scheme_that_cannot_be_is_reported_beside_its_field_and_stays_typed(
    console: Console,
) -> None:
    console.open("/webhooks/new/signed?provider=custom")
    console.page.get_by_label("Name", exact=True).fill("Wrong")
    console.page.get_by_label("Where the signature is").fill("nowhere")
    console.click("Create webhook")
    field = console.page.get_by_label("Where the signature is")
    expect(field).to_have_value("nowhere")
    expect(field).to_have_attribute("aria-invalid", "true")


def test_messages_speak_in_the_units_of_the_page_and_cors_needs_a_site(console: Console) -> None:
    webhook = console.webhook(name="Units", cors={"enabled": True, "origins": ["https://a.example"]})
    console.open(f"/webhooks/{webhook['id']}/settings#duplicates")
    console.page.get_by_label("Window in hours").fill("169")
    console.click("Save")
    expect(console.page.locator(".wrong:visible")).to_contain_text("to 168")
    console.open(f"/webhooks/{webhook['id']}/settings#authentication")
    console.page.get_by_label("Which sites").fill("")
    console.click("Save")
    expect(console.page.get_by_text("Name the sites, one a line").first).to_be_visible()
    assert console.api.get(f"webhooks/{webhook['id']}").json["cors"]["origins"] == ["https://a.example"]


def test_many_webhooks_keep_their_names_and_deleted_ones_too(console: Console) -> None:
    first = console.webhook(name="The very first")
    gone = console.webhook(name="Gone again")
    shown = {console.called(first["url"]): "The very first"}
    shown[console.called(gone["url"])] = "Gone again (deleted)"
    console.api.delete(f"webhooks/{gone['id']}")
    for number in range(25):
        console.webhook(name=f"Many {number}")
    console.open("/calls")
    for call, name in shown.items():
        row = console.page.locator("#calls tr", has=console.page.locator(f"a[href='/calls/{call}']"))
        expect(row).to_contain_text(name)
    console.ask('webhook:"Gone again"')
    expect(console.page.locator("#calls tbody tr")).to_have_count(1)
    console.open(f"/workflows?webhook={first['id']}")
    expect(console.page.get_by_text("Create a webhook first")).to_have_count(0)


def test_dead_ends_are_pages_for_a_browser_and_problems_for_programs(console: Console) -> None:
    response = console.page.goto(console.program.url + "/no/such/page")
    assert response is not None and response.status == 404
    expect(console.page.get_by_role("link", name="Back to the console")).to_be_visible()
    call = console.called(console.webhook(name="Reloaded")["url"])
    console.open(f"/calls/{call}/replay")
    assert console.path == f"/calls/{call}"
    text = console.api.get("/no/such/page")
    assert (text.status, text.json["code"]) == (404, "not_found")


def test_the_live_inspector_and_a_calls_page_tell_the_same_time_and_whose(console: Console) -> None:
    with console.another_browser(timezone_id="America/New_York") as page:
        page.goto(console.program.url + "/calls?live=1")
        expect(page.get_by_text("Listening")).to_be_visible()
        expect(page.get_by_text("times in America/New_York")).to_be_visible()
        call = console.called(console.webhook(name="Timed")["url"])
        time = page.locator(f"#call-{call} time").first
        expect(time).to_have_text(re.compile(r"^\d\d:\d\d:\d\d$"))
        text = time.inner_text()
        page.goto(console.program.url + f"/calls/{call}")
        expect(page.locator("time[data-exact]").first).to_contain_text(re.compile(f"{text}.*E[SD]T"))
        page.goto(console.program.url + "/tester")
        expect(page.locator(f"option[value={call}]")).to_have_text(re.compile(f"{text} E[SD]T: Timed: "))


def test_a_fix_says_how_many_of_the_last_calls_it_would_reject(console: Console) -> None:
    webhook = console.shop("Shop")
    for body in (b'{"n":1}', b'{"n":2}'):
        assert console.sold(webhook, body)[0] == 200
    in_hex = hmac.digest(b"right", b"{}", "sha256").hex()
    console.open(f"/calls/{console.called(webhook['url'], b'{}', X_Shopify_Hmac_Sha256=in_hex)}")
    remedy = console.page.locator(".remedy", has_text="hex")
    expect(remedy.first).to_contain_text("Would reject 2 of the last 2 accepted calls.")


def test_a_scheduled_webhook_and_one_with_its_token_in_the_url_say_so(console: Console) -> None:
    scheduled = console.webhook(name="Timer", schedule={"url": "https://api.example.com/x", "every": "2d"})
    console.open(f"/webhooks/{scheduled['id']}")
    expect(console.page.get_by_text("Postern fetches every 2 days; next")).to_be_visible()
    assert console.api.patch(f"webhooks/{scheduled['id']}", {"enabled": False}).status == 200
    console.page.reload()
    expect(console.page.get_by_text("Nothing is fetched while it is disabled.")).to_be_visible()
    expect(console.page.get_by_text("POST JSON here")).to_have_count(0)
    console.open(f"/webhooks/{scheduled['id']}/schedule")
    expect(console.page.get_by_text("not while it is disabled")).to_be_visible()
    expect(console.page.get_by_role("button", name="Run now")).to_have_count(0)
    how = {"method": "token", "placement": "url", "parameterName": "t", "token": {"generate": True}}
    in_url = console.webhook(name="In the URL", authentication=how)
    console.open(f"/webhooks/{in_url['id']}")
    expect(console.page.get_by_text("Callers need the token in the URL too")).to_be_visible()
    console.open("/webhooks")
    expect(console.page.get_by_text("Fetches every 2 days")).to_be_visible()


FAILING = """
import time

from postern.workflows import respond, workflow

@workflow
def order_in(event):
    time.sleep(event["payload"].get("late", 0))
    if "answer" in event["payload"]:
        respond({}, status=event["payload"]["answer"])
    if event["payload"].get("fails"):
        raise LookupError("no order 1001 in the shop")
"""


def test_a_workflow_that_failed_and_a_caller_without_its_answer_are_red_wherever_they_are(
    start_program: StartProgram, page: Page, tmp_path: Path
) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "order_in.py").write_text(FAILING)
    program = start_program(POSTERN_ADMIN_PASSWORD=PASSWORD, POSTERN_WORKFLOWS=str(tmp_path / "flows"))
    console = Console(page, program)
    sign_in(page.context, program)
    program.wait_for_engine()
    webhook = console.webhook(synchronousResponse={"enabled": True, "timeoutSeconds": 1})
    assert console.call(webhook["url"], {"fails": True})[0] == 502
    assert console.call(webhook["url"], {"late": 1.3, "answer": 201})[0] == 504
    assert console.call(webhook["url"], {"answer": 201})[0] == 201

    def ends() -> set[str]:
        return {one["runState"] for one in console.api.get("invocations").json["items"]}

    wait_until(lambda: ends() == {"failed", "completed"}, what="the ends")
    console.open("/calls")
    rows = page.locator("table.calls tbody tr")
    failed = "order_in failed: no order 1001 in the shop; the caller heard 502."
    expect(rows).to_contain_text(["order_in completed; the caller heard 504.", failed])
    expect(rows.nth(2)).to_contain_text("Failed")
    expect(rows.nth(1).locator(".badge.bad")).to_have_text("Heard 504")
    rows.nth(2).locator("a.opens").click()
    expect(page.locator("[data-panel] .trace")).to_contain_text("order_in failed: no order 1001 in the shop")
    words, controls = console.said("#call")
    assert words <= 60 and controls <= 8, (words, controls)
    page.keyboard.press("Escape")
    rows.nth(0).locator("a.opens").click()
    page.locator("[data-panel] .trace").get_by_text("Where the time went").click()
    took = re.compile(r"order_in: completed after .*respond: [\d.<,]+ m?s", re.S)
    expect(page.locator("[data-panel] .trace")).to_contain_text(took)
    page.keyboard.press("Escape")
    console.ask("status:failed")
    expect(rows).to_have_count(1)
    console.open("/calls?answer=502")
    console.replay_all()
    console.click("Not now", "link")
    expect(rows).to_have_count(1)
    console.open("/calls?status=responded")
    console.replay_all()
    expect(page.get_by_role("heading", name="Replay 0 calls?")).to_be_visible()
    console.click("Include the completed…")
    expect(page.get_by_text("completed already, and would run again")).to_be_visible()
    console.open("/calls?status=failed")
    console.replay_all()
    console.click("Replay 1 call")
    expect(page.get_by_text("1 of 1 call replayed as they were recorded: 1 failed.")).to_be_visible()
    console.open("/replays")
    expect(page.get_by_role("row", name="1 failed")).to_contain_text("Done")
    page.get_by_role("link", name="status failed").click()
    console.click("Replay those that failed…")
    expect(page.get_by_role("heading", name="Replay 1 call?")).to_be_visible()
    console.page.go_back()
    expect(page.get_by_role("heading", name="1 failed again")).to_be_visible()
    expect(rows).to_have_count(1)
    console.click("All of these calls", "link")
    page.get_by_role("link", name="order_in failed").click()
    expect(page.locator("[data-panel] h1 .badge.bad")).to_be_visible()
    expect(page.get_by_text("answered 502 in")).to_be_visible()
    console.open("/calls?answer=504")
    expect(rows).to_have_count(1)
    page.get_by_role("link", name="order_in completed; the caller heard 504").click()
    expect(page.get_by_text("too late, the caller was answered 504 before")).to_be_visible()
    assert console.call(webhook["url"], {"fails": True})[0] == 502
    asked = "invocations?status=failed"
    wait_until(lambda: len(console.api.get(asked).json["items"]) == 2, what="another end")
    console.open("/calls?status=failed")
    alike = page.get_by_role("list", name="Calls that failed with the same error")
    expect(alike.get_by_role("listitem")).to_contain_text(["2 × no order … in the shop"])
    (group,) = console.api.get("invocations/failures").json["items"]
    assert (group["count"], group["webhookIds"]) == (2, [webhook["id"]])
    assert "no order … in the shop" in group["error"]
    assert console.violations() == []
    alike.get_by_role("link").click()
    expect(rows).to_have_count(2)
    expect(page.get_by_label("Remove error")).to_be_visible()
    console.open("/calls?status=failed")
    console.click("Replay those that failed")
    expect(page.get_by_role("heading", name="Replay 2 calls?")).to_be_visible()
    expect(page.locator("#replay header")).to_contain_text("error no order … in the shop")
    for tab in ("settings", "schedule"):
        console.open(f"/webhooks/{webhook['id']}/{tab}")
        page.get_by_role("heading", name="Live Request Inspector").click()
        expect(page.locator("[data-live] tr").first).to_be_visible()


def test_a_page_does_not_listen_to_a_webhook_that_is_gone(console: Console) -> None:
    webhook = console.webhook(name="Listened to")
    console.open(f"/webhooks/{webhook['id']}/calls?live=1")
    state = console.page.locator("[data-live-state]")
    expect(state).to_have_text("Listening")
    console.api.delete(f"webhooks/{webhook['id']}")
    expect(state).to_have_text("Stopped. Reload the page to continue.")


def test_a_webhook_s_own_history_keeps_its_filter_and_says_when_it_finds_nothing(console: Console) -> None:
    webhook = console.webhook(name="Filtered", duplicateProtection={"enabled": True})
    history = f"/webhooks/{webhook['id']}/calls"
    console.open(history)
    expect(console.page.get_by_text("As soon as somebody calls it, the call is here")).to_be_visible()
    for _ in range(52):
        assert console.call(webhook["url"], {"order": 1})[0] == 200
    console.open(history)
    console.page.get_by_role("link", name=re.compile("^Rejected")).click()
    expect(console.page.get_by_role("heading", name="No call matches")).to_be_visible()
    expect(console.page.get_by_text("No calls yet")).to_have_count(0)
    assert console.violations() == []
    console.click("Show every call", "link")
    console.ask("status:duplicate")
    expect(console.page.get_by_label("Remove status: duplicate")).to_be_visible()
    rows = console.page.locator("table.calls tbody tr")  # folded ones, too
    expect(rows).to_have_count(50)
    console.click("Older calls", "link")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Duplicate")
    expect(console.page.get_by_label("Remove status: duplicate")).to_be_visible()


def test_every_replay_of_many_can_be_reached(console: Console) -> None:
    webhook = console.webhook(name="Planned often")
    plan = {"filter": {"webhookId": webhook["id"]}}
    planned = [console.api.post("replays", plan).json["id"] for _ in range(31)]
    console.open("/replays")
    rows = console.page.locator("tbody tr")
    expect(rows).to_have_count(30)
    console.click("Planned earlier", "link")
    expect(console.page.locator(f"a[href='/replays/{planned[0]}']")).to_be_visible()
    assert console.violations() == []


def test_what_comes_within_a_minute_is_not_said_to_have_been(console: Console) -> None:
    def shown(seconds: int, written: str) -> str:
        text: str = console.page.evaluate(
            """([seconds, written]) => {
                const place = document.createElement("p"), time = document.createElement("time");
                time.dateTime = new Date(Date.now() + seconds * 1000).toISOString();
                time.dataset.ago = "";
                time.textContent = written;
                place.append(time);
                document.dispatchEvent(new CustomEvent("postern:times", {detail: place}));
                return time.textContent;
            }""",
            [seconds, written],
        )
        return text

    console.open("/webhooks")
    assert shown(45, "in 46 s") == "in less than a minute"
    assert shown(90, "in 2 minutes") == "in 2 minutes"
    assert shown(-8, "in 1 s") == "8 seconds ago"
    assert shown(20, "just now") == "just now", "the reader's clock is slow"


def test_a_list_is_not_emptied_by_a_database_that_is_away(console: Console) -> None:
    webhook = console.webhook(name="Stays listed")
    console.call(webhook["url"], {})
    console.open("/calls")
    page, rows, away = console.page, console.page.locator("#calls tbody tr"), console.page.locator("#away")
    expect(rows).not_to_have_count(0)
    is_away = [True]

    def answer(route: Route) -> None:
        route.fulfill(status=503, body="<main>away</main>") if is_away[0] else route.continue_()

    page.route(re.compile(r"/calls\?"), answer)
    console.ask("status:rejected")
    expect(away).to_be_visible()
    expect(rows).not_to_have_count(0)
    is_away[0] = False
    expect(away).to_be_hidden()  # it is asked again by itself
    console.notes.check(but="the server responded with a status of 503")


def test_what_a_page_asks_once_is_asked_again_after_the_database_was_away(console: Console) -> None:
    """The next stretch of a search, and the rows of a folder that is opened."""
    console.open("/webhooks")
    page, away, is_away, asked = console.page, console.page.locator("#away"), [True], []

    def answer(route: Route) -> None:
        asked.append(route.request.url.rpartition("/")[2])
        route.fulfill(status=503 if is_away[0] else 200, body="away" if is_away[0] else "The rows")

    page.route(re.compile(r"/webhooks/wh_(stretch|folder)$"), answer)
    page.wait_for_load_state("load")
    page.evaluate(
        """() => {
            const asks = (name, trigger) => `<div hx-get="/webhooks/wh_${name}" hx-trigger="${trigger}">Not yet</div>`;
            const parts = document.createElement("section");
            parts.id = "parts";
            parts.innerHTML = asks("stretch", "load delay:50ms")
                + `<details open><summary>A folder</summary>${asks("folder", "toggle from:'closest details' once")}</details>`;
            document.querySelector("main").append(parts);
            htmx.process(parts);
            htmx.trigger(parts.querySelector("details"), "toggle");
        }"""
    )
    expect(away).to_be_visible()
    expect(page.locator("#parts")).to_have_text(re.compile("Not yet.*Not yet"))
    is_away[0] = False
    expect(page.locator("#parts")).to_have_text(re.compile("The rows.*The rows"))
    expect(away).to_be_hidden()
    assert {"wh_stretch", "wh_folder"} == set(asked)
    console.notes.check(but="the server responded with a status of 503")


def test_a_list_of_webhooks_widens_no_window_and_hides_neither_actions_nor_focus(console: Console) -> None:
    console.webhook(
        name="Named-at-great-length-and-without-a-blank", folder="Shops of the north/And of the south"
    )
    page, width = console.page, 1000
    page.set_viewport_size({"width": width, "height": 800})
    console.open("/webhooks")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box = page.get_by_role("button", name="Actions for Named").bounding_box()
    assert box is not None and box["x"] + box["width"] <= width
    for wide in (770, 960, 1121, 1233):
        page.set_viewport_size({"width": wide, "height": 800})
        last_calls = page.locator("table.webhooks td:has(> time)")
        assert last_calls.evaluate_all(
            "(cells) => cells.every((one) => one.lastElementChild.getBoundingClientRect().right"
            " <= one.nextElementSibling.getBoundingClientRect().left)"
        ), "the menus stand before when the last call came"
    page.set_viewport_size({"width": 640, "height": 800})  # twice as large on 1280
    expect(page.locator("thead a:visible")).to_have_count(0)
    page.set_viewport_size({"width": 1280, "height": 900})


def test_a_question_that_a_menu_asked_gives_the_focus_back_to_the_menu(console: Console) -> None:
    assert console.call(console.webhook(name="Stays enabled")["url"])[0] == 200
    console.open("/webhooks")
    page = console.page
    menu = page.get_by_role("button", name="Actions for Stays enabled")
    menu.press("Enter")
    page.locator(".menu:popover-open").get_by_role("button", name="Disable").press("Enter")
    expect(page.locator("#question")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#question")).to_be_hidden()
    expect(menu).to_be_focused()


def test_without_scripts_nothing_waits_for_one(console: Console) -> None:
    console.call(console.webhook(name="Without scripts")["url"])
    with console.another_browser(java_script_enabled=False) as page:
        page.goto(console.program.url + "/calls?live=1")
        assert "This needs JavaScript." in page.locator("#calls [role=status]").inner_html()
        expect(page.locator(".feed-empty")).to_have_attribute("hidden", "")
        for text in ("Connecting", "Nothing has come yet"):
            expect(page.get_by_text(text)).to_be_hidden()
        page.goto(console.program.url + "/volume")
        expect(page.locator("noscript p")).to_be_visible()
        expect(page.locator(".plot").first).to_be_hidden()
        page.get_by_text("Show the numbers as a table").click()
        expect(page.locator("#table-outcomes")).to_be_visible()
        page.goto(console.program.url + "/settings/channels")
        expect(page.locator("#after")).to_be_hidden()
        page.locator("#kind").select_option("telegram")
        expect(page.locator("#after")).to_be_visible()
        for text, is_seen in (("Chat", True), ("Signing secret", False), ("Mail addresses", False)):
            expect(page.get_by_text(text, exact=True)).to_be_visible(visible=is_seen)


def test_each_announced_secret_is_shown_with_where_it_came_from_and_taken_as_it_was_seen(
    console: Console,
) -> None:
    scheme = {"signature": ["header:X-Hook-Signature"], "handshake": "asana"}
    how = {"method": "hmac", "provider": "custom", "secret": "not known yet", "scheme": scheme}
    webhook = console.webhook(name="Announced", authentication=how)
    console.call(webhook["url"], b"{}", X_Hook_Secret="secret-of-the-sender")
    page, tab = console.page, f"/webhooks/{webhook['id']}/settings#authentication"
    console.open(tab)
    expect(page.get_by_text("from 127.0.0.1")).to_have_count(1)
    expect(page.get_by_text("Callers have announced different ones")).to_have_count(0)
    console.call(webhook["url"], b"{}", X_Hook_Secret="secret-of-a-stranger")
    console.click("Make it the main secret")
    expect(page.get_by_text("Somebody changed it since you read it")).to_be_visible()
    console.open(tab)
    expect(page.get_by_text("Callers have announced different ones: 2 are kept.")).to_be_visible()
    page.get_by_role("button", name="Make it the main secret").first.click()
    expect(page.get_by_text("Announced in a set-up handshake")).to_have_count(0)
    signature = hmac.new(b"secret-of-the-sender", b"{}", "sha256").hexdigest()
    assert console.call(webhook["url"], b"{}", X_Hook_Signature=signature)[0] == 200


def test_a_secret_that_did_not_sign_the_call_is_not_saved(console: Console) -> None:
    webhook = console.shop("Of another shop", "a" * 32)
    console.open(f"/calls/{console.sold(webhook, b'{}', 'b' * 32)[1]}")
    console.page.get_by_label("The secret it was signed with").fill("c" * 32)
    console.click("Save it as the second, and admit")
    expect(console.page.locator("#call [role=alert]")).to_contain_text("does not verify either")
    assert not console.settings_of(webhook)["authentication"]["secondSecretSet"]
