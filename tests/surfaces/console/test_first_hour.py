"""The first hour, as somebody goes through it who has never seen Postern: a Shopify webhook is made and called, two values are
mapped, the caller hears the workflow's answer, a rejected call is explained, admitted and replayed. By mouse and by keyboard,
with few clicks, pages, words and keys, and nothing on the way that is not so."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from support.browser import new_context
from support.client import PASSWORD, admin_of, call, made
from support.program import Program, StartProgram
from surfaces.console.conftest import shopify_signature, sign_in

CLICKS, LOADS, WORDS, KEYS = 12, 6, 700, 120
SECRET, OTHER = "a" * 32, "b" * 32
ANSWERS = """from postern.workflows import Event, respond, workflow

@workflow
def look_up(event: Event) -> None:
    respond({"order": event["fieldOne"]})
"""
COUNTED = """() => {
    const hidden = document.querySelectorAll(".tree, .sent, select");
    hidden.forEach((one) => (one.hidden = true)); // what they sent themselves is not ours to shorten
    const text = document.querySelector("main").innerText;
    hidden.forEach((one) => (one.hidden = false));
    return text;
}"""
FOCUSED = """() => {
    const one = document.activeElement;
    return one.getAttribute("aria-label") ?? (one.labels?.length ? one.labels[0].innerText : one.innerText) ?? "";
}"""
MOST_TABS = 60
GLOSSARY = Path(__file__).resolve().parents[3] / "docs" / "glossary.md"
NOUNS = {
    *("admit", "authentication", "call", "caller", "custom", "event", "mapping", "rejected", "replay"),
    *("response action", "run", "sender", "synchronous response", "trigger", "webhook"),
}
"""The words of the glossary that somebody meets in the first hour: fifteen at most."""


def nouns_in(text: str) -> set[str]:
    """The words of the glossary that it has, as one or several."""
    terms = re.findall(r"^\| \*\*(.+?)\*\* \|", GLOSSARY.read_text(), re.MULTILINE)
    listed = {word.strip() for term in terms for word in term.split(",")}
    plain = text.lower().replace("api credentials", "")  # as a page of Shopify is called
    return {word for word in listed if re.search(rf"\b{word}(s|es)?\b", plain)}


class Visitor:
    """Does what it is told with the mouse or with keys, and counts."""

    def __init__(self, page: Page, with_keys: bool) -> None:
        self.page = page
        self.with_keys = with_keys
        self.clicks = self.keys = self.loads = 0
        self.words: dict[str, int] = {}
        self.nouns: set[str] = set()
        self.page.on("load", self._loaded)

    def _loaded(self, _: Page) -> None:
        self.loads += 1

    def reads(self, what: str) -> None:
        self.counts(what, self.page.evaluate(COUNTED))

    def counts(self, what: str, text: str) -> None:
        self.words[what] = len(re.findall(r"\w[\w'’.-]*", text))
        self.nouns |= nouns_in(text)

    def press(self, key: str) -> None:
        self.keys += 1
        self.page.keyboard.press(key)

    def types(self, text: str) -> None:
        for key in text:
            self.press(key)

    def pastes(self, text: str) -> None:
        self.keys += 1
        self.page.keyboard.insert_text(text)

    def goes_to(self, name: str) -> None:
        """By the Tab key, to what is called so."""
        passed = []
        for _ in range(MOST_TABS):
            if re.search(name, passed[-1] if passed else self.page.evaluate(FOCUSED)):
                return
            self.press("Tab")
            passed.append(self.page.evaluate(FOCUSED))
        raise AssertionError(f"{name} is not reached: {passed}")

    def uses(self, name: str, role: str = "button", key: str = "Enter") -> None:
        if self.with_keys:
            self.goes_to(name)
            self.press(key)
        else:
            self.clicks += 1
            self.page.get_by_role(role, name=re.compile(name)).first.click()  # type: ignore[arg-type]

    def fills(self, label: str, text: str) -> None:
        field = self.page.get_by_label(label, exact=True)
        if self.with_keys:
            self.goes_to(label)
        elif field.evaluate("one => document.activeElement !== one"):
            self.clicks += 1
            field.click()
        self.pastes(text)

    def comes_to(self, pattern: str, what: str) -> None:
        self.page.wait_for_url(pattern)
        self.page.wait_for_load_state("load")
        self.reads(what)


@pytest.fixture
def program(start_program: StartProgram, tmp_path: Path) -> Program:
    (tmp_path / "look_up.py").write_text(ANSWERS)
    return start_program(POSTERN_ADMIN_PASSWORD=PASSWORD, POSTERN_WORKFLOWS=str(tmp_path))


@pytest.fixture(params=[False, True], ids=["mouse", "keyboard"])
def visitor(browser: Browser, program: Program, request: pytest.FixtureRequest) -> Iterator[Visitor]:
    context = new_context(browser, reduced_motion="reduce")
    sign_in(context, program)
    yield Visitor(context.new_page(), request.param)
    context.close()


def calls(url: str, secret: str, order: int) -> tuple[int, str]:
    """As the shop does."""
    body = f'{{"order_number": {order}, "email": "ada@example.com"}}'.encode()
    answer = call(url, body, X_Shopify_Hmac_Sha256=shopify_signature(secret, body))
    return answer.status, answer.text


def test_the_first_hour_is_short_and_says_nothing_wrong(visitor: Visitor, program: Program) -> None:
    page, api = visitor.page, admin_of(program)
    page.goto(program.url + "/webhooks")
    visitor.loads = 0
    visitor.reads("webhooks")
    visitor.uses("^New webhook$", "link")
    visitor.comes_to("**/webhooks/new", "what will trigger it")
    visitor.types("shopify")
    visitor.press("Enter")
    visitor.comes_to("**/new/signed?*", "Shopify")
    visitor.fills("Signing secret", SECRET)
    visitor.uses("^Create webhook$")
    visitor.comes_to("**/ready*", "created")
    webhook = api.get("webhooks").json["items"][0]
    assert (webhook["name"], webhook["authentication"]["secretAwaited"]) == ("Shopify", False)

    visitor.uses("^Send it$")
    expect(page.locator("#test-result")).to_contain_text("Accepted, answered 200")
    expect(page.locator("#steps")).to_contain_text("look_up")  # what it starts
    visitor.uses("^Next: choose what the workflow gets", "link")
    visitor.comes_to("**/settings?first*", "settings")
    visitor.uses("^1234$")
    visitor.uses('^"?jon@example.com"?$')
    visitor.uses("^Synchronous response", "switch", "Space")
    if visitor.with_keys:
        visitor.press("Enter")
    else:
        visitor.uses("^Save$")
    expect(page.locator(".save-bar")).to_contain_text("Saved. It applies from the next call on.")
    saved = api.get(f"webhooks/{webhook['id']}").json
    assert (saved["fieldMapping"]["fieldOne"], saved["fieldMapping"]["fieldTwo"]) == ("order_number", "email")
    assert calls(webhook["url"], SECRET, 1042) == (200, '{"order":"1042"}')

    assert calls(webhook["url"], OTHER, 1043)[0] == 401
    expect(page.locator("[data-live] tr").first).to_contain_text("was made with another secret")
    visitor.uses(r"^1043\sada@example.com\sThe signature", "link")
    opened = page.locator("[data-panel]")
    expect(opened.get_by_text("Most often the secret is that of another shop")).to_be_visible()
    visitor.counts("a rejected call", opened.inner_text())
    visitor.fills("The secret it was signed with", OTHER)
    visitor.uses("^Save it as the second, and admit$")
    expect(opened.get_by_text("Admitted: the call was checked again and accepted.")).to_be_visible()
    expect(opened.get_by_role("button", name="Replay", exact=True)).to_be_visible()
    visitor.uses("^Replay$")
    expect(opened.get_by_text("Replayed with the recorded payload")).to_be_visible()
    visitor.nouns |= nouns_in(opened.inner_text())
    newest = api.get(f"invocations?webhookId={webhook['id']}").json["items"][0]
    assert newest["fields"]["fieldOne"] == "1043"
    assert len(api.get(f"invocations/{newest['id']}").json["deliveries"]) == 2
    assert calls(webhook["url"], OTHER, 1044)[0] == 200

    counted = f"{visitor.clicks} clicks, {visitor.keys} keys, {visitor.loads} loads, {visitor.words}"
    print(counted, sorted(visitor.nouns))
    assert visitor.clicks <= CLICKS, counted
    assert visitor.loads <= LOADS, counted
    assert sum(visitor.words.values()) <= WORDS, counted
    assert not visitor.with_keys or visitor.keys <= KEYS, counted
    assert visitor.nouns <= NOUNS and len(NOUNS) <= 15, sorted(visitor.nouns - NOUNS)


def test_where_no_workflow_hears_it_yet_one_is_begun_from_the_call(
    browser: Browser, start_program: StartProgram
) -> None:
    program = start_program(POSTERN_ADMIN_PASSWORD=PASSWORD)
    webhook = made(program, name="Unheard", fieldMapping={"fieldOne": "secret.of"})
    context = new_context(browser, reduced_motion="reduce")
    sign_in(context, program)
    page = context.new_page()
    page.goto(f"{program.url}/webhooks/{webhook['id']}/ready")
    steps = page.locator("#steps li")
    expect(steps.last).to_contain_text("None does yet")
    page.get_by_role("button", name="Send it").click()
    expect(page.locator("#test-result")).to_contain_text("Accepted, answered 200")
    for path in ("/ready", "", "/settings?first"):
        page.goto(f"{program.url}/webhooks/{webhook['id']}{path}")
        with page.expect_download() as begun:
            page.get_by_role("link", name=re.compile("^Begin a workflow from")).first.click()
        assert begun.value.suggested_filename.endswith(".py")
        source = begun.value.path().read_text()
        ast.parse(source)
        assert webhook["id"] in source and "1001" not in source, "types and no values"
    context.close()
