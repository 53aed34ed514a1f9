"""A page on another origin calls a webhook, in a real browser."""

from typing import Any

from playwright.sync_api import Page

from support.browser import Notes
from support.callers import made
from support.program import StartProgram

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
    refused = call(listed, "wrong")
    assert (refused["status"], refused["body"]["code"]) == (401, "credential_mismatch")
    assert call(elsewhere) == call(without) == {"blocked": "TypeError"}
    assert any("CORS" in error for error in notes.errors)
    notes.errors.clear()  # the browser's own words about the refusals
