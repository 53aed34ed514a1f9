"""A recorded call as a fixture: what a test of a workflow runs on."""

import base64
import hashlib
import hmac
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from postern.core.history.invocation import HistoryFilter
from postern.core.problems import Refused
from postern.usecases.answers import as_json
from postern.usecases.history import fixtures, history, samples
from postern.usecases.history.views.requests import as_file
from postern.usecases.summary import InvocationSummary
from postern.usecases.webhooks.views import Webhook
from postern.workflows.testing import load_event
from support.house import OWNER, House

SECRET = "a secret that is long enough"


async def recorded(house: House, webhook: Webhook, body: bytes) -> InvocationSummary:
    await house.call(webhook, body)
    page = await history.listing(house.gateway, OWNER, HistoryFilter(webhook.id), 1)
    return page.items[0]


async def test_a_fixture_is_the_event_that_the_workflow_got(house: House, tmp_path: Path) -> None:
    webhook = await house.webhook(fieldMapping={"fieldOne": "order.number"})
    await samples.arm(house.gateway, OWNER, webhook.id)
    call = await recorded(house, webhook, b'{"order": {"number": 1001, "total": 1%s}}' % (b"0" * 30))
    found = await fixtures.fixture(house.gateway, OWNER, call.id)
    assert found.event == (await samples.sample(house.gateway, OWNER, webhook.id)).event
    file = tmp_path / "event.json"
    file.write_bytes(as_json(found))
    event = load_event(file)
    assert event == found.event
    assert event["payload"]["order"]["total"] == 10**30
    assert (event["fieldOne"], found.webhook) == ("1001", "Orders")


async def test_neither_credentials_nor_signatures_are_in_it(house: House) -> None:
    signed = {"method": "hmac", "provider": "shopify", "secret": SECRET}
    webhook = await house.webhook(authentication=signed)
    body = b'{"id": 1}'
    signature = base64.b64encode(hmac.new(SECRET.encode(), body, hashlib.sha256).digest()).decode()
    heard = await house.call(
        webhook,
        body,
        headers={
            "content-type": "application/json",
            "X-Shopify-Hmac-Sha256": signature,
            "X-Shopify-Topic": "orders/create",
            "Authorization": "Bearer somebody",
            "X-Other-Signature": "of a proxy",
        },
    )
    found = await fixtures.fixture(house.gateway, OWNER, heard.json["invocationId"])
    text = as_json(found).decode()
    for secret in (signature, "somebody", "***", "of a proxy", SECRET):
        assert secret not in text, secret
    assert found.name == "orders/create"
    assert ["x-shopify-topic", "orders/create"] in [[name.lower(), value] for name, value in found.headers]


async def test_a_signature_is_left_out_however_its_header_is_called(house: House) -> None:
    scheme = {"signature": "header:X-Proof"}
    how = {"method": "hmac", "provider": "custom", "secret": SECRET, "scheme": scheme}
    proof = hmac.new(SECRET.encode(), b"{}", hashlib.sha256).hexdigest()
    webhook = await house.webhook(authentication=how)
    heard = await house.call(webhook, headers={"X-Proof": proof, "X-Shop": "a"})
    found = await fixtures.fixture(house.gateway, OWNER, heard.json["invocationId"])
    assert [name for name, _ in found.headers] == ["content-type", "x-shop"]


async def test_a_fixture_needs_a_body_that_is_kept_and_a_call_that_was_no_handshake(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = await house.webhook()
    call = await recorded(house, webhook, b'{"n": 1}')
    story = await house.gateway.store.history.get(call.id)
    assert story is not None

    async def asked(deliveries: bool, **changes: object) -> str:
        shown = replace(
            story,
            invocation=msgspec.structs.replace(story.invocation, **changes),
            deliveries=story.deliveries if deliveries else [],
        )

        async def get(invocation_id: str) -> object:
            return shown

        monkeypatch.setattr(house.gateway.store.history, "get", get)
        try:
            await fixtures.fixture(house.gateway, OWNER, call.id)
        except Refused as refused:
            return refused.detail
        return ""

    assert await asked(True, body=None) == "the call's body is no longer kept"
    for outcome in ("rejected", "handshake"):
        assert "no workflow gets such an event" in await asked(False, outcome=outcome)
        assert await asked(True, outcome=outcome) == "", "it was admitted later"
    assert await asked(False, outcome="duplicate") == ""


async def test_half_a_character_is_replaced_so_that_a_file_can_hold_it(house: House, tmp_path: Path) -> None:
    call = await recorded(house, await house.webhook(), '{"n": "\\ud83d", "\u00e9": 1}'.encode())
    found = await fixtures.fixture(house.gateway, OWNER, call.id)
    file = tmp_path / "event.json"
    file.write_text(as_file(found), "utf-8")
    assert load_event(file) == found.event
    assert found.event["payload"] == {"n": "\ufffd", "\u00e9": 1} and '"\u00e9"' in file.read_text("utf-8")
