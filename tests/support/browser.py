"""A real Chromium, driven by playwright: ``page`` is a fresh page that notes what a user would never see."""

from collections.abc import Iterator
from dataclasses import dataclass, field
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
]


@dataclass
class Notes:
    """What happened behind the page: errors in its scripts and console, and requests that left this
    machine."""

    errors: list[str] = field(default_factory=list)
    foreign_requests: list[str] = field(default_factory=list)


# For one file at a time: while playwright is open its event loop holds the thread, and asyncio in another
# file's tests could not run.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = find_chromium()
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
    page.on("pageerror", lambda error: notes.errors.append(str(error)))
    page.on("console", lambda message: notes.errors.append(message.text) if message.type == "error" else None)
    page.on(
        "request",
        lambda request: notes.foreign_requests.append(request.url) if is_foreign(request.url) else None,
    )
    yield page
    assert notes.foreign_requests == []
    assert notes.errors == []


def is_foreign(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme not in ("data", "blob", "about") and parts.hostname not in ("127.0.0.1", "localhost")
