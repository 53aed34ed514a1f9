"""A real Chromium, driven by playwright: ``page`` is a fresh page that notes what a user would never see."""

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any
from urllib.parse import urlsplit

import pytest
from chromium import find_chromium
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    Playwright,
    Request,
    Route,
    ViewportSize,
    expect,
    sync_playwright,
)

from support.waiting import PATIENCE, wait_until

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    # What shows one page shows the next: a new process for each page takes longer than the page.
    "--renderer-process-limit=1",
    # Nothing is drawn by a graphics card: one process fewer hands pictures on.
    "--in-process-gpu",
    # The next page is shown in the frame of the page before it: a new frame for each takes a quarter more. Of these lists only
    # the last one counts, so what playwright turns on is said again.
    "--enable-features=RenderDocument:level/crashed-frame,CDPScreenshotNewSurface,SkipListAccountsWithoutGaiaCookies",
    # A request to anywhere else fails at once, and is noted as one that failed.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]

PATIENT = PATIENCE * 1000
"""Milliseconds. Only a test that fails waits that long: on a busy machine playwright's own five seconds are over
before a page has come."""
expect.set_options(timeout=PATIENT)


CALLED_OFF = re.compile(r"Failed to fetch(?! dynamically)|^(TypeError: )?network error")
"""The message of a request whose page is left meanwhile. Of all other failures the browser has a message of its
own."""


@dataclass
class Notes:
    """Notes trouble behind the page: errors in its scripts and console, and requests that would have left this
    machine. All of these fail (`FLAGS`), so only failures are listened to: to be told of every request takes longer
    than half a page."""

    errors: list[str] = field(default_factory=list)
    foreign_requests: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        page.on("pageerror", self._note_error)
        page.on("console", self._note_message)
        page.on("requestfailed", self._note_failure)

    def leave(self, page: Page) -> None:
        page.remove_listener("pageerror", self._note_error)
        page.remove_listener("console", self._note_message)
        page.remove_listener("requestfailed", self._note_failure)

    def _note_error(self, error: Error) -> None:
        self.errors.append(str(error))

    def _note_message(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _note_failure(self, sent: Request) -> None:
        if is_foreign(sent.url):
            self.foreign_requests.append(sent.url)

    def check(self, *, but: str | None = None) -> None:
        """There is nothing in them, and the next page begins with none. ``but``: what an error may say."""
        errors = [error for error in self.errors if not CALLED_OFF.search(error)]
        foreign = self.foreign_requests[:]
        self.errors.clear()
        self.foreign_requests.clear()
        assert foreign == [], foreign
        wrong = [error for error in errors if but is None or but not in error]
        assert wrong == [], wrong


def noted(page: Page) -> Notes:
    notes = Notes()
    notes.watch(page)
    return notes


chromium_here = cache(find_chromium)
"""Asking for it starts it."""


class OneBrowser:
    """One for all files of this process: to start it takes as long as a file's tests."""

    def __init__(self, playwright: Playwright, program: str) -> None:
        self._launch = partial(playwright.chromium.launch, executable_path=program, args=FLAGS)
        self._browser = self._launch()
        self._loop = asyncio.get_running_loop()

    def take(self) -> Browser:
        asyncio._set_running_loop(self._loop)
        if not self._browser.is_connected():  # It has died, and the file in which it did has failed.
            self._browser = self._launch()
        return self._browser

    def put_back(self) -> None:
        """Closes everything that is open. Playwright says of its loop that it runs in this thread, also between two
        calls; the next file's tests may have loops of their own."""
        for context in self._browser.contexts:
            context.close()
        asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def one_browser() -> Iterator[OneBrowser]:
    program = chromium_here()
    if program is None:
        pytest.skip(
            "NO BROWSER, SO THE CONSOLE IS NOT TESTED: install Debian's chromium, or set CHROMIUM to one"
        )
    with sync_playwright() as playwright:
        one = OneBrowser(playwright, program)
        one.put_back()
        yield one
        one.take().close()


@pytest.fixture(scope="module")
def browser(one_browser: OneBrowser) -> Iterator[Browser]:
    yield one_browser.take()
    one_browser.put_back()


def new_context(browser: Browser, **given: Any) -> BrowserContext:
    """Makes the context of a person whose language is English; some builds say `en-US@posix` without being told,
    which Intl refuses."""
    context = browser.new_context(**{"locale": "en-US", **given})
    context.set_default_timeout(PATIENT)
    return context


@pytest.fixture
def browser_context(browser: Browser) -> Iterator[BrowserContext]:
    context = new_context(browser, timezone_id="UTC", viewport={"width": 1280, "height": 800})
    yield context
    context.close()


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def page(browser_context: BrowserContext, notes: Notes) -> Iterator[Page]:
    """A page whose scripts must not fail and which must load everything from here; `notes` says what it did
    so far."""
    page = browser_context.new_page()
    notes.watch(page)
    yield page
    notes.check()


LASTING = (
    "add_init_script",
    "add_locator_handler",
    "emulate_media",
    "expose_binding",
    "expose_function",
    "on",
    "once",
    "route",
    "route_from_har",
    "set_extra_http_headers",
)
"""Methods of a page whose effect the next document would feel, but for the size of its window."""

LEAVE = "{ sessionStorage.clear(); setTimeout(() => location.replace('about:blank')); }"
"""Opens the empty document by the page itself: it then belongs to the same site, and the way there and back takes a
third."""


class OnePage:
    """Lends one page to the tests of a file, one after the other: a new page, and the first document in it, take as
    long as three more documents. A page to which more was done than documents were opened in it goes, and the next
    test gets a new one."""

    def __init__(self, context: BrowserContext) -> None:
        self._context = context
        self._page = self._new_page()

    def _new_page(self) -> Page:
        page = self._context.new_page()
        self._is_as_new = True
        for name in LASTING:
            setattr(page, name, partial(self._do_what_lasts, getattr(page, name)))
        return page

    def _do_what_lasts(self, what: Callable[..., Any], *given: Any, **named: Any) -> Any:
        self._is_as_new = False
        return what(*given, **named)

    @contextmanager
    def lent(self, notes: Notes) -> Iterator[Page]:
        """Lends the page, empty and with the window's usual size. What else was opened meanwhile is closed."""
        others = self._context.pages
        notes.watch(self._page)
        self._is_as_new = True
        yield self._page
        for page in self._context.pages:
            if page not in others:
                page.close()
        if not self._empty(notes):
            # The process that shows pages stays as long as there is one.
            before, self._page = self._page, self._new_page()
            before.close()

    def _empty(self, notes: Notes) -> bool:
        try:
            if self._page.viewport_size != WINDOW:
                self._page.set_viewport_size(WINDOW)
            self._page.mouse.move(0, 0)
            # All that the test has made the page say is noted by now.
            notes.leave(self._page)
            if self._is_as_new and self._page.url != "about:blank":
                self._page.evaluate(LEAVE)
                self._page.wait_for_url("about:blank")
        except Error:  # it was on its way to somewhere, or has died
            return False
        return self._is_as_new


class Held:
    """Requests of a page under an address, kept waiting until the test lets them go."""

    def __init__(self, page: Page, address: str) -> None:
        self._page = page
        self._address = address
        self._routes: list[Route] = []
        page.route(address, lambda route: self._routes.append(route))

    def let_one_go(self) -> None:
        """The page may look as if it had asked before the browser's word of it is here: that comes only while the browser is
        talked to."""
        wait_until(self.asked, what=f"{self._address} to be asked for")
        self._routes.pop(0).continue_()

    def asked(self) -> bool:
        self._page.wait_for_timeout(0)
        return bool(self._routes)


WINDOW: ViewportSize = {"width": 1280, "height": 860}


def is_foreign(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme not in ("data", "blob", "about") and parts.hostname not in ("127.0.0.1", "localhost")
