"""The Live Request Inspector stays readable and quick whatever comes."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import pytest
from playwright.sync_api import Route, expect

from postern.core.history.invocation import HistoryFilter
from postern.surfaces.console.views.history import live as live_view
from postern.surfaces.console.visit import Visit
from postern.usecases.history.live import Batch
from postern.usecases.runtime.live_feed import LiveEvent
from postern.usecases.summary import InvocationSummary
from support.waiting import wait_until
from surfaces.console.conftest import Console, Outside

WATCH = """
    () => {
      Object.assign(window, { frames_: 0, puts: 0, said: 0, began: performance.now() });
      const frame = () => { frames_ += 1; requestAnimationFrame(frame); };
      frame();
      new MutationObserver(() => puts++).observe(document.querySelector("[data-live]"), { childList: true });
      const line = document.getElementById("announced");
      new MutationObserver(() => line.textContent && said++).observe(line, { childList: true });
    }
"""


@pytest.fixture(scope="module")
def urls(outside: Outside) -> dict[str, str]:
    return {name: outside.webhook(name=name)["url"] for name in ("Quick one", "Other one")}


@pytest.fixture
def live(console: Console, urls: dict[str, str]) -> dict[str, str]:
    """Two webhooks' URLs, and the page of all calls."""
    console.open("/calls?live=1")
    expect(console.page.locator("[data-live-state]")).to_have_text("Listening")
    return urls


def burst(console: Console, url: str, calls: int) -> None:
    with ThreadPoolExecutor(8) as callers:
        for status, _ in callers.map(lambda number: console.call(url, {"n": number}), range(calls)):
            assert status == 200


def test_a_burst_is_counted_and_then_the_newest_calls_are_listed(console: Console) -> None:
    without_limit = {"callsPerSecond": 10_000, "burst": 10_000}
    webhook = console.webhook(name="Bursting", rateLimit=without_limit)
    console.open(f"/calls?webhook={webhook['id']}&live=1")
    expect(console.page.locator("[data-live-state]")).to_have_text("Listening")
    console.page.evaluate(WATCH)
    burst(console, webhook["url"], 240)
    counted = console.page.locator(".counted")
    expect(counted).to_contain_text("were counted, not listed")
    row = counted.locator("tr", has_text="This webhook")
    rows = console.page.locator("[data-live] tr")
    total = row.locator("td").nth(1)
    wait_until(
        lambda: total.inner_text() == counted.get_attribute("data-calls"), what="the row to have them all"
    )
    # What the page does not list, it counts: nothing is lost between the two.
    left = console.page.locator("[data-live-left] span")

    def in_all() -> int:
        return int(re.sub(r"\D", "", left.inner_text())) + rows.count()

    def is_so() -> bool:
        # A gateway that is too slow to follow says how many changes it has left out: it knows of no call twice.
        return in_all() == 240 or (in_all() > 240 and left.inner_text().startswith("Up to "))

    wait_until(is_so, what=lambda: f"{in_all()} calls, listed or counted, to become 240: {left.inner_text()}")
    assert 0 < rows.count() <= 100
    assert console.page.evaluate("puts <= frames_"), "the rows are put in place once a frame"
    assert (
        1 <= console.page.evaluate("said") <= console.page.evaluate("1 + (performance.now() - began) / 1000")
    )
    assert console.violations() == []
    console.page.get_by_role("link", name="Find them in the list").click()
    console.page.wait_for_url(f"**/calls?webhook={webhook['id']}")


def events_of_the_stream(console: Console, live: dict[str, str]) -> Callable[[str], str]:
    """That a call of this id has come: the row of a real one under another id."""
    call = console.called(live["Other one"])
    row = console.page.locator(f"#call-{call}")
    expect(row).to_be_visible()
    markup = row.evaluate("row => row.outerHTML").replace("\n", " ")
    fresh = markup.replace("<tr ", '<tr class="fresh" ', 1)
    return lambda one: f"event: call\ndata: {fresh.replace(call, one)}\n\n"


def test_a_row_that_is_there_already_is_not_counted_as_well(console: Console, live: dict[str, str]) -> None:
    """A stream that begins again tells of calls that the page has, and of more than it has room for."""
    event_of = events_of_the_stream(console, live)
    ids = [f"inv_{number:032x}" for number in range(150)]
    told = [ids[:50], [*ids[:5], *ids[50:]], []]

    def stream(route: Route) -> None:
        now = told.pop(0) if len(told) > 1 else told[0]
        events = "".join(map(event_of, now))
        body = f"retry: {50 if now else 60_000}\nevent: listening\ndata: 1\n\n{events}"
        route.fulfill(content_type="text/event-stream", body=body)

    console.page.route("**/live/stream*", stream)
    console.page.reload()
    expect(console.page.locator("[data-live] tr")).to_have_count(100)
    expect(console.page.locator("[data-live-left]")).to_contain_text(
        "50 more calls came than this page lists"
    )


def test_a_row_that_is_told_anew_while_it_is_pressed_opens(console: Console, live: dict[str, str]) -> None:
    page, event = console.page, events_of_the_stream(console, live)(f"inv_{1:032x}")
    events = [event]

    def stream(route: Route) -> None:
        body = f"retry: 50\nevent: listening\ndata: 1\n\n{events.pop() if events else ''}"
        route.fulfill(content_type="text/event-stream", body=body)

    page.route("**/live/stream*", stream)
    page.reload()
    row = page.locator(f"#call-inv_{1:032x}")
    row.locator("a.opens").hover()
    page.mouse.down()
    events.append(event)
    for _ in range(3):  # what one stream says is taken before the next one is asked for
        with page.expect_request("**/live/stream*"):
            pass
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.mouse.up()
    expect(row).to_have_attribute("aria-current", "true")


def test_when_a_burst_is_over_the_page_hears_which_of_the_newest_calls_it_has_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy machine calls are recorded of which the stream has not told yet."""

    async def itself(_: object, item: object) -> object:
        return item

    def told(name: str, _: str, **context: Any) -> str:
        return f"{name} {context['one'].id}, counted: {context['is_counted']}" if "one" in context else name

    monkeypatch.setattr(live_view, "row_of", itself)
    monkeypatch.setattr(live_view, "_event", told)
    heard, recorded = (
        SimpleNamespace(id=f"inv_{n:032x}", webhook_id="wh_1", status="delivered", address="") for n in (1, 2)
    )

    async def newest(*_: object) -> object:
        return SimpleNamespace(items=[recorded, heard])

    visit = SimpleNamespace(ask=newest, query={}, actor=SimpleNamespace(may=bool))
    page = live_view.LivePage(cast(Visit, visit), HistoryFilter(webhook_id="wh_1"), 25)
    page.crowd.began = -10.0
    telling = page._lines_of(Batch([LiveEvent("invocation", cast(InvocationSummary, heard))], 0), 0.0)
    with pytest.raises(StopIteration) as told_all:
        telling.send(None)  # it waits for nothing, and a loop is the browser's here
    lines = told_all.value.value
    counted = [line.partition("call ")[2] for line in lines if "call " in line]
    assert counted == [f"{heard.id}, counted: True", f"{recorded.id}, counted: False"]


def test_what_was_counted_and_is_listed_then_is_taken_off_the_count(
    console: Console, live: dict[str, str]
) -> None:
    event_of = events_of_the_stream(console, live)
    rows = [
        event_of(f"inv_{number:032x}").replace(' class="fresh"', kind)
        for number, kind in enumerate((" data-counted", "", ""))
    ]
    table = '<section class="counted" data-calls="{}" data-rate="30" {}></section>'
    table = "event: counted\ndata: " + table + "\n\n"
    streams = [table.format(8, ""), table.format(5, "") + table.format(10, "data-over") + "".join(rows)]

    def stream(route: Route) -> None:
        events = streams.pop(0) if streams else ""
        body = f"retry: {50 if streams else 60_000}\nevent: listening\ndata: 1\n\n{events}"
        route.fulfill(content_type="text/event-stream", body=body)

    console.page.route("**/live/stream*", stream)
    console.page.reload()
    expect(console.page.locator(f"#call-inv_{2:032x}")).to_be_visible()
    expect(console.page.locator("[data-live-left]")).to_contain_text(
        "17 more calls came than this page lists"
    )


def test_only_what_was_asked_for_is_listed(console: Console, live: dict[str, str]) -> None:
    page = console.page
    console.ask('webhook:"Other one"')
    page.wait_for_url("**/calls?webhook=*")
    console.click("Live Request Inspector", "switch")
    expect(page.locator("[data-live-state]")).to_have_text("Listening")
    left_out, wanted = console.called(live["Quick one"]), console.called(live["Other one"])
    expect(page.locator(f"#call-{wanted}")).to_be_visible()
    assert page.locator(f"#call-{left_out}").count() == 0
    page.goto(page.url + "&status=rejected")
    expect(page.locator("[data-live-state]")).to_have_text("Listening")
    console.call(live["Other one"], {})
    rejected = console.called(live["Other one"], b"no json")
    expect(page.locator(f"#call-{rejected}")).to_be_visible()
    assert page.locator("[data-live] tr").count() == 1
    page.reload()
    expect(page.locator(f"#call-{rejected}")).to_be_visible()


def test_a_tab_in_the_background_says_how_many_have_come(console: Console, live: dict[str, str]) -> None:
    page = console.page
    hide = "hidden => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true }); document.dispatchEvent(new Event('visibilitychange')); }"
    page.evaluate(hide, True)
    expect(page.locator("[data-live-state]")).to_have_text("Paused")
    console.call(live["Other one"], {})
    console.call(live["Other one"], {})
    wait_until(lambda: page.title().startswith("(2) "), what="the count in the title")
    assert "mark-news" in (page.locator("link[rel=icon]").get_attribute("href") or "")
    page.evaluate(hide, False)
    wait_until(lambda: not page.title().startswith("("), what="the title to be as before")
    assert "mark-news" not in (page.locator("link[rel=icon]").get_attribute("href") or "")
    expect(page.locator("[data-live-state]")).to_have_text("Listening")
