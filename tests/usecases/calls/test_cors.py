"""A page on another origin calls a webhook, in a real browser."""

from typing import Any

from playwright.sync_api import Page

from support.browser import Notes
from support.client import admin_of, made
from support.program import StartProgram
from support.waiting import wait_until

TOKEN = "whk_0123456789abcdef0123456789abcdef"

CALL = """async ([url, token]) => {
    try {
        const answer = await fetch(url, {
            method: "POST",
            headers: {"Content-Type": "application/json", ...(token ? {"X-Api-Key": token} : {})},
            body: JSON.stringify({n: 1}),
        });
        return {status: answer.status, id: answer.headers.get("X-Invocation-Id"), body: await answer.json()};
    } catch (error) {
        return {blocked: error.name};
    }
}"""


BEACON = """([url, type]) => navigator.sendBeacon(url, new Blob(['{"n": 1}'], {type}))"""


def test_a_storefront_on_the_list_is_answered_and_reads_errors_too_and_any_other_is_not(
    start_program: StartProgram, page: Page, notes: Notes, shop: str
) -> None:
    program = start_program(POSTERN_ENGINE="none", POSTERN_LOG="off")
    authentication = {"method": "token", "token": TOKEN}
    listed = made(program, authentication=authentication, cors={"enabled": True, "origins": [shop]})["url"]
    any_origin = made(program, authentication=authentication, cors={"enabled": True, "origins": ["*"]})["url"]
    elsewhere = made(
        program,
        authentication=authentication,
        cors={"enabled": True, "origins": ["https://shop.example.com"]},
    )["url"]
    without = made(program, authentication=authentication)["url"]
    page.goto(shop)

    def call(url: str, token: str = TOKEN) -> Any:
        return page.evaluate(CALL, [url, token])

    answer = call(listed)
    assert (answer["status"], answer["body"]["status"]) == (200, "accepted")
    assert answer["id"] == answer["body"]["invocationId"]
    assert call(any_origin)["status"] == 200
    rejected = call(listed, "wrong")
    assert (rejected["status"], rejected["body"]["code"]) == (401, "credential_mismatch")
    assert call(elsewhere) == call(without) == {"blocked": "TypeError"}
    assert any("CORS" in error for error in notes.errors)
    anonymous = {"authentication": {"method": "none"}}
    beacons = made(program, **anonymous, cors={"enabled": True, "origins": [shop]})
    foreign = made(program, **anonymous, cors={"enabled": True, "origins": ["https://shop.example.com"]})
    for webhook in (foreign, beacons):
        for kind in ("application/json", "text/plain"):
            assert page.evaluate(BEACON, [webhook["url"], kind])
    api = admin_of(program)

    def codes(webhook: dict[str, Any]) -> list[str]:
        return [one["code"] for one in api.get(f"invocations?webhookId={webhook['id']}").json["items"]]

    wait_until(lambda: codes(beacons) == ["accepted", "accepted"], what="both beacons to arrive")
    # The JSON one was stopped by its preflight, the text by us.
    wait_until(lambda: codes(foreign) == ["origin_not_allowed"] * 2, what="both to be rejected")
    notes.errors.clear()  # the browser's own words about the rejections
