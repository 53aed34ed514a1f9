"""What pages look like where it is not the usual screen: on paper, in the system's own colours, with long names, on slow lines."""

from typing import Any

import pytest
from playwright.sync_api import expect

from surfaces.console.conftest import Console

LONG = "x" * 120


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return {}


@pytest.fixture
def webhook(console: Console, made: dict[str, Any]) -> dict[str, Any]:
    if not made:
        made |= console.webhook(
            name=f"Long {LONG}",
            authentication={"method": "hmac", "provider": "stripe", "secret": "whsec_" + "a" * 32},
        )
        console.call(made["url"], {LONG * 2: LONG * 3})
    return made


@pytest.mark.parametrize("width", [1280, 390])
def test_a_long_name_widens_no_page(console: Console, webhook: dict[str, Any], width: int) -> None:
    page = console.page
    page.set_viewport_size({"width": width, "height": 800})
    for path in (
        "/webhooks",
        f"/webhooks/{webhook['id']}",
        f"/webhooks/{webhook['id']}/ready",
        "/history",
        "/live",
    ):
        console.open(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_a_list_on_paper_is_the_list_alone(console: Console, webhook: dict[str, Any]) -> None:
    console.open("/history")
    console.page.emulate_media(media="print")
    expect(console.page.locator("table.calls")).to_be_visible()
    for gone in ("aside.side", "#filters", "main .actions button >> nth=0"):
        expect(console.page.locator(gone)).to_be_hidden()


def test_in_the_systems_own_colours_one_sees_where_one_is(console: Console, webhook: dict[str, Any]) -> None:
    page = console.page
    page.emulate_media(forced_colors="active")
    console.open(f"/webhooks/{webhook['id']}")
    styled = "(one, name) => getComputedStyle(one)[name]"
    assert page.locator(".tabs [aria-current]").evaluate(styled, "borderBlockEndWidth") == "3px"
    assert page.locator(".nav [aria-current]").evaluate(styled, "outlineStyle") == "solid"
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_a_list_that_is_on_its_way_is_busy_until_it_is_there(
    console: Console, webhook: dict[str, Any]
) -> None:
    page = console.page
    console.open("/history")
    held: list[Any] = []
    page.route("**/history?*status=rejected*", lambda route: held.append(route))
    page.get_by_label("Status").select_option("rejected")
    expect(page.locator("#calls")).to_have_attribute("aria-busy", "true")
    held[0].continue_()
    expect(page.locator("#calls[aria-busy]")).to_have_count(0)
    expect(page.locator("table.calls tbody tr").first).to_be_visible()


def test_a_chart_knows_how_long_the_sender_waits(console: Console, webhook: dict[str, Any]) -> None:
    console.open(f"/webhooks/{webhook['id']}")
    expect(console.page.locator(".legend .limit")).to_have_text("Stripe waits 30 s")
