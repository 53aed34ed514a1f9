"""An incident is a place to work in: from the message to the end without leaving it, whatever happens to the deed on its way."""

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from support.browser import new_context
from support.client import PASSWORD, Client
from support.program import Program
from support.stored import open_incident
from support.waiting import free_port, wait_until
from surfaces.console.conftest import Console, Outside, sign_in

WORKFLOW = """
from pathlib import Path
from postern.workflows import Event, workflow

@workflow()
def to_erp(event: Event) -> None:
    if Path("{broken}").exists():
        raise RuntimeError("ERP said 503 for order " + event["fieldOne"])
"""
SECRET = "shpss_" + "4b" * 16


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder: Path = tmp_path_factory.mktemp("incidents")
    (folder / "workflows").mkdir()
    (folder / "workflows/to_erp.py").write_text(WORKFLOW.format(broken=folder / "broken"))
    with Program(folder, {"POSTERN_ADMIN_PASSWORD": PASSWORD}) as program:
        program.wait_for_engine()
        yield program


@pytest.fixture
def broken(program: Program) -> Iterator[Path]:
    """The workflow fails as long as this file is there."""
    file = program.data_dir.parent / "broken"
    file.touch()
    yield file
    file.unlink(missing_ok=True)


def called(outside: Outside, secret: str, calls: int = 3) -> tuple[dict[str, Any], list[str]]:
    """A shop's webhook, and its calls that were made with this secret."""
    shop = outside.shop("Shopify orders", "right", fieldMapping={"fieldOne": "order_number"})
    bodies = [json.dumps({"order_number": 1300 + number}).encode() for number in range(calls)]
    return shop, [
        outside.sold(shop, body, secret, **{"X-Shopify-Topic": "orders/create"})[1] for body in bodies
    ]


def statuses(outside: Outside, calls: list[str]) -> list[tuple[str, int]]:
    told = [outside.api.get(f"invocations/{call}").json for call in calls]
    return [(one["status"], len(one["deliveries"])) for one in told]


def an_incident(outside: Outside, kind: str, broken: Path) -> tuple[str, list[str]]:
    """Its id and its calls, as of now: an alarm would open it some seconds later."""
    shop, calls = called(outside, SECRET if kind == "rejected" else "right")
    worst = "rejected" if kind == "rejected" else "failed"
    wait_until(lambda: {one for one, _ in statuses(outside, calls)} == {worst}, what="the calls to fail")
    broken.unlink()
    code = "signature_mismatch" if kind == "rejected" else "failed"
    return open_incident(outside.program.data_dir, shop["id"], code, kind, len(calls)), calls


@pytest.mark.parametrize("kind", ["rejected", "runs_failed"])
def test_from_the_message_to_all_done_in_five_clicks(console: Console, broken: Path, kind: str) -> None:
    shop, calls = called(console, SECRET if kind == "rejected" else "right", 4)
    found: list[Any] = wait_until(
        lambda: [one for one in console.api.get("incidents").json["items"] if one["webhookId"] == shop["id"]],
        what="the alarm",
    )
    broken.unlink()  # somebody has mended it
    page, clicks = console.page, 1  # the link in the message
    console.open(f"/incidents/{found[0]['id']}")
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text(
        re.compile(
            f"Shopify orders: 4 calls {'rejected' if kind == 'rejected' else 'failed'} since \\d\\d:\\d\\d Open"
        )
    )
    shared = "The signature in" if kind == "rejected" else "to_erp failed: ERP said 503 for order …"
    expect(page.get_by_role("heading", level=2, name=re.compile("^4 × " + re.escape(shared)))).to_be_visible()
    expect(page.locator("table.calls tbody tr")).to_have_count(4)
    assert console.violations() == []
    if kind == "rejected":
        page.get_by_label("The signing secret that they were made with").click()
        page.keyboard.insert_text("not the one")
        expect(page.get_by_text("It does not look like")).to_be_visible()
        page.get_by_label("The signing secret that they were made with").fill(SECRET)
        clicks += 1
    console.click("Save it, and admit them" if kind == "rejected" else "Replay 4 calls")
    clicks += 1
    expect(page.get_by_text("All 4 done")).to_be_visible()
    expect(heading).to_have_text(re.compile("Over$"))
    expect(page.get_by_text("4 × to_erp completed")).to_be_visible()
    still_open = sum(one["closedAt"] is None for one in console.api.get("incidents").json["items"])
    expect(page.locator("#incidents-open")).to_have_text(f"Incidents {still_open or ''}".strip())
    assert clicks <= 5 and console.path == f"/incidents/{found[0]['id']}"
    expect(page.get_by_role("button", name=re.compile("Admit|Replay|Save|I am on it"))).to_have_count(0)
    # A call opens beside, and its row stays marked while the list is asked for again.
    page.locator(f"#call-{calls[1]} a.opens").click()
    expect(page.locator("[data-panel] h1")).to_contain_text("orders/create · 1301")


class Engine(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


def test_from_the_message_to_all_done_where_the_engine_was_away(browser: Browser, tmp_path: Path) -> None:
    port = free_port()
    away = {"POSTERN_ENGINE": "http", "POSTERN_HTTP_URL": f"http://127.0.0.1:{port}/"}
    with Program(tmp_path, {"POSTERN_ADMIN_PASSWORD": PASSWORD, **away}) as program:
        context = new_context(browser)
        sign_in(context, program)
        console = Console(context.new_page(), program)
        _, calls = called(console, "right")
        found: list[Any] = wait_until(lambda: console.api.get("incidents").json["items"], what="the alarm")
        console.open(f"/incidents/{found[0]['id']}")  # the one click: the link in the message
        expect(console.page.get_by_text("0 of 3 done, 3 waiting")).to_be_visible()
        expect(console.page.get_by_text("start by themselves once")).to_be_visible()
        expect(console.page.locator("table.calls tbody tr")).to_have_count(3)
        with ThreadingHTTPServer(("127.0.0.1", port), Engine) as engine:
            Thread(target=engine.serve_forever, daemon=True).start()
            expect(console.page.get_by_text("All 3 done")).to_be_visible()
            engine.shutdown()
        assert statuses(console, calls) == [("started", 1)] * 3
        context.close()


DEEDS = {
    "acknowledge": ("rejected", "I am on it"),
    "secret": ("rejected", "Save it, and admit them"),
    "replay": ("runs_failed", "Replay 3 calls"),
}


def sign_in_again(page: Page) -> None:
    page.wait_for_url(re.compile("/sign-in"))
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(re.compile("/incidents/inc_"))


@pytest.mark.parametrize("trouble", ["double click", "slow", "offline", "session over"])
@pytest.mark.parametrize("deed", DEEDS)
def test_a_deed_is_done_once_and_said_where_one_stands(
    console: Console, broken: Path, deed: str, trouble: str
) -> None:
    kind, label = DEEDS[deed]
    incident, calls = an_incident(console, kind, broken)
    page, sent = console.page, re.compile(f"/incidents/{incident}/{deed}$")
    held: list[Route] = []
    console.open(f"/incidents/{incident}")
    button = page.get_by_role("button", name=label)

    def fill() -> None:
        if deed == "secret":
            page.get_by_label("The signing secret that they were made with").fill(SECRET)

    fill()
    if deed == "acknowledge":
        page.get_by_label("What you do about it").fill("asks the shop")
    match trouble:
        case "double click":
            button.dblclick()
        case "slow":
            page.route(sent, lambda route: held.append(route))
            button.click()
            wait_until(lambda: page.wait_for_timeout(0) or bool(held), what="the deed to be asked for")
            expect(button).to_be_disabled()
            button.locator("xpath=ancestor::form").evaluate("form => form.requestSubmit()")
            assert len(held) == 1
            held[0].continue_()
        case "offline":
            page.route(sent, lambda route: route.abort())
            button.click()
            expect(
                page.get_by_text("The gateway did not answer. Nothing that you typed is lost")
            ).to_be_visible()
            page.unroute(sent)
            button.click()
        case _:
            page.context.clear_cookies()
            button.click()
            sign_in_again(page)
            assert console.path == f"/incidents/{incident}"
            fill()
            button.click()
    if deed == "acknowledge":
        expect(page.get_by_text("admin is on it since")).to_contain_text("asks the shop")
        expect(button).to_have_count(0)
    else:
        expect(page.get_by_text("All 3 done")).to_be_visible()
        often = 1 if deed == "secret" else 2
        wait_until(lambda: statuses(console, calls) == [("completed", often)] * 3, what="each call, once")
    console.notes.check(but="Failed to load resource")


def test_a_secret_that_fits_no_call_is_not_saved_and_what_is_typed_outlives_the_page_asking_again(
    console: Console, broken: Path
) -> None:
    incident, calls = an_incident(console, "rejected", broken)
    page = console.page
    console.open(f"/incidents/{incident}")
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url) if one.url.endswith(incident) else None)
    field = page.get_by_label("The signing secret that they were made with")
    field.fill("shpss_" + "00" * 16)
    wait_until(lambda: page.wait_for_timeout(0) or bool(asked), what="the page to ask again")
    page.wait_for_load_state("networkidle")
    expect(field).to_have_value("shpss_" + "00" * 16)
    console.click("Save it, and admit them")
    expect(page.get_by_role("alert")).to_contain_text("the call does not verify either; nothing was saved")
    assert statuses(console, calls) == [("rejected", 0)] * 3


def test_calls_without_an_event_or_a_value_do_not_repeat_the_reason_above_them(
    outside: Outside, visitor: Client
) -> None:
    shop = outside.shop("Shop without a mapping", "right")
    assert {outside.sold(shop, b"{}", SECRET)[0] for _ in range(2)} == {401}
    page = visitor.get(f"/incidents/{open_incident(outside.program.data_dir, shop['id'], count=2)}").text
    assert len(re.findall("POST from 127.0.0.1", page)) == 2
    assert page.count("was made with another secret") == 1
    listed = visitor.get("/incidents").text
    assert "Signature does not match (2)." in listed and "2 calls rejected:" not in listed


def test_a_deed_that_fits_no_incident_is_refused(outside: Outside, visitor: Client, broken: Path) -> None:
    own = open_incident(outside.program.data_dir, "", "calls wait", "gateway")
    assert "The gateway: needs help since" in re.sub(r"<[^>]*>", "", visitor.get(f"/incidents/{own}").text)
    assert visitor.submit(f"/incidents/{own}/replay", {}).status != 500
    assert visitor.submit(f"/incidents/{own}/anything", {}).status == 404
    incident, _ = an_incident(outside, "rejected", broken)
    assert visitor.submit(f"/incidents/{incident}/secret", {}).status in (404, 409, 422)
    assert visitor.submit(f"/incidents/{incident}/fix", {"number": "x"}).status in (404, 409)
