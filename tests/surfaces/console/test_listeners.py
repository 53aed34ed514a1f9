"""A call is replayed to whoever listens."""

from typing import Any

from playwright.sync_api import expect

from surfaces.console.conftest import Console


def enter(console: Console, name: str) -> str:
    made = console.api.post("listeners", {"name": name})
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


def test_a_call_is_replayed_to_the_one_that_is_chosen(console: Console) -> None:
    webhook = console.webhook(name="Seen again")
    call = console.called(webhook["url"], {"n": 1})
    first, second = enter(console, "ada@thinkpad"), enter(console, "bob@desk")
    console.open(f"/calls/{call}")
    console.click("More actions")
    expect(console.page.get_by_role("button", name="Replay to ada@thinkpad")).to_be_visible()
    console.click("Replay to bob@desk")
    taken = take(console, second, status=503, ms=21.0)
    assert taken["request"]["invocationId"] == call
    expect(console.page.get_by_text("answered 503 in 21 ms")).to_be_visible()  # the page follows it
    assert console.api.post(f"listeners/{first}/calls", {"waitSeconds": 0}).json["calls"] == []
    assert len(console.api.get(f"invocations/{call}").json["deliveries"]) == 1
