"""A real Chromium, driven by playwright: ``page`` is a fresh page that notes what a user would never see."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import urlsplit

import pytest
from chromium import find_chromium
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

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
]


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


# For one file at a time: while playwright is open its event loop holds the thread, and asyncio in another
# file's tests could not run.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = chromium_here()
    if program is None:
        pytest.skip(
            "NO BROWSER, SO THE CONSOLE IS NOT TESTED: install Debian's chromium, or set CHROMIUM to one"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def browser_context(browser: Browser) -> Iterator[BrowserContext]:
    # Without a locale some builds say `en-US@posix`, which Intl refuses.
    context = browser.new_context(locale="en-US", timezone_id="UTC", viewport={"width": 1280, "height": 800})
    context.set_default_timeout(10_000)
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
