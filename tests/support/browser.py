"""A real Chromium, driven by playwright: ``page`` is a fresh page that notes what a user would never see."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any
from urllib.parse import urlsplit

import pytest
from chromium import find_chromium
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect, sync_playwright

from support.waiting import PATIENCE

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
]

PATIENT = PATIENCE * 1000
"""As playwright counts. Only what fails waits that long: on a busy machine its own five seconds are over before a page has come."""
expect.set_options(timeout=PATIENT)


@dataclass
class Notes:
    """What happened behind the page: errors in its scripts and console, and requests that left this
    machine."""

    errors: list[str] = field(default_factory=list)
    foreign_requests: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on(
            "console", lambda message: self.errors.append(message.text) if message.type == "error" else None
        )
        page.on(
            "request", lambda sent: self.foreign_requests.append(sent.url) if is_foreign(sent.url) else None
        )

    def check(self, *, but: str | None = None) -> None:
        """There is nothing in them, and the next page begins with none. ``but``: what an error may say."""
        errors, foreign = self.errors[:], self.foreign_requests[:]
        self.errors.clear()
        self.foreign_requests.clear()
        assert foreign == []
        assert [error for error in errors if but is None or but not in error] == []


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
        """With nothing open. Playwright says of its loop that it runs in this thread, also between two calls; the next file's
        tests may have loops of their own."""
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
    """Of a person whose language is English; some builds say `en-US@posix` without being told, which Intl refuses."""
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


def is_foreign(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme not in ("data", "blob", "about") and parts.hostname not in ("127.0.0.1", "localhost")
