"""Where not even who is signed in can be looked up: a form that was sent leads back, and gets back what was typed."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette

from postern.core.access.accounts import Actor
from postern.core.history.invocation import StoreUnavailable
from postern.surfaces.console.routes import console_routes
from postern.surfaces.streaming import Feed
from postern.usecases.access import accounts
from support.house import OWNER, a_house
from support.plain_http import WITHOUT_TLS
from support.waiting import PATIENCE


@pytest.fixture
async def browser_of_one_signed_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[httpx2.AsyncClient]:
    """Whose session cannot be looked up."""

    async def away(*_: Any) -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(accounts, "actor_of_session", away)
    async with a_house(tmp_path) as house:
        transport = httpx2.ASGITransport(app=Starlette(routes=console_routes(house.gateway)))
        base = house.gateway.site.base_url
        async with httpx2.AsyncClient(transport=transport, base_url=base, verify=WITHOUT_TLS) as client:
            yield client


async def test_a_form_that_was_sent_meanwhile_leads_back_and_is_marked_as_unsaved(
    browser_of_one_signed_in: httpx2.AsyncClient,
) -> None:
    base, page = str(browser_of_one_signed_in.base_url).rstrip("/"), "/webhooks/wh_1/settings"
    seen = await browser_of_one_signed_in.get(page)
    sent = await browser_of_one_signed_in.post(page, headers={"Origin": base, "Referer": base + page})
    assert (seen.status_code, sent.status_code) == (503, 503)
    assert "data-unsaved" in sent.text and f'href="{page}">Back<' in sent.text
    assert "data-unsaved" not in seen.text and "Back to the console" in seen.text
    assert (seen.headers.get("refresh"), sent.headers.get("refresh")) == ("5", None)
    assert "asked for again every 5 seconds" in seen.text and "asked for again" not in sent.text


async def test_a_stream_that_cannot_begin_now_is_asked_for_again(
    browser_of_one_signed_in: httpx2.AsyncClient,
) -> None:
    """A browser never asks again for one that was refused."""
    heard = await browser_of_one_signed_in.get("/live/stream", headers={"Accept": "text/event-stream"})
    assert (heard.status_code, heard.text) == (200, "retry: 5000\n\n")
    assert heard.headers["content-type"].startswith("text/event-stream")


async def test_a_stream_ends_when_the_database_goes_away() -> None:
    closed, sent = [], []

    async def lines() -> AsyncIterator[str]:
        yield "data: 1\n\n"
        raise StoreUnavailable("away")

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message.get("body"))

    class Following:
        def close(self) -> None:
            closed.append(True)

    async with asyncio.timeout(PATIENCE):
        await Feed(Following(), lines())({"type": "http"}, receive, send)  # type: ignore[arg-type]
    assert (sent, closed) == ([None, b"data: 1\n\n", b""], [True])


@pytest.mark.parametrize(
    ("what", "path", "sentence"),
    [
        ("sign_in", "/sign-in", "The database cannot be used now. Nothing was changed."),
        ("sign_out", "/sign-out", "The database cannot be used now. You are still signed in: try again."),
    ],
)
async def test_who_signs_in_or_out_meanwhile_gets_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, path: str, sentence: str
) -> None:
    async def away(*_: Any) -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(accounts, what, away)
    async with a_house(tmp_path) as house:
        base = house.gateway.site.base_url
        transport = httpx2.ASGITransport(app=Starlette(routes=console_routes(house.gateway)))
        async with httpx2.AsyncClient(transport=transport, base_url=base, verify=WITHOUT_TLS) as client:
            sent = await client.post(path, headers={"Origin": base}, data={"name": "ann", "password": "x"})
    assert (sent.status_code, sentence in sent.text) == (503, True)
    assert ('value="ann"' in sent.text) == (what == "sign_in")
    assert "set-cookie" not in sent.headers


@pytest.mark.parametrize(
    ("repository", "method", "told"),
    [
        ("idempotency", "begin", "Nothing was changed."),
        ("replays", "add", "Nothing was changed."),
        ("replays", "next_of", "Look whether it was done before you try again."),
    ],
)
async def test_nothing_was_changed_is_said_where_it_is_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: str, method: str, told: str
) -> None:
    """A plan that was written, and then could not be shown, is there."""

    async def away(*_: Any) -> None:
        raise StoreUnavailable("away")

    async def owner(*_: Any) -> Actor:
        return OWNER

    monkeypatch.setattr(accounts, "actor_of_session", owner)
    async with a_house(tmp_path) as house:
        base, store = house.gateway.site.base_url, house.gateway.store
        transport = httpx2.ASGITransport(app=Starlette(routes=console_routes(house.gateway)))
        async with httpx2.AsyncClient(transport=transport, base_url=base, verify=WITHOUT_TLS) as client:
            with monkeypatch.context() as trouble:
                trouble.setattr(getattr(store, repository), method, away)
                sent = await client.post("/replays", headers={"Origin": base}, data={"once": "ab"})
            assert (sent.status_code, f"The database cannot be used now. {told}" in sent.text) == (503, True)
            assert len(await store.replays.page(5, None)) == (method == "next_of")
            sent = await client.post("/replays", headers={"Origin": base}, data={"once": "ab"})
            assert sent.status_code == 303
