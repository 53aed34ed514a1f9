"""What else than a JSON object a call may bring, and what its sender may want to hear."""

import gzip
from base64 import b64decode

import pytest

from postern.core.problems import Refused
from postern.usecases.history import history
from postern.usecases.webhooks import webhooks
from support.house import OWNER, House
from support.refusals import fields_refused

EACH = {"arrays": "each", "fieldMapping": {"fieldOne": "n"}}


async def test_each_element_of_an_array_is_a_call_of_its_own(house: House) -> None:
    webhook = await house.webhook(**EACH, duplicateProtection={"enabled": True, "key": "header:X-Id"})
    answer = await house.call(webhook, b' [{"n": 1.00}, "x" ,{"n":2},{"n":2}]', headers={"X-Id": "7"})
    rows = [(one.status, one.code, one.http_status) for one in reversed(await house.history())]
    assert rows == [
        ("accepted", "accepted", 200),
        ("rejected", "payload_not_an_object", 200),
        ("accepted", "accepted", 200),
        ("duplicate", "duplicate", 200),
    ]
    assert (answer.status, answer.json["status"]) == (200, "accepted")
    first = await history.show(house.gateway, OWNER, answer.json["invocationId"])
    assert first.body == '{"n": 1.00}'
    assert ("array", "element 1 of 4") in [(step.step, step.detail) for step in first.trace]
    await house.deliver()
    assert [one.fields["fieldOne"] for one in house.engine.started.values()] == ["1.00", "2"]
    assert (await webhooks.show(house.gateway, OWNER, webhook.id)).call_count == 4

    again = await house.call(webhook, b'[{"n": 1.00},{"n":2}]', headers={"X-Id": "7"})
    assert (again.json["status"], again.json["invocationId"]) == ("duplicate", answer.json["invocationId"])
    more = await house.call(webhook, b'[{"n": 1.00},{"n":3}]', headers={"X-Id": "7"})
    assert more.json["status"] == "accepted"


async def test_an_array_that_is_no_calls_is_rejected_whole(house: House) -> None:
    webhook = await house.webhook(**EACH)
    for body, code in (
        (b'["x",1]', "payload_not_an_object"),
        (b"[" + b",".join([b"{}"] * 2001) + b"]", "payload_too_large"),
        (b'[{"n":1}', "malformed_json"),
    ):
        before = len(await house.history())
        assert (await house.call(webhook, body)).json["code"] == code
        call, *others = await house.history()
        assert (call.status, call.code, len(others)) == ("rejected", code, before)


async def test_an_empty_array_is_answered_and_starts_nothing(house: House) -> None:
    webhook = await house.webhook(**EACH)
    assert (await house.call(webhook, b"[]")).status == 200
    assert [one.status for one in await house.history()] == ["handshake"]


async def test_nobody_waits_for_several_workflows(house: House) -> None:
    wrong = await fields_refused(house.webhook(**EACH, synchronousResponse={"enabled": True}))
    assert list(wrong) == ["arrays"]


async def test_a_compressed_body_stays_in_the_history_as_it_came(house: House) -> None:
    webhook = await house.webhook(fieldMapping={"fieldOne": "n"}, payloadLimitBytes=1000)
    packed, bomb = gzip.compress(b'{"n":1}'), gzip.compress(b" " * 1001)
    call = await house.recorded(webhook, packed, headers={"Content-Encoding": "gzip"})
    await house.deliver()
    (trigger,) = house.engine.started.values()
    assert (trigger.fields["fieldOne"], trigger.payload) == ("1", b'{"n":1}')
    assert b64decode((await history.request(house.gateway, OWNER, call)).body_base64 or "") == packed
    assert (await house.call(webhook, bomb, headers={"Content-Encoding": "gzip"})).status == 413


async def test_accepted_calls_and_their_duplicates_hear_what_the_owner_has_set(house: House) -> None:
    own = {"status": 202, "contentType": "text/xml", "body": "<ok id='{invocationId}'/>"}
    webhook = await house.webhook(acceptedAnswer=own, duplicateProtection={"enabled": True})
    first = await house.call(webhook, b"{}")
    (call,) = await house.history()
    assert (first.status, first.headers["content-type"]) == (202, "text/xml")
    assert first.body == f"<ok id='{call.id}'/>".encode()
    assert "sandbox" in first.headers["content-security-policy"]
    again = await house.call(webhook, b"{}")
    assert (again.status, again.body) == (202, first.body)
    assert [one.http_status for one in await house.history()] == [202, 202]
    assert (await house.call(webhook, b"[]")).status == 400
    await webhooks.change(house.gateway, OWNER, webhook.id, {"acceptedAnswer": {"status": 204}})
    bare = await house.call(webhook, b'{"n":1}')
    assert (bare.status, bare.body) == (204, b"")


async def test_an_answer_that_is_none_is_refused(house: House) -> None:
    for own in (
        {"status": 301},
        {"contentType": "text/html\r\nx: y"},
        {"contentType": "a/b, text/html"},
        {"body": "x" * 4097},
    ):
        with pytest.raises(Refused):
            await house.webhook(acceptedAnswer=own)


async def test_a_handshake_needs_no_signature(house: House) -> None:
    how = {"method": "token", "placement": "url", "token": "whk_0123456789abcdef"}
    webhook = await house.webhook(authentication=how, handshake="reachable")
    assert (await house.call(webhook, method="HEAD")).status == 200
    assert (await house.call(webhook)).status == 401
    assert list(await fields_refused(house.webhook(authentication=how, handshake="zoom"))) == ["handshake"]
