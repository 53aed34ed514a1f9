"""What the console says is so, even where it would be easier to say something else."""

import hmac
import re
from pathlib import Path

from playwright.sync_api import Page, Route, expect

from support.client import PASSWORD
from support.program import StartProgram
from support.waiting import wait_until
from surfaces.console.conftest import Console, Plain, sign_in, visitor_of
from surfaces.console.plain import words as words_of


def test_a_call_through_an_unlisted_proxy_says_what_to_set(plain: Plain) -> None:
    url, said = plain.webhook(name="Proxied")["url"], "POSTERN_TRUSTED_PROXIES"
    assert f"{said}=127.0.0.1" in plain.open(f"/calls/{plain.called(url, X_Forwarded_For='203.0.113.7')}")
    assert said not in plain.open(f"/calls/{plain.called(url)}")


def test_what_came_again_is_not_offered_and_what_was_admitted_is_counted(plain: Plain) -> None:
    webhook = plain.shop("Came again", "typo")
    for body in (b'{"n":1}', b'{"n":2}'):
        assert plain.sold(webhook, body)[0] == 401
    plain.api.patch(f"webhooks/{webhook['id']}", {"authentication": {"secret": "right"}})
    _, accepted = plain.sold(webhook, b'{"n":1}')
    said = plain.open(f"/webhooks/{webhook['id']}/rejected")
    assert "1 call is another attempt at what was accepted or admitted" in said
    assert plain.named(accepted, "a")
    said = plain.press("Admit 1 call")
    assert "1 admitted." in said and "Nothing is left to admit" in said


def test_what_is_done_with_a_rejected_call_is_told_on_its_page_and_who_did_it(plain: Plain) -> None:
    webhook = plain.shop("Let in", "typo", fieldMapping={"fieldOne": "id"})
    _, call = plain.sold(webhook, b'{"id": 1042}')
    assert "Check again and admit" not in plain.open(f"/calls/{call}"), "it is in the menu"
    plain.press("Check again and admit", status=409)
    assert "It was not admitted" in plain.text(".//article[@id='call']//*[@role='alert']")
    plain.api.patch(f"webhooks/{webhook['id']}", {"authentication": {"secret": "right"}})
    assert plain.api.get(f"invocations/{call}").json["payload"] is None
    assert "Check again and admit" in plain.open(f"/calls/{call}")
    said = plain.press("Check again and admit")
    assert "admin checked it again and admitted it" in plain.text(".//ol[@class='trace plain']")
    assert "Its progress is shown below" in said
    assert plain.api.get(f"invocations/{call}").json["payload"] == {"id": 1042}
    assert "The mapping finds other values now" not in said


def test_one_or_many_are_replayed_with_todays_or_with_the_recorded_values_by_choice(plain: Plain) -> None:
    webhook = plain.webhook(name="Chosen", fieldMapping={"fieldOne": "a"})
    call = plain.called(webhook["url"], {"a": "x", "b": "y"})

    def started() -> list[str]:
        return [one["fields"]["fieldOne"] for one in plain.api.get(f"invocations/{call}").json["deliveries"]]

    plain.api.patch(f"webhooks/{webhook['id']}", {"fieldMapping": {"fieldOne": "b"}})
    plain.open(f"/calls/{call}")
    assert "Replayed with the recorded payload" in plain.press("Replay")
    assert started() == ["x", "x"]
    plain.press("Replay with today’s mapping")
    assert "admin replayed it again" in plain.text(".//ol[@class='trace plain']")
    assert started() == ["x", "x", "y"]
    for button, notice in (
        ("Replay 1 call", "1 of 1 call replayed as they were recorded"),
        ("Replay with today’s mapping", "1 of 1 call replayed with the mapping of that moment"),
    ):
        plain.open(f"/calls?webhook={webhook['id']}")
        plain.press("Replay all of these…")
        plain.press(button)
        wait_until(lambda notice=notice: notice in plain.open(plain.path), what=notice)
    assert started() == ["x", "x", "y", "x", "y"]


def test_a_schedules_headers_stay_go_and_change_as_the_page_says(plain: Plain) -> None:
    headers = {"Authorization": "Bearer topsecret", "X-Foo": "1"}
    schedule = {"url": "https://api.example.com/x", "every": "1d", "headers": headers}
    webhook = plain.webhook(name="Headers", schedule=schedule)
    for text, kept in (
        ("authorization\nX-Foo\nX-Bar: 2", ["Authorization", "X-Bar", "X-Foo"]),
        ("Authorization", ["Authorization"]),
        ("", []),
    ):
        plain.open(f"/webhooks/{webhook['id']}/schedule")
        plain.fill("Headers to send", text)
        assert "Saved. The next fetch goes by it." in plain.press("Save the schedule")
        assert list(plain.settings_of(webhook)["schedule"]["headers"]) == kept
    plain.fill("Headers to send", "X-New")
    plain.press("Save the schedule", status=422)
    assert plain.count(".//*[@id='wrong-headers']") == 1


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


def test_saving_a_custom_scheme_unchanged_changes_nothing(plain: Plain) -> None:
    """Nor the URL and the time that were set beside it."""
    how = {"method": "hmac", "provider": "custom", "secret": "a secret", "scheme": UNUSUAL}
    beside = {"publicUrl": "https://hooks.example.com/in", "toleranceSeconds": 45}
    for more, tolerance in (({}, 300), (beside, 45)):
        webhook = plain.webhook(name="Unusual", authentication={**how, **more})
        plain.open(f"/webhooks/{webhook['id']}/settings")
        assert plain.named("Valid for seconds", "input")[-1].get("value") == str(tolerance)
        plain.press("Save")
        after = plain.settings_of(webhook)["authentication"]
        # The time is the scheme's own from now on, and the same.
        assert after["scheme"] == webhook["authentication"]["scheme"] | {"toleranceSeconds": tolerance}
        assert (after["publicUrl"], after["toleranceSeconds"]) == (more.get("publicUrl"), None)
    plain.open(f"/webhooks/{webhook['id']}/settings")
    plain.fill("What is signed", "{timestamp}")  # which is required then, whatever was said before
    plain.press("Save")
    assert plain.settings_of(webhook)["authentication"]["scheme"]["signedContent"] == "{timestamp}"


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


def test_a_custom_scheme_is_made_while_creating_from_a_preset_with_all_of_it(plain: Plain) -> None:
    """One that cannot be is reported beside its field and stays typed."""
    for preset in ("hubspot", "klaviyo"):
        plain.open(f"/webhooks/new/signed?provider=custom&start={preset}")
        plain.fill("Name", f"Like {preset}")
        plain.fill("Signing secret", "a secret of theirs")
        plain.press("Create webhook")
        made = plain.api.get(f"webhooks/{plain.path.split('/')[2]}").json["authentication"]
        known = plain.api.get(f"providers/{preset}").json["scheme"]
        assert (made["provider"], {name: made["scheme"][name] for name in known}) == ("custom", known)
    plain.open("/webhooks/new/signed?provider=custom")
    plain.fill("Where the signature is", "nowhere")
    plain.press("Create webhook", status=422)
    field = plain.field("Where the signature is")
    assert (field.get("value"), field.get("aria-invalid")) == ("nowhere", "true")


def test_messages_speak_in_the_units_of_the_page_and_cors_needs_a_site(plain: Plain) -> None:
    webhook = plain.webhook(name="Units", cors={"enabled": True, "origins": ["https://a.example"]})
    for label, typed, said in (
        ("Window in hours", "169", "to 168"),
        ("Which sites", "", "Name the sites, one a line"),
    ):
        plain.open(f"/webhooks/{webhook['id']}/settings")
        plain.fill(label, typed)
        plain.press("Save", status=422)
        assert said in plain.text(".//p[@class='wrong']")
    assert plain.settings_of(webhook)["cors"]["origins"] == ["https://a.example"]


def test_many_webhooks_keep_their_names_and_deleted_ones_too(plain: Plain) -> None:
    first = plain.webhook(name="The very first")
    gone = plain.webhook(name="Gone again")
    shown = {plain.called(first["url"]): "The very first"}
    shown[plain.called(gone["url"])] = "Gone again (deleted)"
    plain.api.delete(f"webhooks/{gone['id']}")
    for number in range(25):
        plain.webhook(name=f"Many {number}")
    plain.open("/calls")
    for call, name in shown.items():
        assert name in plain.text(f".//tr[@id='call-{call}']")
    plain.open("/calls?q=webhook:%22Gone+again%22")
    assert plain.count(".//div[@id='calls']//tbody/tr") == 1
    assert "Create a webhook first" not in plain.open(f"/workflows?webhook={first['id']}")


def test_dead_ends_are_pages_for_a_browser_and_problems_for_programs(plain: Plain) -> None:
    plain.open("/no/such/page", status=404)
    assert plain.named("Back to the console", "a")
    call = plain.called(plain.webhook(name="Reloaded")["url"])
    plain.open(f"/calls/{call}/replay")
    assert plain.path == f"/calls/{call}"
    text = plain.api.get("/no/such/page")
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


def test_a_fix_says_how_many_of_the_last_calls_it_would_reject(plain: Plain) -> None:
    webhook = plain.shop("Shop")
    for body in (b'{"n":1}', b'{"n":2}'):
        assert plain.sold(webhook, body)[0] == 200
    in_hex = hmac.digest(b"right", b"{}", "sha256").hex()
    plain.open(f"/calls/{plain.called(webhook['url'], b'{}', X_Shopify_Hmac_Sha256=in_hex)}")
    said = plain.text(".//li[@class='remedy row apart']")
    assert "hex" in said and "Would reject 2 of the last 2 accepted calls." in said


def test_a_scheduled_webhook_and_one_with_its_token_in_the_url_say_so(plain: Plain) -> None:
    scheduled = plain.webhook(name="Timer", schedule={"url": "https://api.example.com/x", "every": "2d"})
    page = f"/webhooks/{scheduled['id']}"
    assert "Postern fetches every 2 days; next" in plain.open(page)
    assert plain.api.patch(f"webhooks/{scheduled['id']}", {"enabled": False}).status == 200
    said = plain.open(page)
    assert "Nothing is fetched while it is disabled." in said and "POST JSON here" not in said
    said = plain.open(f"{page}/schedule")
    assert "not while it is disabled" in said and "Run now" not in said
    how = {"method": "token", "placement": "url", "parameterName": "t", "token": {"generate": True}}
    in_url = plain.webhook(name="In the URL", authentication=how)
    assert "Callers need the token in the URL too" in plain.open(f"/webhooks/{in_url['id']}")
    assert "Fetches every 2 days" in plain.open("/webhooks")


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
    console, plain = Console(page, program), Plain(program, visitor_of(program))
    sign_in(page.context, program)
    program.wait_for_engine()
    webhook = plain.webhook(synchronousResponse={"enabled": True, "timeoutSeconds": 1})
    assert plain.call(webhook["url"], {"fails": True})[0] == 502
    assert plain.call(webhook["url"], {"late": 1.3, "answer": 201})[0] == 504
    assert plain.call(webhook["url"], {"answer": 201})[0] == 201

    def ends() -> set[str]:
        return {one["runState"] for one in plain.api.get("invocations").json["items"]}

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

    def listed(path: str) -> int:
        plain.open(path)
        return plain.count(".//table[@class='calls']/tbody/tr")

    def opened(words: str) -> str:
        return plain.open(next(one.attrib["href"] for one in plain.root.iter("a") if words in words_of(one)))

    assert (listed("/calls?q=status:failed"), listed("/calls?answer=502")) == (1, 1)
    plain.press("Replay all of these…")
    plain.follow("Not now")
    assert plain.path == "/calls?answer=502"
    plain.open("/calls?status=responded")
    assert "Replay 0 calls?" in plain.press("Replay all of these…")
    assert "completed already, and would run again" in plain.press("Include the completed…")
    plain.open("/calls?status=failed")
    plain.press("Replay all of these…")
    plain.press("Replay 1 call")
    told = "1 of 1 call replayed as they were recorded: 1 failed."
    wait_until(lambda: told in plain.open(plain.path), what="the replay to fail again")
    replay = plain.path
    assert re.search("1 failed.*Done|Done.*1 failed", plain.open("/replays"))
    plain.follow("status failed")
    assert "Replay 1 call?" in plain.press("Replay those that failed…")
    assert listed(replay) == 1 and "1 failed again" in plain.text()
    plain.follow("All of these calls")
    said = opened("order_in failed")
    assert plain.count(".//h1/*[@class='badge bad']") == 1 and "answered 502 in" in said
    assert listed("/calls?answer=504") == 1
    said = opened("order_in completed; the caller heard 504")
    assert "too late, the caller was answered 504 before" in said
    assert plain.call(webhook["url"], {"fails": True})[0] == 502
    asked = "invocations?status=failed"
    wait_until(lambda: len(plain.api.get(asked).json["items"]) == 2, what="another end")
    console.open("/calls?status=failed")
    alike = page.get_by_role("list", name="Calls that failed with the same error")
    expect(alike.get_by_role("listitem")).to_contain_text(["2 × no order … in the shop"])
    (group,) = plain.api.get("invocations/failures").json["items"]
    assert (group["count"], group["webhookIds"]) == (2, [webhook["id"]])
    assert "no order … in the shop" in group["error"] and console.violations() == []
    alike.get_by_role("link").click()
    expect(rows).to_have_count(2)
    expect(page.get_by_label("Remove error")).to_be_visible()
    plain.open("/calls?status=failed")
    said = plain.press("Replay those that failed")
    assert "Replay 2 calls?" in said and "error no order … in the shop" in said
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


def test_a_webhook_s_own_history_keeps_its_filter_and_says_when_it_finds_nothing(plain: Plain) -> None:
    webhook = plain.webhook(name="Filtered", duplicateProtection={"enabled": True})
    history = f"/webhooks/{webhook['id']}/calls"
    assert "As soon as somebody calls it, the call is here" in plain.open(history)
    for _ in range(52):
        assert plain.call(webhook["url"], {"order": 1})[0] == 200
    plain.open(history)
    said = plain.follow("Rejected")
    assert "No call matches" in said and "No calls yet" not in said
    plain.follow("Show every call")
    plain.open(f"{plain.path}?q=status:duplicate")
    rows = ".//table[@class='calls']/tbody/tr"  # folded ones, too
    assert plain.named("Remove status: duplicate", "a") and plain.count(rows) == 50
    plain.follow("Older calls")
    assert plain.named("Remove status: duplicate", "a") and plain.count(rows) == 1
    assert "Duplicate" in plain.text(rows)


def test_every_replay_of_many_can_be_reached(plain: Plain) -> None:
    plan = {"filter": {"webhookId": plain.webhook(name="Planned often")["id"]}}
    planned = [plain.api.post("replays", plan).json["id"] for _ in range(31)]
    plain.open("/replays")
    assert plain.count(".//tbody/tr") == 30
    plain.follow("Planned earlier")
    assert plain.count(f".//a[@href='/replays/{planned[0]}']") == 1


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
    plain: Plain,
) -> None:
    scheme = {"signature": ["header:X-Hook-Signature"], "handshake": "asana"}
    how = {"method": "hmac", "provider": "custom", "secret": "not known yet", "scheme": scheme}
    webhook = plain.webhook(name="Announced", authentication=how)
    plain.call(webhook["url"], b"{}", X_Hook_Secret="secret-of-the-sender")
    tab, several = f"/webhooks/{webhook['id']}/settings", "Callers have announced different ones"
    said = plain.open(tab)
    assert said.count("from 127.0.0.1") == 1 and several not in said
    plain.call(webhook["url"], b"{}", X_Hook_Secret="secret-of-a-stranger")
    assert "Somebody changed it since you read it" in plain.press("Make it the main secret", status=412)
    assert f"{several}: 2 are kept." in plain.open(tab)
    assert "Announced in a set-up handshake" not in plain.press("Make it the main secret")
    signature = hmac.new(b"secret-of-the-sender", b"{}", "sha256").hexdigest()
    assert plain.call(webhook["url"], b"{}", X_Hook_Signature=signature)[0] == 200


def test_a_secret_that_did_not_sign_the_call_is_not_saved(console: Console) -> None:
    webhook = console.shop("Of another shop", "a" * 32)
    console.open(f"/calls/{console.sold(webhook, b'{}', 'b' * 32)[1]}")
    console.page.get_by_label("The secret it was signed with").fill("c" * 32)
    console.click("Save it as the second, and admit")
    expect(console.page.locator("#call [role=alert]")).to_contain_text("does not verify either")
    assert not console.settings_of(webhook)["authentication"]["secondSecretSet"]
