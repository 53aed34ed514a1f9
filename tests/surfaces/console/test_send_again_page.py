"""What a sender did not deliver: its page says in words whatever the sender answers. In one process, and once by clicking."""

import json
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect
from starlette.requests import Request

from postern.core.moment import iso
from postern.surfaces.console.views.webhooks import send_again as views
from postern.surfaces.console.visit import Form, Visit
from stand_in import Reply, stand_in
from support.client import PASSWORD
from support.house import OWNER, House, a_house
from support.program import Program
from support.stored import open_incident
from surfaces.console.conftest import Console

AGAIN = {"account": "repos/acme/shop", "token": "a token"}
GITHUB = {"method": "hmac", "provider": "github", "secret": "0123456789abcdef"}


async def page(house: House, webhook: str, since: str, method: str = "GET") -> tuple[int, str]:
    query = urlencode({"since": since, "now": "1"}) if method == "GET" else ""
    scope = {"type": "http", "method": method, "path": "/", "headers": [], "query_string": query.encode()}
    request = Request(scope | {"path_params": {"webhook": webhook}})
    view = views.show if method == "GET" else views.ask
    answer = await view(Visit(request, house.gateway, OWNER, Form({"since": since})))
    assert answer.media_type == "text/html"
    return answer.status_code, bytes(answer.body).decode()


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_whatever_a_sender_answers_is_said_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr("postern.usecases.sending_again.senders.PAUSES", (0.0,))
    replies: list[Any] = [
        Reply(500),
        Reply(401),
        Reply(403, {"Retry-After": "90"}),
        Reply(404),
        Reply(400),
        Reply(body=b"<html>"),
    ]
    words = [
        "answered 500",
        "the account or the token",
        "the next request in 90 s",
        "answered 404",
        "answered 400",
        "with JSON",
    ]

    async with a_house(tmp_path, POSTERN_OUTBOUND_ALLOWED="127.0.0.1") as house:
        webhook = await house.webhook(authentication=GITHUB)
        status, text = await page(house, webhook.id, "", "GET")
        assert "A fine-grained token with the permission" in text and "Last hour" not in text
        webhook = await house.webhook(authentication=GITHUB, sendAgain=AGAIN)
        for since in ("banana", "-5m", "9" * 40, "1e400"):
            status, text = await page(house, webhook.id, since, method)
            assert status == 422 and 'id="wrong-since"' in text, since

        async with stand_in(lambda _: replies[0]) as server:
            again = AGAIN | {"api": server.url}
            webhook = await house.webhook(authentication=GITHUB, sendAgain=again)
            for said in words:
                status, text = await page(house, webhook.id, "2h", method)
                assert said in text and status == (200 if said.endswith(" s") else 409), said
                del replies[0]
        status, text = await page(house, webhook.id, "2h", method)
        assert status == 409 and "No connection" in text


async def test_shopify_says_what_to_do_and_has_no_button(tmp_path: Path) -> None:
    async with a_house(tmp_path) as house:
        webhook = await house.webhook(authentication=GITHUB | {"provider": "shopify", "secret": "a" * 32})
        status, text = await page(house, webhook.id, "2h")
    assert status == 200 and "sends no webhook again" in text and "Ask Shopify" not in text


class GitHub(BaseHTTPRequestHandler):
    """It lists what it could not deliver, and lists a new attempt that arrived at the second look after it was asked."""

    url = ""
    posts: ClassVar[list[str]] = []
    looks_since = 0

    def do_GET(self) -> None:
        if self.path.endswith("/hooks?per_page=100"):
            return self._answer(200, [{"id": 7, "config": {"url": self.url}}])
        GitHub.looks_since += bool(self.posts)
        tries = [(f"g{n}", n, 502, iso(time.time() - 60 * n)) for n in range(1, 4)]
        if self.looks_since > 1:
            tries = [(guid, 10 + n, 200, iso(time.time())) for guid, n, _, _ in tries] + tries
        names = ("guid", "id", "status_code", "delivered_at")
        return self._answer(200, [dict(zip(names, one, strict=True)) | {"event": "push"} for one in tries])

    def do_POST(self) -> None:
        self.posts.append(self.path)
        self._answer(202, {})

    def _answer(self, status: int, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    environment = {"POSTERN_ADMIN_PASSWORD": PASSWORD, "POSTERN_OUTBOUND_ALLOWED": "127.0.0.1"}
    with Program(tmp_path_factory.mktemp("again"), environment) as program:
        yield program


@pytest.fixture
def github() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), GitHub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_from_an_incident_to_what_was_not_delivered_by_clicking(console: Console, github: str) -> None:
    shop = console.webhook(name="Builds", authentication=GITHUB)
    GitHub.url = shop["url"]
    incident = open_incident(console.program.data_dir, shop["id"])
    page = console.page
    console.open(f"/incidents/{incident}")
    console.click("See what the sender did not deliver", "link")
    page.get_by_label("Account at the sender").fill("acme shop")
    page.get_by_label("Token of the sender").fill("a token")
    page.get_by_text("Advanced").click()
    page.get_by_label("Address of the sender").fill(github)
    console.click("Save")
    expect(page.locator("#wrong-sendAgain\\.account")).to_be_visible()
    page.get_by_label("Account at the sender").fill("repos/acme/shop")
    page.get_by_label("Token of the sender").fill("a token")
    console.click("Save")
    expect(page.get_by_label("Or since")).to_be_visible()
    assert console.violations() == []
    page.get_by_label("Or since").fill("2026-11-01T10:30")
    console.click("Look")
    expect(page.get_by_text("GitHub could not deliver 3 events since")).to_be_visible()
    assert "since=2026-11-01T10%3A30%3A00.000Z" in page.url
    page.get_by_role("link", name=re.compile("^Since the incident began")).click()
    expect(page.get_by_text("GitHub could not deliver 3 events since")).to_be_visible()
    assert console.violations() == []
    console.click("Ask GitHub to send 3 events again")
    expect(page.get_by_text("GitHub is asked to send 3 events again.")).to_be_visible()
    expect(page.get_by_text("GitHub lists nothing that it could not deliver since")).to_be_visible()
    assert len(GitHub.posts) == 3
