"""Every page: nothing for axe to find in light and in dark, nothing to scroll sideways on a phone, nothing
that needs a mouse."""

import re
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import BrowserContext, expect

from support.program import Program
from support.stored import open_incident
from surfaces.console.conftest import Console

PAGES = [
    "/webhooks",
    "/webhooks?search=nothing-is-called-this",
    "/webhooks/new",
    "/webhooks/new/tool",
    "/webhooks/new/signed",
    "/webhooks/new/signed?call={rejected}",
    "/webhooks/new/signed?provider=stripe",
    "/webhooks/new/signed?provider=custom",
    "/webhooks/new/browser",
    "/webhooks/new/schedule",
    "/webhooks/new/other",
    "/webhooks/{token}/ready",
    "/webhooks/{signed}",
    "/webhooks/{signed}/settings#secrets",
    "/webhooks/{token}/settings#authentication",
    "/webhooks/{signed}/settings?start=stripe",
    "/webhooks/{signed}/schedule",
    "/webhooks/{signed}/settings?zone=UTC#alarms",
    "/webhooks/{signed}/calls",
    "/webhooks/{signed}/calls?live=1",
    "/webhooks/{signed}/rejected",
    "/webhooks/{signed}/send-again",
    "/bin",
    "/documentation",
    "/documentation/how-to/duplicates",
    "/documentation/reference/commands",
    "/find",
    "/find?find=sho",
    "/calls?value=1234&address=127.0.0.1",
    "/calls",
    "/calls?search=not-there",
    "/calls/{accepted}",
    "/calls/{rejected}",
    "/calls/{accepted}/edit",
    "/calls/{accepted}/compare?to={rejected}",
    "/replays",
    "/incidents",
    "/incidents/{incident}",
    "/volume",
    "/tester",
    "/workflows",
    "/settings",
    "/settings/users",
    "/settings/sessions",
    "/settings/connect",
    "/settings/channels",
    "/settings/retention",
    "/settings/engine",
    "/settings/environment",
    "/settings/audit",
    "/settings/password",
]


@pytest.fixture(scope="module")
def reader(known_browser: BrowserContext, signed_in: Any, program: Program) -> Console:
    """One page that goes from address to address, with axe: each of its documents would be handed it otherwise."""
    page = known_browser.new_page()
    page.add_init_script(AXE_SCRIPT)
    return Console(page, program)


@pytest.fixture(scope="module")
def known(reader: Console) -> dict[str, str]:
    """What the addresses name."""
    two = {"method": "hmac", "provider": "shopify", "secret": "right", "secondSecret": "next"}
    signed = reader.webhook(name="Shop", authentication=two)
    token = reader.webhook(name="Tool", authentication={"method": "token", "token": "a token of the tests"})
    assert reader.api.post("replays", {"filter": {"webhookId": signed["id"]}}).status == 201
    body = b'{"order_number":1234,"customer":{"email":"ada@example.com"},"items":[{"sku":"TEA"}]}'
    return {
        "signed": signed["id"],
        "token": token["id"],
        "accepted": reader.sold(signed, body)[1],
        "rejected": reader.sold(signed, body, "other")[1],
        "incident": open_incident(reader.program.data_dir, signed["id"]),
    }


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_in_light_and_in_dark_and_a_phone_shows_all_of_it(
    reader: Console, known: dict[str, str], path: str
) -> None:
    reader.page.set_viewport_size({"width": 1280, "height": 860})
    reader.page.emulate_media(color_scheme="light", reduced_motion="reduce")
    reader.open(path.format(**known))
    assert reader.violations() == []
    reader.page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    assert reader.colour_violations() == []
    reader.page.set_viewport_size({"width": 360, "height": 740})
    reader.fits("nothing")
    reader.nothing_went_wrong()


def test_axe_reads_every_field_and_the_colours_of_what_is_alike(reader: Console) -> None:
    fields = '<p><label>Name <input name="name"></label></p>' * 4 + '<p><input name="unlabelled"></p>'
    pale = "<i>one</i><i>two</i><i style='color: #999'>pale</i>"
    reader.page.goto("about:blank")  # where styles may stand in the page
    reader.page.set_content(
        f"<html lang=en><title>Faults</title><main><h1>Faults</h1>{fields}<p>{pale}</p></main></html>"
    )
    assert sorted(one.partition(":")[0] for one in reader.violations()) == ["color-contrast", "label"]
    assert [one.partition(":")[0] for one in reader.colour_violations()] == ["color-contrast"]


def test_an_opened_call_and_an_open_dialog_are_clean_too(console: Console, known: dict[str, str]) -> None:
    console.open(f"/webhooks/{known['signed']}/calls?live=1")
    console.page.locator("table.calls a.opens").first.click()
    expect(console.page.locator("[data-panel] .trace")).to_be_visible()
    assert console.violations() == []
    console.open("/webhooks")
    console.click("Actions for Shop")
    console.page.locator(".menu:popover-open").get_by_role("button", name="Delete").click()
    expect(console.page.get_by_role("dialog", name="Delete Shop?")).to_be_visible()
    assert console.violations() == []


def test_the_chosen_theme_stays(console: Console, known: dict[str, str]) -> None:
    console.open("/webhooks")
    console.page.locator(".who").click()
    console.click("Dark")
    expect(console.page.locator("html")).to_have_attribute("data-theme", "dark")
    console.open("/calls")
    assert console.page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"


def test_the_menu_opens_on_a_phone(console: Console, known: dict[str, str]) -> None:
    console.page.set_viewport_size({"width": 360, "height": 740})
    console.open("/webhooks")
    expect(console.page.get_by_role("link", name="Calls", exact=True)).to_be_hidden()
    console.click("Menu")
    console.page.get_by_role("navigation", name="Main").get_by_role("link", name="Calls").click()
    console.page.wait_for_url("**/calls")


def test_typing_narrows_the_list_without_a_reload(console: Console, known: dict[str, str]) -> None:
    console.open("/webhooks")
    console.page.get_by_label("Search webhooks").press_sequentially("tool")
    expect(console.page.get_by_role("link", name="Shop", exact=True)).to_be_hidden()
    expect(console.page.get_by_role("link", name="Tool", exact=True)).to_be_visible()
    expect(console.page).to_have_url(re.compile("search=tool"))
