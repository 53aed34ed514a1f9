"""A recorded call as a fixture: what a test of a workflow runs on."""

import base64
import hashlib
import hmac
from pathlib import Path

import pytest
from msgspec.structs import replace

from postern.core.problems import Refused
from postern.usecases.answers import as_json
from postern.usecases.history import fixtures, samples
from postern.usecases.history.views.requests import as_file
from postern.workflows.testing import load_event
from support.house import OWNER, House

SECRET = "a secret that is long enough"


async def test_a_fixture_is_the_event_that_the_workflow_got(house: House, tmp_path: Path) -> None:
    webhook = await house.webhook(fieldMapping={"fieldOne": "order.number"})
    await samples.arm(house.gateway, OWNER, webhook.id)
    call = await house.recorded(webhook, b'{"order": {"number": 1001, "total": 1%s}}' % (b"0" * 30))
    found = await fixtures.fixture(house.gateway, OWNER, call)
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
    headers = {
        "X-Shopify-Hmac-Sha256": signature,
        "X-Shopify-Topic": "orders/create",
        "Authorization": "Bearer somebody",
        "X-Other-Signature": "of a proxy",
    }
    call = await house.recorded(webhook, body, headers=headers)
    found = await fixtures.fixture(house.gateway, OWNER, call)
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
    call = await house.recorded(webhook, headers={"X-Proof": proof, "X-Shop": "a"})
    found = await fixtures.fixture(house.gateway, OWNER, call)
    assert [name for name, _ in found.headers] == ["content-type", "x-shop"]


async def test_a_fixture_needs_a_body_that_is_kept_and_a_call_that_was_no_handshake(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = await house.recorded(await house.webhook(), b'{"n": 1}')
    story = await house.story(call)

    async def asked(started: bool, **changes: object) -> str:
        invocation = replace(story.invocation, **changes)
        shown = replace(story, invocation=invocation, deliveries=story.deliveries if started else [])

        async def get(invocation_id: str) -> object:
            return shown

        monkeypatch.setattr(house.gateway.store.history, "get", get)
        try:
            await fixtures.fixture(house.gateway, OWNER, call)
        except Refused as refused:
            return refused.detail
        return ""

    assert await asked(True, body=None) == "the call's body is no longer kept, or cannot be read"
    for outcome in ("rejected", "handshake"):
        assert "no workflow gets such an event" in await asked(False, outcome=outcome)
        assert await asked(True, outcome=outcome) == "", "it was admitted later"
    assert await asked(False, outcome="duplicate") == ""


async def test_half_a_character_is_replaced_so_that_a_file_can_hold_it(house: House, tmp_path: Path) -> None:
    call = await house.recorded(await house.webhook(), '{"n": "\\ud83d", "\u00e9": 1}'.encode())
    found = await fixtures.fixture(house.gateway, OWNER, call)
    file = tmp_path / "event.json"
    file.write_text(as_file(found), "utf-8")
    assert load_event(file) == found.event
    assert found.event["payload"] == {"n": "\ufffd", "\u00e9": 1} and '"\u00e9"' in file.read_text("utf-8")
