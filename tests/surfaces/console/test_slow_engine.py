"""A replay of many while the engine is slow: its progress is seen, and cancelled by its button."""

from playwright.sync_api import Browser, expect

from journeys.cluster import CountingEngine
from journeys.cluster import an_engine as an_engine
from support.browser import new_context
from support.client import PASSWORD
from support.program import StartProgram
from support.waiting import wait_until
from surfaces.console.conftest import Console, sign_in

CALLS = 230
"""More than a replay puts into the queue while nothing leaves it."""


def test_a_cancelled_replay_stops_keeps_what_it_did_and_starts_nothing_more(
    browser: Browser, start_program: StartProgram, engine: CountingEngine
) -> None:
    program = start_program(
        POSTERN_ENGINE="http",
        POSTERN_HTTP_URL=engine.url,
        POSTERN_HTTP_TIMEOUT="20",
        POSTERN_ADMIN_PASSWORD=PASSWORD,
        POSTERN_LOG="off",
    )
    context = new_context(browser, reduced_motion="reduce")
    console = Console(context.new_page(), program)
    webhook = console.webhook(name="Many", rateLimit={"callsPerSecond": 10_000, "burst": 10_000})
    for number in range(CALLS):
        assert console.call(webhook["url"], {"n": number})[0] == 200
    wait_until(lambda: len(engine.keys) == CALLS, what="every call to be started once")

    engine.answers.clear()
    sign_in(context, program)
    console.open(f"/calls?webhook={webhook['id']}")
    console.replay_all()
    typed = console.page.get_by_label("Type the number of calls")
    typed.fill("23")
    console.page.locator("#begin").evaluate("form => form.submit()")
    expect(console.page.get_by_text(f"Type the number of calls, {CALLS}.")).to_be_visible()
    typed.fill(str(CALLS))
    console.click(f"Replay {CALLS} calls")
    expect(console.page.get_by_role("heading", name="Replaying")).to_be_visible()
    done = console.page.locator("#replay .body .number")
    expect(done).to_have_text("200")
    console.click("Cancel the rest")
    expect(console.page.get_by_role("heading", name="Replay cancelled")).to_be_visible()
    expect(console.page.get_by_text(f"200 of {CALLS} calls replayed")).to_be_visible()

    engine.answers.set()
    # Queued after everything that the replay might still have queued: once it is started, the rest would have
    # been too.
    last = console.call(webhook["url"], {"n": "last"})[1]["invocationId"]
    wait_until(lambda: f"{last}.1" in engine.keys, what="the last call to be started")
    wait_until(lambda: len(engine.keys) >= CALLS + 200 + 1, what="what had been replayed to be started")
    replay = console.api.get(f"replays/{console.path.rpartition('/')[2]}").json
    assert (replay["state"], replay["done"], replay["count"]) == ("cancelled", 200, CALLS)
    assert len(engine.keys) == CALLS + 200 + 1
    assert set(engine.keys.values()) == {1}
    context.close()
