"""What a sender did not deliver: its page says in words whatever the sender answers. In one process, without a browser."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.requests import Request

from postern.surfaces.console.views.webhooks import webhook as views
from postern.surfaces.console.visit import Form, Visit
from stand_in import Reply, stand_in
from support.house import OWNER, House, a_house

GITHUB = {"method": "hmac", "provider": "github", "secret": "0123456789abcdef"}


async def page(house: House, webhook: str, since: str, method: str = "GET") -> tuple[int, str]:
    query = urlencode({"since": since}) if method == "GET" else ""
    scope = {"type": "http", "method": method, "path": "/", "headers": [], "query_string": query.encode()}
    request = Request(scope | {"path_params": {"webhook": webhook}})
    view = views.undelivered if method == "GET" else views.send_again
    answer = await view(Visit(request, house.gateway, OWNER, Form({"since": since})))
    assert answer.media_type == "text/html"
    return answer.status_code, bytes(answer.body).decode()


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_whatever_a_sender_answers_is_said_on_the_page(tmp_path: Path, method: str) -> None:
    replies: list[Any] = [
        Reply(401),
        Reply(403, {"Retry-After": "90"}),
        Reply(404),
        Reply(400),
        Reply(body=b"<html>"),
    ]
    words = [
        "the account or the token",
        "the next request in 90 s",
        "answered 404",
        "answered 400",
        "with JSON",
    ]

    async with a_house(tmp_path, POSTERN_OUTBOUND_ALLOWED="127.0.0.1") as house:
        webhook = await house.webhook(authentication=GITHUB)
        assert "sendAgain is not set" in (await page(house, webhook.id, "2h", method))[1].replace(
            "SendAgain", "sendAgain"
        )
        for since in ("banana", "-5m", "9" * 40, "1e400"):
            status, text = await page(house, webhook.id, since, method)
            assert status == 422 and 'id="wrong-since"' in text, since

        async with stand_in(lambda _: replies[0]) as server:
            again = {"account": "repos/acme/shop", "api": server.url, "token": "a token"}
            webhook = await house.webhook(authentication=GITHUB, sendAgain=again)
            for said in words:
                status, text = await page(house, webhook.id, "2h", method)
                assert said in text and status == (200 if said.endswith(" s") else 409), said
                del replies[0]


async def test_a_sender_that_fails_is_said_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postern.usecases.sending_again.senders.PAUSES", (0.0,))
    async with a_house(tmp_path, POSTERN_OUTBOUND_ALLOWED="127.0.0.1") as house:
        async with stand_in(lambda _: Reply(500)) as server:
            again = {"account": "repos/acme/shop", "api": server.url, "token": "a token"}
            webhook = await house.webhook(authentication=GITHUB, sendAgain=again)
            status, text = await page(house, webhook.id, "2h")
            assert status == 409 and "answered 500" in text and len(server.received) == 2
        status, text = await page(house, webhook.id, "2h")
        assert status == 409 and "No connection" in text


async def test_shopify_says_what_to_do_and_has_no_button(tmp_path: Path) -> None:
    async with a_house(tmp_path) as house:
        webhook = await house.webhook(authentication=GITHUB | {"provider": "shopify", "secret": "a" * 32})
        status, text = await page(house, webhook.id, "2h")
    assert status == 200 and "sends no webhook again" in text and "Ask Shopify" not in text
