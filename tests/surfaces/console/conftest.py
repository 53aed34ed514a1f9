"""The console in a real browser, over the real program with the example workflows."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from support.browser import Notes, is_foreign
from support.client import PASSWORD, Client, admin_of
from support.program import Program

ROOT = Path(__file__).resolve().parents[3]


class Console:
    """A signed-in browser page, the program behind it, and calls from outside."""

    def __init__(self, page: Page, program: Program) -> None:
        self.page = page
        self.program = program
        self.api: Client = admin_of(program)

    def open(self, path: str) -> None:
        response = self.page.goto(self.program.url + path)
        assert response is not None and response.status == 200, (path, response and response.status)

    def click(self, name: str, role: str = "button") -> None:
        self.page.get_by_role(role, name=name, exact=True).click()  # type: ignore[arg-type]

    @property
    def path(self) -> str:
        return urlsplit(self.page.url).path

    def webhook(self, **settings: Any) -> dict[str, Any]:
        made = self.api.post("webhooks", {"name": "Orders", "authentication": {"method": "none"}, **settings})
        assert made.status == 201, made.text
        webhook: dict[str, Any] = made.json
        return webhook

    def call(self, url: str, body: Any = None, **headers: str) -> tuple[int, dict[str, Any]]:
        """As a stranger calls: the status and the answer."""
        parts = urlsplit(url)
        connection = HTTPConnection("127.0.0.1", self.program.port, timeout=30)
        text = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
        given = {
            "Content-Type": "application/json",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        try:
            connection.request("POST", parts.path + ("?" + parts.query if parts.query else ""), text, given)
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"{}")
        finally:
            connection.close()

    def violations(self) -> list[str]:
        found = Axe().run(self.page).response["violations"]
        return [f"{one['id']}: {node['html'][:160]}" for one in found for node in one["nodes"]]


def stripe_signature(secret: str, body: bytes) -> str:
    at = int(time.time())
    return f"t={at},v1={hmac.digest(secret.encode(), f'{at}.'.encode() + body, 'sha256').hex()}"


def shopify_signature(secret: str, body: bytes) -> str:
    return base64.b64encode(hmac.digest(secret.encode(), body, hashlib.sha256)).decode()


def sign_in(page: Page, program: Program) -> None:
    page.goto(program.url)
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/webhooks")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    environment = {
        "POSTERN_ADMIN_PASSWORD": PASSWORD,
        "POSTERN_WORKFLOWS": str(ROOT / "src/postern/workflows/example"),
    }
    program = Program(tmp_path_factory.mktemp("console"), environment)
    try:
        program.wait_until_ready()
        yield program
        program.stop()
    finally:
        program.kill()


@pytest.fixture(scope="module")
def signed_in(browser: Browser, served: Program) -> Any:
    """Signing in costs a tenth of a second by design: once is enough."""
    context = browser.new_context(locale="en-US")
    sign_in(context.new_page(), served)
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture
def console(browser: Browser, served: Program, signed_in: Any, notes: Notes) -> Iterator[Console]:
    context = browser.new_context(
        locale="en-US",
        timezone_id="UTC",
        viewport={"width": 1280, "height": 860},
        storage_state=signed_in,
        reduced_motion="reduce",
    )
    context.set_default_timeout(10_000)
    page = context.new_page()
    page.on("pageerror", lambda error: notes.errors.append(str(error)))
    page.on("console", lambda message: notes.errors.append(message.text) if message.type == "error" else None)
    page.on(
        "request",
        lambda request: notes.foreign_requests.append(request.url) if is_foreign(request.url) else None,
    )
    yield Console(page, served)
    context.close()
    assert notes.foreign_requests == []
    # A form that is refused is a page with a status of 4xx, which the browser writes down as an error.
    assert [error for error in notes.errors if "the server responded with a status of 4" not in error] == []
