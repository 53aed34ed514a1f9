"""A form that acts may be sent twice, by a double click, another tab, another try or a reload: it acts once."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from support.client import PASSWORD, Client
from support.program import Program
from support.waiting import wait_until
from surfaces.console.conftest import Console, Outside

WORKFLOW = """
from postern.workflows import Event, workflow

@workflow()
def ship(event: Event) -> None:
    if event["payload"].get("fails"):
        raise RuntimeError("ERP said 503")
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder: Path = tmp_path_factory.mktemp("once")
    (folder / "workflows").mkdir()
    (folder / "workflows/ship.py").write_text(WORKFLOW)
    with Program(folder, {"POSTERN_ADMIN_PASSWORD": PASSWORD}) as program:
        program.wait_for_engine()
        yield program


REPLAY = re.compile(r"/calls/inv_\w+/replay$")


def starts(outside: Outside, call: str) -> int:
    return len(outside.api.get(f"invocations/{call}").json["deliveries"])


@pytest.fixture(scope="module")
def webhook(outside: Outside) -> dict[str, Any]:
    return outside.webhook(name="Started once")


@pytest.fixture
def call(outside: Outside, webhook: dict[str, Any]) -> str:
    call = outside.called(webhook["url"], {"n": 1})
    wait_until(lambda: outside.api.get(f"invocations/{call}").json["status"] == "completed", what="the run")
    return call


def replay_button(page: Page) -> Any:
    return page.locator("#call").get_by_role("button", name="Replay", exact=True)


@pytest.mark.parametrize("pause", [0, 400, 1500])
@pytest.mark.parametrize("beside", [True, False], ids=["panel", "page"])
def test_two_clicks_replay_once(
    console: Console, webhook: dict[str, Any], call: str, pause: int, beside: bool
) -> None:
    page = console.page
    if beside:
        console.open(f"/webhooks/{webhook['id']}/calls")
        page.locator(f"#call-{call} a.opens").click()
    else:
        console.open(f"/calls/{call}")
    place = replay_button(page).bounding_box()
    assert place is not None
    x, y = place["x"] + 9, place["y"] + 9
    page.mouse.click(x, y)
    page.wait_for_timeout(pause)
    page.mouse.click(x, y)
    expect(page.get_by_text("admin replayed it")).to_be_visible()
    page.wait_for_timeout(300)  # the second would be asked for by now
    assert starts(console, call) == 2
    expect(replay_button(page)).to_be_visible()  # the next one is meant


def test_an_answer_that_takes_long_is_waited_for(console: Console, call: str) -> None:
    held: list[Route] = []
    console.page.route(REPLAY, lambda route: held.append(route))
    console.open(f"/calls/{call}")
    button = replay_button(console.page)
    button.click()
    wait_until(lambda: console.page.wait_for_timeout(0) or bool(held), what="the replay to be asked for")
    expect(button).to_be_disabled()
    button.dispatch_event("click")
    button.locator("xpath=..").evaluate("form => form.requestSubmit()")
    console.page.wait_for_timeout(100)
    assert len(held) == 1
    held[0].continue_()
    expect(console.page.get_by_text("Replayed with the recorded payload")).to_be_visible()
    assert starts(console, call) == 2


def test_two_tabs_replay_once_and_the_second_hears_it(console: Console, call: str) -> None:
    console.open(f"/calls/{call}")
    with console.another_browser() as other:
        other.goto(console.page.url)
        replay_button(console.page).click()
        expect(console.page.get_by_text("Replayed with the recorded payload")).to_be_visible()
        replay_button(other).click()
        expect(other.get_by_text("It was replayed meanwhile, and was not started once more")).to_be_visible()
    assert starts(console, call) == 2


@pytest.mark.parametrize("status", [None, 502])
def test_a_gateway_that_is_away_is_told_beside_the_button_and_tried_again(
    console: Console, call: str, status: int | None
) -> None:
    """The first try has arrived, and its answer was lost."""
    is_away = [True]

    def answer(route: Route) -> None:
        if not is_away[0]:
            return route.continue_()
        route.fetch()
        return route.abort() if status is None else route.fulfill(status=status, body="Bad gateway")

    console.page.route(REPLAY, answer)
    console.open(f"/calls/{call}")
    button = replay_button(console.page)
    button.click()
    told = console.page.locator("#call header .wrong")
    expect(told).to_contain_text("did not answer" if status is None else "answered 502")
    assert console.violations() == []
    is_away[0] = False
    button.click()
    expect(console.page.get_by_text("It was replayed meanwhile")).to_be_visible()
    expect(told).to_have_count(0)
    assert starts(console, call) == 2
    console.notes.check(but="Failed to load resource")


def token_in(page: str) -> str:
    found = re.search(r'name="once" value="([0-9a-f]+)"', page)
    assert found is not None
    return found[1]


def post(visitor: Client, path: str, **form: str) -> Any:
    return visitor.submit(path, form)


def test_an_edited_copy_is_made_once_by_one_form(outside: Outside, visitor: Client, call: str) -> None:
    form = token_in(visitor.get(f"/calls/{call}/edit").text)
    sent = [post(visitor, f"/calls/{call}/edit", once=form, body='{"n": 2}') for _ in range(3)]
    assert len({(one.status, one.headers["location"].partition("?")[0]) for one in sent}) == 1
    assert len(outside.api.get(f"invocations/{call}").json["editedReplays"]) == 1
    # Somebody went back and changed it: that is another copy.
    post(visitor, f"/calls/{call}/edit", once=form, body='{"n": 3}')
    assert len(outside.api.get(f"invocations/{call}").json["editedReplays"]) == 2
    # A refused one was not done, and the same form is sent again.
    refused = post(visitor, f"/calls/{call}/edit", once="ab", body="{")
    assert (refused.status, post(visitor, f"/calls/{call}/edit", once="ab", body="{").status) == (422, 422)


@pytest.mark.parametrize("value", ["", "nobody's", "a" * 500, "\N{BELL}"])
def test_a_value_that_no_page_of_ours_has_is_no_value(
    outside: Outside, visitor: Client, call: str, value: str
) -> None:
    for _ in range(2):
        assert post(visitor, f"/calls/{call}/notes", once=value, text="seen").status == 303
    assert len(outside.api.get(f"invocations/{call}").json["notes"]) == 2


def test_a_form_that_stays_asks_for_something_new_the_next_time(console: Console) -> None:
    webhook = console.webhook(name="Tried twice")
    console.open(f"/webhooks/{webhook['id']}/ready")
    calls = f"invocations?webhookId={webhook['id']}"
    for _ in range(2):
        console.click("Send it")
        expect(console.page.get_by_role("button", name="Send it")).to_be_enabled()
    wait_until(lambda: len(console.api.get(calls).json["items"]) == 2, what="both test calls")


def test_the_same_settings_sent_twice_are_nobody_else_s(outside: Outside, visitor: Client) -> None:
    webhook = outside.webhook(name="Saved twice")
    at = f"/webhooks/{webhook['id']}/settings"
    page = visitor.get(at).text
    hidden = {
        name: unescape(value) for name, value in re.findall(r'name="(version|seen)" value="([^"]*)"', page)
    }
    target = {"url": "https://erp.example.com/x", "forward": "trigger", "timeoutSeconds": "", "headers": ""}
    filled = {"name": "Another", "folder": "", "tags": ""} | {f"target.{one}": target[one] for one in target}
    sent = [visitor.submit(at, hidden | filled) for _ in range(2)]
    notices = [one.headers["location"] for one in sent]
    assert notices == [f"{at}?notice=saved"] * 2
    # Somebody else has changed something that stands in the same form.
    assert outside.api.patch(f"webhooks/{webhook['id']}", {"tags": ["theirs"]}).status == 200
    sent = visitor.submit(at, {**hidden, "name": "Another", "folder": "", "tags": ""})
    assert sent.headers["location"] == f"{at}?notice=merged"


@pytest.mark.parametrize("status", [None, 503])
def test_settings_that_could_not_be_saved_say_so_where_one_stands(
    console: Console, visitor: Client, status: int | None
) -> None:
    webhook = console.webhook(name="Kept while typing")
    page = console.page

    def answer(route: Route) -> None:
        if route.request.method != "POST":
            return route.continue_()
        return route.abort() if status is None else route.fulfill(status=status, body=AWAY)

    page.route(re.compile("/settings$"), answer)
    console.open(f"/webhooks/{webhook['id']}/settings#name-and-tags")
    page.get_by_label("Name", exact=True).fill("Typed with care")
    console.click("Save")
    bar = page.locator(".save-bar p")
    expect(bar).to_have_text(re.compile("did not answer" if status is None else "The disk is full"))
    expect(bar).to_be_in_viewport()
    assert console.violations() == []
    expect(page.get_by_label("Name", exact=True)).to_have_value("Typed with care")
    assert page.evaluate("document.getElementById('settings').dataset.changed === ''"), "it is not saved"
    page.unroute_all()  # else a request goes on only while the browser is asked something
    console.save()
    assert console.settings_of(webhook)["name"] == "Typed with care"
    page.get_by_label("Name", exact=True).fill("And again")  # its button is awake
    console.click("Save")
    wait_until(lambda: console.settings_of(webhook)["name"] == "And again", what="the second save")
    console.notes.check(but="Failed to load resource")


AWAY = """<main><div role="alert" hidden>Another</div><div class="notice" role="alert">The disk is full.</div></main>"""
