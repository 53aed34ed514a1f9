"""From signing in to a workflow that was begun from a call, as somebody who has never seen Postern goes: few clicks, few
pages, few words, and nothing on the way that is not so."""

import ast
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from support.browser import new_context
from support.client import PASSWORD, admin_of
from support.program import Program, StartProgram

CLICKS, PAGES, WORDS = 12, 6, 700


class Visitor:
    """Counts what it clicks, the pages it comes to, and the words of each that are in sight."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0
        self.words: list[tuple[str, int]] = []

    def reads(self) -> None:
        text = self.page.locator("main, form").first.inner_text()
        self.words.append((self.page.url, len(re.findall(r"\w[\w'’.-]*", text))))

    def clicks_on(self, name: str | re.Pattern[str], role: str = "button") -> None:
        self.clicks += 1
        self.page.get_by_role(role, name=name, exact=isinstance(name, str)).first.click()  # type: ignore[arg-type]

    def comes_to(self, pattern: str) -> None:
        self.page.wait_for_url(pattern)
        self.page.wait_for_load_state("load")
        self.reads()


@pytest.fixture
def program(start_program: StartProgram) -> Program:
    return start_program(POSTERN_ADMIN_PASSWORD=PASSWORD)


@pytest.fixture
def visitor(browser: Browser, program: Program) -> Iterator[Visitor]:
    context = new_context(browser, reduced_motion="reduce")
    yield Visitor(context.new_page())
    context.close()


def done(page: Page) -> list[bool]:
    return ["ok" in (one.get_attribute("class") or "") for one in page.locator("#steps li").all()]


def test_the_first_hour_is_short_and_says_nothing_wrong(visitor: Visitor, program: Program) -> None:
    page, api = visitor.page, admin_of(program)
    page.goto(program.url)
    visitor.reads()
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    visitor.clicks_on("Sign in")
    visitor.comes_to("**/webhooks")
    visitor.clicks_on("New webhook", "link")
    visitor.comes_to("**/webhooks/new")
    visitor.clicks_on(re.compile("A service that signs its webhooks"), "link")
    visitor.comes_to("**/new/signed")
    visitor.clicks_on(re.compile("^Stripe"), "link")
    visitor.comes_to("**/new/signed?*")
    page.get_by_label("Signing secret").fill("whsec_" + "a" * 32)
    visitor.clicks_on("Create webhook")
    visitor.comes_to("**/ready*")
    webhook = page.url.split("/")[4]

    steps = page.locator("#steps li")
    expect(steps).to_have_count(4)
    assert done(page) == [True, False, False, False]
    made = api.get(f"webhooks/{webhook}").json
    assert not made["authentication"]["secretAwaited"]
    assert made["duplicateProtection"]["windowSeconds"] == 72 * 3600  # for so long Stripe may send one again
    expect(page.get_by_role("link", name="Open Stripe's page for it")).to_have_attribute(
        "href", re.compile("^https://dashboard.stripe.com/")
    )
    visitor.clicks_on("Send it")
    expect(steps.nth(1)).to_have_class("ok")
    (call,) = api.get("invocations").json["items"]
    assert call["code"] == "accepted"
    expect(steps.nth(3).get_by_role("link", name="Begin a workflow from this call")).to_be_visible()

    visitor.clicks_on("Choose what the workflow gets", "link")
    visitor.comes_to("**/mapping")
    visitor.clicks_on(re.compile("checkout.session.completed"))
    visitor.clicks_on(re.compile("Field one"))
    expect(page.get_by_text("Mapped. The next call")).to_be_visible()
    assert api.get(f"webhooks/{webhook}").json["fieldMapping"]["fieldOne"] == "type"

    with page.expect_download() as begun:
        visitor.clicks_on("Begin a workflow from this call", "link")
    source = begun.value.path().read_text()
    ast.parse(source)
    assert webhook in source and "checkout" not in source, "types and no values"
    page.goto(f"{program.url}/webhooks/{webhook}/ready")  # no step of theirs: what the list says now
    assert done(page) == [True, True, True, False]
    assert begun.value.suggested_filename.endswith(".py")

    words = sum(number for _, number in visitor.words)
    assert visitor.clicks <= CLICKS, visitor.clicks
    assert len(visitor.words) - 1 <= PAGES, visitor.words  # behind the one where they signed in
    assert words <= WORDS, (words, visitor.words)
