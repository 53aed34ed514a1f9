"""What pages look like where it is not the usual screen: on paper, in the system's own colours, with long names, on slow lines."""

from typing import Any

import pytest
from playwright.sync_api import expect

from support.browser import Held
from surfaces.console.conftest import Console, Outside, Plain
from surfaces.console.plain import words

LONG = "x" * 120


@pytest.fixture(scope="module", autouse=True)
def webhook(outside: Outside) -> dict[str, Any]:
    made = outside.webhook(
        name=f"Long {LONG}",
        folder=LONG[:60],
        tags=["y" * 40],
        authentication={"method": "hmac", "provider": "stripe", "secret": "whsec_" + "a" * 32},
    )
    outside.call(made["url"], {LONG * 2: LONG * 3})
    return made


def test_columns_and_tall_rows_are_chosen_and_stay_so(console: Console, webhook: dict[str, Any]) -> None:
    page, view = console.page, console.page.get_by_role("button", name="View")
    console.open("/calls")
    row, whose = page.locator("table.calls tbody tr").first, page.locator("table.calls .whose")
    low = row.evaluate("(one) => one.offsetHeight")
    view.click()
    assert console.violations() == []
    for name in ("Webhook", "Tall rows"):
        page.get_by_label(name, exact=True).click()
    for again in (lambda: None, page.reload, lambda: console.open(f"/calls?webhook={webhook['id']}")):
        again()
        expect(whose.first).to_be_hidden()
        assert row.evaluate("(one) => one.offsetHeight") > low + 8
    view.click()
    page.get_by_label("Webhook", exact=True).check()
    expect(whose.first).to_be_visible()
    page.get_by_label("Tall rows").uncheck()  # the browser keeps it for the tests that come
    assert row.evaluate("(one) => one.offsetHeight") == low


def test_a_call_beside_its_list_has_as_many_columns_as_fit(console: Console) -> None:
    page, shop = console.page, console.shop("Shop beside", "right")
    assert console.sold(shop, b"{}", "wrong")[0] == 401
    page.set_viewport_size({"width": 1920, "height": 1080})
    console.open(f"/webhooks/{shop['id']}/calls")
    page.locator("table.calls a.opens").first.click()
    parts = page.locator("[data-panel] .call-columns > section")
    expect(parts).to_have_count(2)
    assert parts.evaluate_all("(all) => all.map((one) => one.scrollWidth > one.clientWidth)") == [
        False,
        False,
    ]


@pytest.mark.parametrize("width", [1280, 360])
def test_a_long_name_widens_no_page(console: Console, webhook: dict[str, Any], width: int) -> None:
    page = console.page
    page.set_viewport_size({"width": width, "height": 800})
    (call,) = console.api.get(f"invocations?webhookId={webhook['id']}").json["items"]
    for path in (
        f"/calls/{call['id']}",
        "/webhooks",
        f"/webhooks/{webhook['id']}",
        f"/webhooks/{webhook['id']}/ready",
        "/calls",
        "/calls?live=1",
    ):
        console.open(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_a_long_name_pushes_no_column_away(console: Console) -> None:
    gone = console.webhook(name=f"Gone {LONG}")
    assert console.api.delete(f"webhooks/{gone['id']}").status == 204
    for path in ("/webhooks", "/bin", "/settings/audit"):
        console.open(path)
        expect(console.page.locator("td").get_by_text(LONG).first).to_be_visible()
        wider = "[...document.querySelectorAll('.table-wrap')].filter((one) => one.scrollWidth > one.clientWidth).length"
        assert console.page.evaluate(wider) == 0, path
        # Nor is it written over the columns beside it.
        over = """[...document.querySelectorAll('td')].filter((one) => [...one.children].some((part) =>
            part.getBoundingClientRect().right > one.getBoundingClientRect().right + 1)).length"""
        assert console.page.evaluate(over) == 0, path


def test_a_webhook_has_two_lines_on_a_phone(console: Console) -> None:
    usual = console.webhook(name="Of usual length")
    console.page.set_viewport_size({"width": 360, "height": 740})
    console.open(f"/webhooks?search={usual['id']}")
    row = console.page.locator("table.webhooks tbody tr")
    expect(row).to_have_count(1)
    box = row.bounding_box()
    assert box is not None and box["height"] < 100
    for visible in ("Of usual length", "Enabled", "0 calls", "never"):
        expect(row.get_by_role("cell", name=visible, exact=True)).to_be_visible()
    console.open("/webhooks/new/signed")
    console.page.set_viewport_size({"width": 1280, "height": 800})
    first, second = (console.page.locator("#senders > li").nth(place).bounding_box() for place in (0, 1))
    assert first is not None and second is not None and first["y"] == second["y"]  # beside each other


def test_what_strangers_send_turns_and_hides_nothing(console: Console) -> None:
    hostile = console.webhook(name="Hostile", fieldMapping={"fieldOne": "a", "fieldTwo": "b"})
    assert console.call(hostile["url"], {"a": "\u202egnp.exe", "b": "nul\x00", "c\u2066": 1})[0] == 200
    page = console.page
    marks = page.locator(".m[data-m='U+202E']")
    console.open(f"/calls?webhook={hostile['id']}")
    expect(page.locator("td.what").locator(marks)).to_have_count(1)
    expect(page.locator("td.what .m[data-m=NUL]")).to_have_count(1)
    page.locator("td.what a").click()
    expect(page.locator("[data-panel] .facts").locator(marks)).to_have_count(1)
    expect(page.locator(".tree .value").locator(marks)).to_have_count(1)
    expect(page.locator(".tree .key .m[data-m='U+2066']")).to_have_count(1)
    page.get_by_role("link", name="Pretty").click()
    expect(page.locator(".sent pre")).to_contain_text('"\\u202egnp.exe"')
    console.open(f"/webhooks/{hostile['id']}/settings#mapping")
    expect(page.locator("#slots").locator(marks)).to_have_count(1)
    for path in (f"/calls?webhook={hostile['id']}", f"/webhooks/{hostile['id']}/settings#mapping"):
        console.open(path)
        assert "\u202e" not in page.locator("main").inner_text(), path


def test_a_value_of_a_megabyte_is_shown_by_its_beginning(plain: Plain) -> None:
    large = plain.webhook(name="Large", fieldMapping={"fieldOne": "a"})
    call, page = plain.called(large["url"], {"a": "x" * 900_000}), f"/webhooks/{large['id']}"
    for path in (f"/calls/{call}", f"/calls/{call}/edit", f"{page}/settings", f"{page}/calls"):
        plain.open(path)
        assert len(plain.html) < 130_000, (path, len(plain.html))


@pytest.mark.parametrize("width", [360, 1280])
def test_the_menu_of_a_value_opens_within_the_window(console: Console, width: int) -> None:
    mapped = console.webhook(name="Mapped", fieldMapping={"fieldTwo": "a_rather_long_name." * 8 + "end"})
    call = console.called(mapped["url"], {"short": "paid", "far": {"right": "paid"}})
    page = console.page
    page.set_viewport_size({"width": width, "height": 800})
    console.open(f"/calls/{call}?show=tree")
    menu = page.locator("#map:popover-open")
    for path in ("short", "far.right"):
        page.locator(f"[data-map='{path}']").click()
        expect(menu.locator("[data-map-path]")).to_have_text(path)
        there = menu.bounding_box()
        assert there is not None and there["x"] >= 0 and there["x"] + there["width"] <= width
        between = menu.get_by_role("button", name="Copy path").evaluate(
            "one => { const text = document.createRange(); text.selectNode(one.lastChild); return text.getBoundingClientRect().left - one.firstElementChild.getBoundingClientRect().right; }"
        )
        assert between < 30, "the words stand beside their picture"
        page.keyboard.press("Escape")
        expect(menu).to_have_count(0)


def test_what_moves_all_day_is_not_painted_anew_for_each_frame(console: Console) -> None:
    console.page.emulate_media(reduced_motion="no-preference")
    console.open("/calls?live=1")
    expect(console.page.locator(".pulse.on")).to_be_visible()
    moving = """document.getAnimations().filter((one) => one.effect.getTiming().iterations === Infinity)
        .flatMap((one) => one.effect.getKeyframes().flatMap((frame) => Object.keys(frame)))"""
    always = {"offset", "computedOffset", "easing", "composite"}
    assert set(console.page.evaluate(moving)) - always == {"transform", "opacity"}


def test_a_mapping_that_finds_nothing_is_no_success(plain: Plain) -> None:
    lost = plain.webhook(name="Lost field", fieldMapping={"fieldOne": "here", "fieldTwo": "not.there"})
    for body, mark in (({"here": 1}, "short"), ({"here": 1, "not": {"there": 2}}, "ok")):
        plain.open(f"/calls/{plain.called(lost['url'], body)}")
        (told,) = (one for one in plain.root.iterfind(".//ol/li") if "Field mapping" in words(one))
        assert mark in told.get("class", "").split()


def test_a_list_on_paper_is_the_list_alone(console: Console) -> None:
    console.open("/calls")
    console.page.emulate_media(media="print")
    expect(console.page.locator("table.calls")).to_be_visible()
    for gone in ("aside.side", "#asked", "main .tabs-row"):
        expect(console.page.locator(gone)).to_be_hidden()


def test_a_call_on_paper_has_all_of_its_text_and_nothing_to_press(
    console: Console, webhook: dict[str, Any]
) -> None:
    newest = console.api.get(f"invocations?webhookId={webhook['id']}").json["items"][0]["id"]
    console.open(f"/calls/{newest}?show=pretty")
    page = console.page
    page.emulate_media(media="print")
    body = page.get_by_label("body, indented", exact=True)
    expect(body).to_be_visible()
    assert body.evaluate("(one) => one.scrollWidth <= one.clientWidth")
    shown = "[...document.querySelectorAll('main button')].filter((one) => one.checkVisibility()).length"
    assert page.evaluate(shown) == 0


def test_in_the_systems_own_colours_what_is_on_differs_from_what_is_off(
    console: Console, webhook: dict[str, Any]
) -> None:
    page = console.page
    page.emulate_media(forced_colors="active")
    console.open(f"/webhooks/{webhook['id']}/settings#duplicates")
    page.get_by_role("link", name="Authentication").click()
    page.get_by_text("Advanced settings").click()
    ground = "(one) => getComputedStyle(one).backgroundColor"
    one, other = (
        page.get_by_label(label)
        for label in ("Duplicate delivery protection", "Pages of other sites may call")
    )
    one.set_checked(True)
    other.set_checked(False)
    assert one.evaluate(ground) != other.evaluate(ground)
    badge = page.locator("h1 .badge").first
    assert badge.evaluate("(one) => getComputedStyle(one).borderTopWidth") == "1px"


def test_a_list_that_is_on_its_way_is_busy_until_it_is_there(console: Console) -> None:
    page = console.page
    console.open("/calls")
    held = Held(page, "**/calls?*status*rejected*")
    console.ask("status:rejected")
    expect(page.locator("#calls-page")).to_have_attribute("aria-busy", "true")
    held.let_one_go()
    expect(page.locator("#calls-page[aria-busy]")).to_have_count(0)
    expect(page.locator("table.calls tbody tr").first).to_be_visible()


@pytest.mark.parametrize(
    ("path", "field", "opened_by"),
    [
        ("/webhooks", "Search webhooks", ""),
        ("/volume", "Find anything", "Control+k"),
    ],
)
def test_on_a_slow_line_what_was_typed_last_is_what_is_looked_for(
    console: Console, path: str, field: str, opened_by: str
) -> None:
    page = console.page
    console.open(path)
    if opened_by:
        page.keyboard.press(opened_by)
    page.route("**=Lon*", lambda route: None)  # these are never answered
    for typed in ("Lon", "Long", "Long x"):
        asked = f"={typed.replace(' ', '+')}"
        with page.expect_request(
            lambda sent, asked=asked: sent.url.partition("&")[0].endswith(asked) or f"{asked}&" in sent.url
        ):  # type: ignore[misc]
            page.get_by_label(field).fill(typed)
    page.unroute_all(behavior="ignoreErrors")


def test_a_chart_knows_how_long_the_sender_waits(plain: Plain) -> None:
    webhook = plain.shop("Watched")
    plain.sold(webhook, b"{}")
    assert "Shopify waits 5 s" in plain.open(f"/volume?webhook={webhook['id']}")


# What is written on a canvas is in no document: each text's box, as it is drawn.
WRITTEN = """
    const draw = CanvasRenderingContext2D.prototype.fillText;
    window.written_ = new Map();
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...more) {
      draw.call(this, text, x, y, ...more);
      const size = this.measureText(text);
      const at = this.getTransform().transformPoint(new DOMPoint(x, y));
      if (!written_.has(this.canvas)) written_.set(this.canvas, []);
      written_.get(this.canvas).push({ text, left: at.x - size.actualBoundingBoxLeft, right: at.x + size.actualBoundingBoxRight,
        top: at.y - size.actualBoundingBoxAscent, bottom: at.y + size.actualBoundingBoxDescent });
    };
"""
TOGETHER = """
    () => [...written_].filter(([canvas]) => canvas.isConnected).flatMap(([, boxes]) => boxes.flatMap((one, place) => boxes.slice(place + 1)
      .filter((two) => one.left < two.right + 3 && two.left < one.right + 3 && one.top < two.bottom + 3 && two.top < one.bottom + 3)
      .map((two) => `${one.text} and ${two.text}`)))
"""


@pytest.mark.parametrize("width", [360, 1280])
def test_no_label_of_a_chart_is_written_over_another(console: Console, width: int) -> None:
    console.page.set_viewport_size({"width": width, "height": 800})
    console.page.add_init_script(WRITTEN)
    for span in ("hour", "day", "week", "month"):
        console.open(f"/volume?range={span}")
        expect(console.page.locator("[data-chart=latency] canvas")).to_be_visible()
        console.page.wait_for_function("written_.size >= 2")
        assert console.page.evaluate(TOGETHER) == [], span
        ranges = console.page.locator(".segments")
        assert ranges.evaluate("one => one.scrollWidth <= one.clientWidth"), "every range can be seen"


def test_the_latest_calls_are_in_sight_when_the_page_opens(console: Console) -> None:
    usual = console.webhook(name="With calls", fieldMapping={"fieldOne": "n"})
    for number in range(5):
        assert console.call(usual["url"], {"n": number})[0] == 200
    console.page.set_viewport_size({"width": 1280, "height": 800})
    console.open(f"/webhooks/{usual['id']}")
    rows = console.page.locator("table.calls tbody tr")
    expect(rows).to_have_count(5)
    expect(rows.last).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("width", [360, 1280])
def test_what_a_list_can_look_like_is_chosen_beside_the_navigation_and_not_over_it(
    console: Console, webhook: dict[str, Any], width: int
) -> None:
    page = console.page
    page.set_viewport_size({"width": width, "height": 800})
    for path in ("/calls", f"/webhooks/{webhook['id']}/calls"):
        console.open(path)
        begins = page.locator("main").bounding_box()
        page.get_by_role("button", name="View", exact=True).click()
        there = page.locator(".menu:popover-open").bounding_box()
        assert begins is not None and there is not None
        assert there["x"] >= begins["x"] and there["x"] + there["width"] <= width, path
        page.keyboard.press("Escape")
