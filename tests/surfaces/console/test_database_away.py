"""Where not even who is signed in can be looked up: a form that was sent leads back, and gets back what was typed."""

from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette

from postern.core.history.invocation import StoreUnavailable
from postern.surfaces.console.routes import console_routes
from postern.usecases.access import accounts
from support.house import a_house
from support.plain_http import WITHOUT_TLS

pytestmark = pytest.mark.anyio


async def test_a_form_that_was_sent_meanwhile_leads_back_and_is_marked_as_unsaved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any) -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(accounts, "actor_of_session", away)
    async with a_house(tmp_path) as house:
        base, page = house.gateway.site.base_url, "/webhooks/wh_1/mapping"
        transport = httpx2.ASGITransport(app=Starlette(routes=console_routes(house.gateway)))
        async with httpx2.AsyncClient(transport=transport, base_url=base, verify=WITHOUT_TLS) as client:
            seen = await client.get(page)
            sent = await client.post(page, headers={"Origin": base, "Referer": base + page})
    assert (seen.status_code, sent.status_code) == (503, 503)
    assert "data-unsaved" in sent.text and f'href="{page}">Back<' in sent.text
    assert "data-unsaved" not in seen.text and "Back to the console" in seen.text
