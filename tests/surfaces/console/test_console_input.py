"""What a form of the console can never send, sent all the same: refused with a page, or passed over."""

from http.client import HTTPConnection
from urllib.parse import quote

import pytest

from support.client import Client
from support.program import Program
from support.stored import overwrite
from support.waiting import PATIENCE, wait_until
from surfaces.console.conftest import Outside

SUPERSCRIPT, ENDLESS = "\u00b2", "9" * 5000


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("since", SUPERSCRIPT),
        ("since", ENDLESS),
        ("marked", "nothing"),
        ("status", "gone"),
        ("since", "soon"),
        ("until", "inf"),
        ("webhook", "\0"),
    ],
)
def test_a_filter_that_is_none_is_refused(visitor: Client, field: str, value: str) -> None:
    assert visitor.get(f"/calls?{field}={quote(value)}").status == 422
    assert visitor.submit("/replays", {field: value}).status == 422


@pytest.mark.parametrize("value", [SUPERSCRIPT, ENDLESS])
def test_a_number_that_is_none_is_passed_over(visitor: Client, outside: Outside, value: str) -> None:
    webhook = f"/webhooks/{outside.webhook()['id']}"
    assert visitor.submit(f"{webhook}/settings", {"version": value}).status == 303
    form = {"url": "https://example.com", "how": "every", "amount": value, "unit": ""}
    assert visitor.submit(f"{webhook}/schedule", form).status == 422
    connection = HTTPConnection("127.0.0.1", outside.program.port, timeout=PATIENCE)
    connection.request("GET", f"/live/stream?newest={quote(value)}", headers=visitor.headers)
    assert connection.getresponse().status == 200
    connection.close()


@pytest.mark.parametrize("value", ["1e999", "nan", ENDLESS, "soon"])
def test_a_time_out_that_is_no_number_is_refused_and_shown_again(
    visitor: Client, outside: Outside, value: str
) -> None:
    form = {"synchronousResponse.enabled": "on", "synchronousResponse.timeoutSeconds": value}
    page = visitor.submit(f"/webhooks/{outside.webhook()['id']}/settings", form)
    assert page.status == 422 and f'value="{value}"' in page.text


def test_a_form_that_is_too_large_is_refused(program: Program) -> None:
    stranger = Client(program.port, Sec_Fetch_Site="same-origin")
    page = stranger.submit("/sign-in", {"name": "a" * 16 * 1024})
    assert (page.status, "larger than 16 KiB" in page.text) == (413, True)


def test_a_list_of_calls_is_kept_by_no_cache(visitor: Client) -> None:
    headers = visitor.get("/calls/export?format=csv").headers
    assert headers["content-disposition"] == 'attachment; filename="calls.csv"'
    assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")


def test_what_was_saved_is_not_told_once_it_is_deleted(visitor: Client, outside: Outside) -> None:
    webhook = outside.webhook()["id"]
    before = f"/webhooks/{webhook}/settings?notice=saved"
    assert "Saved. It applies from the next call on." in visitor.get(before).text
    outside.api.delete(f"webhooks/{webhook}")
    page = visitor.get(before)
    assert (page.status, "is in the bin" in page.text, "Saved." in page.text) == (404, True, False)


def test_a_way_back_with_line_breaks_in_it_adds_no_header(visitor: Client, outside: Outside) -> None:
    invocation = outside.called(outside.webhook()["url"], {"a": 1})
    form = {"invocation": invocation, "path": "a", "field": "fieldOne", "back": "/calls\r\nX-Evil: 1\u2028"}
    reply = visitor.submit("/calls/map", form, Hx_Request="true")
    assert reply.status == 200 and "x-evil" not in reply.headers
    assert reply.headers["hx-redirect"].startswith("/calls%0D%0AX-Evil")


def test_a_webhook_that_cannot_be_read_is_named_with_the_reason_and_can_be_deleted(
    visitor: Client, outside: Outside
) -> None:
    api, webhook = outside.api, outside.webhook(name="Newer")
    overwrite(outside.program.data_dir, webhook["id"])
    path = f"/webhooks/{webhook['id']}"
    for page, status in ((visitor.get("/webhooks"), 200), (visitor.get(path), 503)):
        assert (page.status, "Newer" in page.text, "quietHours" in page.text) == (status, True, True)
    assert "Not served" in visitor.get("/webhooks").text
    wait_until(lambda: not api.get("/readyz").json["webhooks"]["ok"], what="/readyz to tell it")
    assert webhook["id"] in api.get("/readyz").json["webhooks"]["detail"]
    assert outside.call(webhook["url"])[0] == 503
    done = visitor.submit(f"{path}/delete", {"typed": "Newer"})
    assert (done.status, done.headers["cache-control"]) == (303, "no-store")
    assert visitor.get(path).status == 404


def test_a_webhook_is_never_open_because_a_field_was_left_out(visitor: Client, outside: Outside) -> None:
    for more in ({}, {"method": "nothing"}):
        assert visitor.submit("/webhooks/new/other", {"name": "No method", **more}).status == 422
    assert outside.api.get("webhooks?search=No%20method").json["items"] == []


WEAK = ("Anybody who knows the URL", "short enough to be guessed")


def test_the_ready_page_warns_of_what_is_weak(visitor: Client, outside: Outside) -> None:
    for authentication, warning in (
        ({"method": "none"}, WEAK[0]),
        ({"method": "token", "token": "ab"}, WEAK[1]),
        ({"method": "token", "token": "a token of the tests"}, None),
    ):
        page = visitor.get(f"/webhooks/{outside.webhook(authentication=authentication)['id']}/ready").text
        shown = [one for one in WEAK if one in page]
        assert shown == ([warning] if warning else [])
