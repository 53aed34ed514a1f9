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
from starlette.responses import Response

from postern.core.access.accounts import Actor
from postern.core.moment import iso
from postern.core.problems import Refused
from postern.surfaces.console.views.webhooks import send_again as views
from postern.surfaces.console.visit import Form, Visit
from stand_in import Received, Reply, stand_in
from support.client import PASSWORD
from support.house import OWNER, House, a_house
from support.program import Program
from support.stored import open_incident
from surfaces.console.conftest import Console

AGAIN = {"account": "repos/acme/shop", "token": "a token"}
GITHUB = {"method": "hmac", "provider": "github", "secret": "0123456789abcdef"}


async def asked(
    house: House, webhook: str, view: Any, actor: Actor = OWNER, form: Any = (), **query: str
) -> Response:
    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    scope |= {"query_string": urlencode(query).encode(), "path_params": {"webhook": webhook}}
    answer: Response = await view(Visit(Request(scope), house.gateway, actor, Form(form)))
    return answer


async def page(house: House, webhook: str, since: str, method: str = "GET", **query: str) -> tuple[int, str]:
    if method == "GET":
        answer = await asked(house, webhook, views.show, since=since, **query or {"now": "1"})
    else:
        answer = await asked(house, webhook, views.ask, form={"since": since})
    assert answer.media_type == "text/html"
    return answer.status_code, bytes(answer.body).decode()


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_whatever_a_sender_answers_is_said_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr("postern.usecases.sending_again.senders.PAUSES", (0.0,))
    replies = [
        (Reply(500), "answered 500"), (Reply(401), "the account or the token"), (Reply(404), "answered 404"),
        (Reply(403, {"Retry-After": "90"}), "the next request in 90 s"), (Reply(400), "answered 400"), (Reply(body=b"<html>"), "with JSON"),
    ]  # fmt: skip
    async with a_house(tmp_path, POSTERN_OUTBOUND_ALLOWED="127.0.0.1") as house:
        webhook = await house.webhook(authentication=GITHUB)
        status, text = await page(house, webhook.id, "", "GET")
        assert "A fine-grained token with the permission" in text and "Last hour" not in text
        webhook = await house.webhook(authentication=GITHUB, sendAgain=AGAIN)
        for since in ("banana", "-5m", "9" * 40, "1e400"):
            status, text = await page(house, webhook.id, since, method)
            assert status == 422 and 'id="wrong-since"' in text, since

        async with stand_in(lambda _: replies[0][0]) as server:
            again = AGAIN | {"api": server.url}
            webhook = await house.webhook(authentication=GITHUB, sendAgain=again)
            while replies:
                said = replies[0][1]
                status, text = await page(house, webhook.id, "2h", method)
                assert said in text and status == (200 if said.endswith(" s") else 409), said
                del replies[0]
        status, text = await page(house, webhook.id, "2h", method)
        assert status == 409 and "No connection" in text


async def test_it_offers_what_can_be_done_and_asks_for_nothing_before(tmp_path: Path) -> None:
    rows: list[Any] = [{"guid": f"g{n}", "id": n, "status_code": 502, "event": "push"} for n in (1, 2)]

    def answer(request: Received) -> Reply:
        hooks = [{"id": 7, "config": {"url": webhook.url}}]
        listed = hooks if request.target.endswith("/hooks?per_page=100") else rows
        return Reply(body=json.dumps({"data": rows} if "events" in request.target else listed).encode())

    async with a_house(tmp_path, POSTERN_OUTBOUND_ALLOWED="127.0.0.1") as house, stand_in(answer) as server:
        again = AGAIN | {"api": server.url}
        webhook = await house.webhook(authentication=GITHUB, sendAgain=again)
        _, text = await page(house, webhook.id, "2h", look="0")
        assert "Reading the list of GitHub" in text and server.received == []
        _, text = await page(house, webhook.id, "2h")
        assert "Ask GitHub to send 2 events again" in text and 'name="look"' not in text
        assert {one.method for one in server.received} == {"GET"}
        _, text = await page(house, webhook.id, "2h", "POST")
        assert "is asked to send 2 events again" in text and "Ask GitHub" not in text
        for look in ("3", str(views.MOST_LOOKS), "99"):
            _, text = await page(house, webhook.id, "2h", look=look, now="1")
            assert "2 asked for before, and not sent yet." in text and "Ask GitHub" not in text
            assert ('"look" value="4"' in text, 'name="look"' in text) == (look == "3",) * 2
        assert sum(one.method == "POST" for one in server.received) == 2
        reader = Actor("reader", "read")
        shown = await asked(house, webhook.id, views.show, reader)
        assert b"Only people who may write" in shown.body
        with pytest.raises(Refused, match="write"):
            await asked(house, webhook.id, views.save_access, reader, {"sendAgain": "on"})
        forgets = re.search(r'name="sendAgain" value="(.*?)" formnovalidate', text)
        assert forgets is not None
        form = {"sendAgain": forgets[1], "sendAgain.account": "repos/acme/shop", "sendAgain.token": ""}
        saved = await asked(house, webhook.id, views.save_access, form=form, incident="2026-11-01T10:30:00Z")
        assert saved.headers["location"].endswith("/send-again?incident=2026-11-01T10%3A30%3A00.000Z")
        _, text = await page(house, webhook.id, "")
        assert 'id="told"' not in text, "without a token nobody can be asked"
        stripes = again | {"account": ""}, "stripe events resend"
        for sender, (access, said) in {
            "shopify": (None, "sends no webhook again"),
            "stripe": stripes,
        }.items():
            secret = {"provider": sender, "secret": "whsec_" + "a" * 32}
            other = await house.webhook(authentication=GITHUB | secret, sendAgain=access)
            _, text = await page(house, other.id, "2h")
            assert said in text and f"Ask {sender.title()}" not in text


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
