"""Who answers a webhook's calls from a laptop is seen and can be ended, and a call is replayed to whoever listens."""

import threading
from typing import Any

from playwright.sync_api import expect

from surfaces.console.conftest import Console


def enter(console: Console, name: str, answers: str | None = None) -> str:
    made = console.api.post("listeners", {"name": name, "answers": answers})
    assert made.status == 201, made.text
    return str(made.json["id"])


def take(console: Console, listener: str, **answer: Any) -> dict[str, Any]:
    """As `postern listen` does it: the next call, answered."""
    calls: list[dict[str, Any]] = []
    while not calls:
        calls = console.api.post(f"listeners/{listener}/calls", {}).json["calls"]
    taken = console.api.post(f"listeners/{listener}/calls/{calls[0]['id']}", answer)
    assert taken.status == 200, taken.text
    return calls[0]


def test_who_answers_is_seen_everywhere_and_can_be_ended(console: Console) -> None:
    waits = {"enabled": True, "timeoutSeconds": 30}
    webhook = console.webhook(name="At a laptop", synchronousResponse=waits)
    listener = enter(console, "ada@thinkpad", webhook["id"])
    heard: list[tuple[int, dict[str, Any]]] = []
    calling = threading.Thread(target=lambda: heard.append(console.call(webhook["url"], {"n": 1})))
    calling.start()
    call = take(console, listener, status=402, bodyBase64="e30=", ms=12.0)
    calling.join(30)
    assert heard == [(402, {})]

    console.open("/webhooks")
    row = console.page.get_by_role("row").filter(has_text="At a laptop")
    expect(row.get_by_text("Answered by ada@thinkpad")).to_be_visible()
    console.open(f"/calls/{call['request']['invocationId']}")
    expect(console.page.get_by_text("ada@thinkpad answered, in the place of the workflow")).to_be_visible()
    console.open(f"/webhooks/{webhook['id']}/settings")
    card = console.page.locator(".card").filter(has_text="ada@thinkpad answers its calls")
    expect(card).to_contain_text("since")
    console.click("Give it back to the workflow")
    expect(console.page.get_by_text("Its calls start the workflow again.")).to_be_visible()
    expect(console.page.get_by_text("ada@thinkpad answers its calls")).to_have_count(0)
    ended = console.api.post(f"listeners/{listener}/calls", {"waitSeconds": 0})
    assert (ended.status, "admin has ended this listener" in ended.text) == (409, True), ended.text


def test_a_call_is_replayed_to_the_one_that_is_chosen(console: Console) -> None:
    webhook = console.webhook(name="Seen again")
    call = console.called(webhook["url"], {"n": 1})
    first, second = enter(console, "ada@thinkpad"), enter(console, "bob@desk")
    console.open(f"/calls/{call}")
    console.click("More actions")
    expect(console.page.get_by_role("button", name="Replay to ada@thinkpad")).to_be_visible()
    console.click("Replay to bob@desk")
    taken = take(console, second, status=503, ms=21.0)
    assert (taken["kind"], taken["request"]["invocationId"]) == ("replay", call)
    expect(console.page.get_by_text("answered 503 in 21 ms")).to_be_visible()  # the page follows it
    assert console.api.post(f"listeners/{first}/calls", {"waitSeconds": 0}).json["calls"] == []
    assert len(console.api.get(f"invocations/{call}").json["deliveries"]) == 1
