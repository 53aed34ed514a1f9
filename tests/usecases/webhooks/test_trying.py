"""A key of duplicate protection, tried on the last calls before it is saved."""

import hmac
import json
from random import Random
from typing import Any

import pytest

from postern.usecases.history.views.requests import TriedKey
from postern.usecases.shapes import validated
from postern.usecases.webhooks import trying, webhooks
from postern.usecases.webhooks.trying import TryConditionsRequest
from postern.usecases.webhooks.views import TriedConditions, Webhook
from support.house import OWNER, House
from support.refusals import refused


async def test_a_key_is_looked_for_in_the_last_twenty_calls(house: House) -> None:
    webhook = await house.webhook()

    async def tried(key: str) -> TriedKey:
        return await trying.duplicate_key(house.gateway, OWNER, webhook.id, key)

    assert await tried("order.id") == TriedKey(calls=0, found=0, example=None, instead=None)
    await house.call(webhook, b'{"long": "ago"}')
    for _ in range(17):
        await house.call(webhook, b"{}")
    await house.call(webhook, b'{"order": {"id": 7}}', headers={"X-Event-ID": "evt_1"})
    await house.call(webhook, b'{"order": {"id": 8}}', headers={"X-Event-ID": "evt_2"})
    await house.call(webhook, b'{"order": {}}')
    assert await tried("body:order.id") == TriedKey(calls=20, found=2, example="8", instead=None)
    assert (await tried("long")).found == 0
    assert await tried("header:x-event-id") == TriedKey(calls=20, found=2, example="evt_2", instead=None)
    # Written as the other kind.
    assert (await tried("X-Event-ID")).instead == "header:X-Event-ID"
    assert (await tried("header:order")).instead == "order"
    assert await tried("nothing") == TriedKey(calls=20, found=0, example=None, instead=None)
    assert "without $" in (await refused(tried("$.order.id"))).errors[0].message


async def test_of_a_large_body_nothing_is_reported(house: House) -> None:
    webhook = await house.webhook()
    for size in (256 * 1024, 256 * 1024 + 1):
        await house.call(webhook, b'{"order": {"id": 7}}'.ljust(size), headers={"X-Event-ID": "evt_1"})
        path = await trying.duplicate_key(house.gateway, OWNER, webhook.id, "order.id")
        header = await trying.duplicate_key(house.gateway, OWNER, webhook.id, "header:X-Event-ID")
        assert (path.calls, path.found, header.calls - header.found) == (1, 1, 0)
    assert header.calls == 2


async def test_the_newest_call_is_the_example_and_a_long_one_is_cut(house: House) -> None:
    webhook = await house.webhook()
    for number in range(3):
        body = b'{"id": "%d%s"}' % (number, b"x" * 100)
        await house.call(webhook, body, headers={"X-Event-ID": f"evt_{number}"})
    path = await trying.duplicate_key(house.gateway, OWNER, webhook.id, "id")
    assert (path.calls, path.found, path.example) == (3, 3, "2" + "x" * 79)
    for key in ("header:X-Event-ID", "HEADER:x-event-id"):
        header = await trying.duplicate_key(house.gateway, OWNER, webhook.id, key)
        assert (header.found, header.example, header.instead) == (3, "evt_2", None)


async def tried(house: House, webhook: Webhook, *rows: dict[str, Any] | None) -> TriedConditions:
    """Without rows: the saved ones."""
    asked = {"conditions": [*rows]} if rows else {}
    return await trying.conditions(house.gateway, OWNER, webhook.id, validated(TryConditionsRequest, asked))


TOKEN = "a token of the tests"
PLACES = [
    "a",
    "a.b",
    "items[*].a",
    "header:X-Topic",
    "header:Cookie",
    "header:X-Api-Key",
    "header:traceparent",
    "event",
]
WORDS = ["x", "y", "1", "1.0", "***", "00-", TOKEN, "", "zü"]


def a_row(chance: Random) -> dict[str, Any]:
    kind = chance.choice(
        ["oneOf", "notOneOf", "contains", "beginsWith", "greater", "less", "there", "notThere"]
    )
    values = chance.sample(WORDS, 2) if kind in ("oneOf", "notOneOf", "contains", "beginsWith") else []
    values = ["0.5"] if kind in ("greater", "less") else values
    return {"of": chance.choice(PLACES), "is": kind, "values": values, "ignoreCase": chance.random() < 0.3}


def a_call(chance: Random) -> tuple[bytes, dict[str, str]]:
    def value(depth: int = 2) -> Any:
        made = chance.choice([*WORDS, None, True, 1, 0.25, {}, []])
        return {"a": value(depth - 1), "b": value(depth - 1)} if depth and chance.random() < 0.4 else made

    headers = {"X-Api-Key": TOKEN}
    for name in ("X-Topic", "Cookie", "X-Event-Type"):
        if chance.random() < 0.5:
            headers[name] = chance.choice([*WORDS[:-1], "z\u00c3\u00bc", f"it is {TOKEN}"])
    if chance.random() < 0.3:
        headers["traceparent"] = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
    body: Any = {"a": value(), "items": [value() for _ in range(chance.randrange(3))]}
    body = [body, body["items"]] if chance.random() < 0.1 else body
    return json.dumps(body).encode(), headers


async def test_what_is_previewed_is_what_then_happens(house: House) -> None:
    chance = Random(7)
    proven = {"method": "token", "token": TOKEN}
    fast = {"callsPerSecond": 10_000, "burst": 10_000}
    webhook = await house.webhook(authentication=proven, arrays="whole", rateLimit=fast)
    calls = [a_call(chance) for _ in range(120)]
    for body, headers in calls:
        assert (await house.call(webhook, body, headers=headers)).status == 200
    there = 0
    for _ in range(10):
        rows = [a_row(chance) for _ in range(chance.randrange(1, 4))]
        preview = await tried(house, webhook, *rows)
        assert preview.calls == 120
        before = {one.id for one in await house.history(webhook_id=webhook.id)}
        other = await house.webhook(authentication=proven, arrays="whole", rateLimit=fast, conditions=rows)
        for body, headers in calls:
            await house.call(other, body, headers=headers)
        held_back = await house.gateway.store.history.taken(other.id, None, 1000, 1 << 30)
        reasons = [one.detail for one in held_back if one.outcome == "filtered"]
        assert preview.would_not_start == len(reasons), rows
        assert [one.reason for one in preview.not_starting] == reasons[:100], rows
        there += len(reasons)
        assert before == {one.id for one in await house.history(webhook_id=webhook.id)}, "nothing is recorded"
    assert 250 < there < 1000


async def test_it_says_how_many_of_the_last_thousand_and_which(house: House) -> None:
    webhook = await house.webhook(conditions=[{"of": "n", "is": "less", "values": [3]}])
    ids = [await house.recorded(webhook, b'{"n": %d}' % number) for number in range(5)]
    await house.call(webhook, b"{broken")
    found = await tried(house, webhook)
    assert (found.calls, found.would_not_start, found.in_words[0]) == (
        5,
        2,
        "2 of the last 5 calls would not have started.",
    )
    assert [one.invocation_id for one in found.not_starting] == [ids[4], ids[3]]
    assert {one.code for one in found.not_starting} == {"filtered"}
    found = await tried(house, webhook, {"of": "n", "is": "oneOf", "values": ["4"]})
    assert [one.code for one in found.not_starting] == ["filtered", "accepted", "accepted", "accepted"]
    assert found.in_words[1] == "No signature covers what the rows read: whoever may call can send any value."
    await webhooks.change(house.gateway, OWNER, webhook.id, {"conditions": []})
    assert (await tried(house, webhook)).in_words == ["0 of the last 5 calls would not have started."]
    wrong = await refused(tried(house, webhook, {"of": "$.a", "is": "there"}))
    assert [one.field for one in wrong.errors] == ["conditions.0.of"]


async def test_a_body_that_is_gone_is_not_judged_and_large_ones_are_read_in_portions(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = await house.webhook(conditions=[{"of": "n", "is": "there"}])
    ids = [await house.recorded(webhook, b'{"m": "%s"}' % (b"x" * 1000)) for _ in range(5)]
    await house.gateway.store.retention.strip(ids[:1])
    monkeypatch.setattr(trying, "PORTION_BYTES", 1500)
    found = await tried(house, webhook)
    assert (found.calls, found.would_not_start, found.not_judged) == (4, 4, 1)
    assert found.in_words[1] == "1 more cannot be judged: their bodies are not kept, or not read any more."
    monkeypatch.setattr(trying, "MOST_READ", 1500)
    assert (await tried(house, webhook)).calls == 2
    monkeypatch.setattr(trying, "MOST_JUDGED", 1)
    assert (await tried(house, webhook)).in_words[0] == "1 of the last 1 call would not have started."


async def test_a_row_that_reads_what_is_not_signed_says_so(house: House) -> None:
    signs = {"method": "hmac", "provider": "github", "secret": "a secret that is long enough"}
    rows = [{"of": one, "is": "there"} for one in ("event", "sender.login", "header:Cookie", "header:X-Own")]
    webhook = await house.webhook(authentication=signs, conditions=rows)
    said = [one for one in webhook.warnings if "does not cover" in one]
    assert [one.split(",")[0] for one in said] == [
        "The signature does not cover the event (header:X-GitHub-Event)",
        "The signature does not cover header:Cookie",
        "The signature does not cover header:X-Own",
    ]
    found = await tried(house, webhook)
    assert found.in_words[1] == "The history masks header:Cookie, so a condition reads *** there."
    assert found.in_words[2:] == said
    signs["provider"] = "stripe"
    webhook = await house.webhook(authentication=signs, conditions=rows[:2])
    assert not [one for one in webhook.warnings if "does not cover" in one], (
        "Stripe names it in the signed body"
    )


async def test_the_events_and_actors_of_the_last_calls_are_there_to_choose_from(house: House) -> None:
    secret = "a secret that is long enough"
    webhook = await house.webhook(authentication={"method": "hmac", "provider": "github", "secret": secret})
    for login in ('"ada"', '"my-bot"', "null", '"my-bot"'):
        body = b'{"sender": {"login": %s}}' % login.encode()
        proof = f"sha256={hmac.digest(secret.encode(), body, 'sha256').hex()}"
        headers = {"X-Hub-Signature-256": proof, "X-GitHub-Event": "push"}
        assert (await house.call(webhook, body, headers=headers)).status == 200
    found = await trying.seen(house.gateway, OWNER, webhook.id)
    assert [(one.of, one.value, one.calls) for one in found.events] == [("event", "push", 4)]
    actors = [(one.of, one.value, one.calls) for one in found.actors]
    assert actors == [("sender.login", "my-bot", 2), ("sender.login", "ada", 1)]
