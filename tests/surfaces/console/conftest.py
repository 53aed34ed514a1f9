"""The console in a real browser, over the real program with the example workflows."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, BrowserContext, Page, expect

from support.browser import WINDOW, Notes, OnePage, new_context, noted
from support.client import PASSWORD, Client, admin_of, call
from support.program import Program
from support.waiting import wait_until
from surfaces.console.plain import Pages

ROOT = Path(__file__).resolve().parents[3]

COLOURS = ["color-contrast", "link-in-text-block"]
"""The rules that colours decide: most of axe's time."""

OPTIONS = {"resultTypes": ["violations"], "selectors": False, "preload": {"assets": ["media"]}}
"""Styles would be read again for rules that are off."""

RUN_AXE = """
    async ({ options, colours }) => {
      const says = new Set(["href", "id", "for", "value", "title", "datetime", "popovertarget", "d", "action"]);
      const word = ({ name, value }) => says.has(name) || /^(data|hx|aria-(label|describedby))/.test(name) ? name : `${name}=${value}`;
      const shapes = new Map();
      const of = new Map();
      const shape = (one) => {
        const inside = [...one.childNodes].map((part) => (part.localName ? shape(part) : part.nodeType === 3 && part.data.trim() ? "text" : ""));
        const text = `<${one.localName} ${[...one.attributes].map(word)}>${[...new Set(inside)].sort()}</>`;
        if (!shapes.has(text)) shapes.set(text, `shape ${shapes.size}`);
        of.set(one, shapes.get(text));
        return of.get(one);
      };
      const more = new Set();
      const thin = (parent) => {
        const seen = {};
        for (const one of parent.children) {
          const like = of.get(one);
          seen[like] = (seen[like] ?? 0) + 1;
          if (seen[like] > 3) [one, ...one.querySelectorAll("*")].forEach((each) => more.add(each));
          else thin(one);
        }
      };
      shape(document.body);
      thin(document.body);
      const { Color } = axe.commons.color;
      if (!axe.parsed) {
        const parse = Color.prototype.parseString;
        axe.parsed = new Map();
        Color.prototype.parseString = function (text) {
          if (axe.parsed.has(text)) return Object.assign(this, axe.parsed.get(text));
          const { r, g, b, alpha } = parse.call(this, text);
          axe.parsed.set(text, { r, g, b, alpha });
          return this;
        };
      }
      const rules = colours.map((id) => axe.utils.getRule(id));
      const usual = rules.map((rule) => rule.matches);
      rules.forEach((rule, place) => {
        rule.matches = (node, ...given) => !more.has(node) && usual[place].call(rule, node, ...given);
      });
      try {
        return (await axe.run(document, options)).violations;
      } finally {
        rules.forEach((rule, place) => (rule.matches = usual[place]));
      }
    }
"""
"""Of neighbours with the same tags and classes the first three are looked at for their colours: what comes after them has the
same ones, and the reference of all commands has a thousand. The rules that are left read every element.

A page has some twenty colours and names them a thousand times: each is parsed once, which axe takes a quarter of its time for."""


SAID = """([place, but]) => {
  const whole = document.querySelector(place), out = whole.querySelector(but);
  const words = (one) => one?.innerText.match(/[\\p{L}\\p{N}]\\S*/gu)?.length ?? 0;
  const pressed = [...whole.querySelectorAll("a[href], button, input, select, textarea, summary")];
  return [words(whole) - words(out), pressed.filter((one) => one.checkVisibility() && one.offsetWidth > 1 && !out?.contains(one)).length];
}"""


class Outside:
    """The program as senders and users of its API see it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.api: Client = admin_of(program)

    def webhook(self, **settings: Any) -> dict[str, Any]:
        made = self.api.post("webhooks", {"name": "Orders", "authentication": {"method": "none"}, **settings})
        assert made.status == 201, made.text
        webhook: dict[str, Any] = made.json
        return webhook

    def shop(self, name: str, secret: str = "right", **settings: Any) -> dict[str, Any]:
        """A webhook for calls of Shopify."""
        signed = {"method": "hmac", "provider": "shopify", "secret": secret}
        return self.webhook(name=name, authentication=signed, **settings)

    def settings_of(self, webhook: dict[str, Any]) -> Any:
        """As they are now."""
        return self.api.get(f"webhooks/{webhook['id']}").json

    def call(self, url: str, body: Any = None, **headers: str) -> tuple[int, dict[str, Any]]:
        """As a stranger calls: the status and the answer."""
        reply = call(url, body, **headers)
        return reply.status, json.loads(reply.body or b"{}")

    def called(self, url: str, body: Any = None, **headers: str) -> str:
        """The id of a new call."""
        return str(self.call(url, body, **headers)[1]["invocationId"])

    def sold(
        self, shop: dict[str, Any], body: bytes, secret: str = "right", **headers: str
    ) -> tuple[int, str]:
        """As Shopify calls: the status, and the call's id."""
        headers["X-Shopify-Hmac-Sha256"] = shopify_signature(secret, body)
        status, answer = self.call(shop["url"], body, **headers)
        return status, answer["invocationId"]


class Plain(Outside, Pages):
    """Somebody who is signed in with a browser without scripts, the program behind it, and calls from outside."""

    def __init__(self, program: Program, visitor: Client) -> None:
        super().__init__(program)
        self.visitor = visitor


class Console(Outside):
    """A signed-in browser page, the program behind it, and calls from outside."""

    def __init__(self, page: Page, program: Program, notes: Notes | None = None) -> None:
        """``notes``: those that the page has already."""
        super().__init__(program)
        self.page = page
        self.notes = notes or noted(page)

    def open(self, path: str) -> None:
        if "#" in path and self.page.url.startswith(self.program.url + path.partition("#")[0]):
            self.page.goto("about:blank")  # else it is only another part of the same page
        response = self.page.goto(self.program.url + path)
        assert response is not None and response.status == 200, (path, response and response.status)

    def click(self, name: str, role: str = "button") -> None:
        self.page.get_by_role(role, name=name, exact=True).click()  # type: ignore[arg-type]

    def ask(self, text: str) -> None:
        """In the one field of the page Calls."""
        field = self.page.get_by_label("Search calls")
        field.fill(text)
        field.press("Enter")

    def said(self, place: str = "main", but: str = ".sent") -> tuple[int, int]:
        """How many words a reader sees, and what can be pressed, beside what was sent."""
        words, controls = self.page.evaluate(SAID, [place, but])
        return words, controls

    def choose(self, name: str) -> None:
        """Of what can be done with the open call: its one button, or what is in the menu."""
        button = self.page.get_by_role("button", name=name, exact=True)
        if not button.is_visible():
            self.click("More actions")
        button.click()

    def choose_for_webhook(self, name: str) -> None:
        """In the menu of the page of a webhook."""
        self.click("More actions")
        self.page.locator("#more-menu").get_by_role("button", name=name, exact=True).click()

    def save(self) -> None:
        """What was changed in a webhook's settings, and by nobody else meanwhile: in its place, without another page."""
        self.click("Save")
        expect(self.page.locator(".save-bar").get_by_text("Saved. It applies")).to_be_visible()

    def save_as_it_is(self) -> None:
        """Settings in which nothing was changed: their page offers no button for it."""
        self.page.locator("#settings").evaluate("form => form.requestSubmit()")
        expect(self.page.locator(".save-bar").get_by_text("Saved")).to_be_visible()

    @property
    def path(self) -> str:
        return urlsplit(self.page.url).path

    def fits(self, what: str) -> None:
        """Charts are drawn again a moment after the window has changed."""
        fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        wait_until(lambda: self.page.evaluate(fits), what=f"{what} to need no scrolling sideways")

    @contextmanager
    def another_browser(self, **given: Any) -> Iterator[Page]:
        """Of the same person."""
        own = self.page.context
        assert own.browser is not None
        context = new_context(own.browser, storage_state=own.storage_state(), **given)
        yield context.new_page()
        context.close()

    def nothing_went_wrong(self) -> None:
        # A form that is refused is a page with a status of 4xx, which the browser writes down as an error.
        self.notes.check(but="the server responded with a status of 4")

    def violations(self) -> list[str]:
        """What axe finds, by all of its rules: asked for at once, so that it reads the page once."""
        return self._axe(OPTIONS)

    def colour_violations(self) -> list[str]:
        """All else that axe asks for is the same in light and in dark."""
        return self._axe({**OPTIONS, "runOnly": {"type": "rule", "values": COLOURS}})

    def _axe(self, options: dict[str, Any]) -> list[str]:
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE_SCRIPT)
        found = self.page.evaluate(RUN_AXE, {"options": options, "colours": COLOURS})
        return [f"{one['id']}: {node['html'][:160]}" for one in found for node in one["nodes"]]


def stripe_signature(secret: str, body: bytes) -> str:
    at = int(time.time())
    return f"t={at},v1={hmac.digest(secret.encode(), f'{at}.'.encode() + body, 'sha256').hex()}"


def shopify_signature(secret: str, body: bytes) -> str:
    return base64.b64encode(hmac.digest(secret.encode(), body, hashlib.sha256)).decode()


def sign_in(context: BrowserContext, program: Program) -> None:
    """As the form does it, without drawing one: `test_first_hour.py` and `test_signing_in_page.py` are about the form."""
    form, from_its_page = {"name": "admin", "password": PASSWORD}, {"Sec-Fetch-Site": "same-origin"}
    answer = context.request.post(program.url + "/sign-in", form=form, headers=from_its_page, max_redirects=0)
    assert (answer.status, answer.headers.get("location")) == (303, "/webhooks"), answer.text()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """One for each file, with the example's workflows. `served`, which all surfaces ask, runs none."""
    environment = {
        "POSTERN_ADMIN_PASSWORD": PASSWORD,
        "POSTERN_HISTORY_DAYS": "45",
        "POSTERN_WORKFLOWS": str(ROOT / "src/postern/workflows/example"),
    }
    with Program(tmp_path_factory.mktemp("console"), environment) as program:
        yield program


@pytest.fixture(scope="module")
def outside(program: Program) -> Outside:
    return Outside(program)


@pytest.fixture(scope="module")
def visitor(program: Program) -> Client:
    return visitor_of(program)


def visitor_of(program: Program) -> Client:
    """The requests of a browser in which somebody is signed in, without a browser."""
    session = Client(program.port).post("sessions", {"name": "admin", "password": PASSWORD})
    cookie = session.headers["set-cookie"].partition(";")[0]
    return Client(program.port, Cookie=cookie, Sec_Fetch_Site="same-origin")


@pytest.fixture
def plain(program: Program, visitor: Client) -> Plain:
    return Plain(program, visitor)


@pytest.fixture(scope="module")
def known_browser(browser: Browser, program: Program) -> Iterator[BrowserContext]:
    """One for the file: a new one loads and compiles everything again, which takes as long as most tests."""
    context = new_context(browser, timezone_id="UTC", viewport=WINDOW, reduced_motion="reduce")
    sign_in(context, program)
    yield context
    context.close()


@pytest.fixture(scope="module")
def signed_in(known_browser: BrowserContext) -> Any:
    """What it knew when its first page was not yet opened."""
    return known_browser.storage_state()


@pytest.fixture(scope="module")
def one_page(known_browser: BrowserContext, signed_in: Any) -> OnePage:
    return OnePage(known_browser)


@pytest.fixture
def console(
    known_browser: BrowserContext, one_page: OnePage, program: Program, signed_in: Any, notes: Notes
) -> Iterator[Console]:
    """An empty page, with the cookies and the rights of a new browser that is signed in."""
    if known_browser.cookies() != signed_in["cookies"]:
        known_browser.clear_cookies()
        known_browser.add_cookies(signed_in["cookies"])
    with one_page.lent(notes) as page:
        console = Console(page, program, notes)
        yield console
    console.nothing_went_wrong()


@pytest.fixture
def clipboard(known_browser: BrowserContext) -> Iterator[None]:
    """It may be written and read."""
    known_browser.grant_permissions(["clipboard-read", "clipboard-write"])
    yield
    known_browser.clear_permissions()
