"""What a form of the console can never send, sent all the same: refused with a page, or passed over."""

from http.client import HTTPConnection
from urllib.parse import quote, urlencode

import pytest

from support.client import PASSWORD, Client
from support.program import Program
from support.stored import overwrite
from support.waiting import PATIENCE, wait_until

SUPERSCRIPT, ENDLESS = "\u00b2", "9" * 5000
FORM = {"Content_Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def cookie(program: Program) -> str:
    reply = Client(program.port).post("sessions", {"name": "admin", "password": PASSWORD})
    return reply.headers["set-cookie"].partition(";")[0]


@pytest.fixture
def browser(program: Program, cookie: str) -> Client:
    return Client(program.port, Cookie=cookie, Sec_Fetch_Site="same-origin")


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
def test_a_filter_that_is_none_is_refused(browser: Client, field: str, value: str) -> None:
    assert browser.get(f"/calls?{field}={quote(value)}").status == 422
    assert browser.post("/replays", urlencode({field: value}).encode(), **FORM).status == 422


@pytest.mark.parametrize("value", [SUPERSCRIPT, ENDLESS])
def test_a_number_that_is_none_is_passed_over(
    browser: Client, program: Program, cookie: str, value: str
) -> None:
    api = Client(program.port, program.admin_key)
    webhook = api.post("webhooks", {"name": "Orders", "authentication": {"method": "none"}}).json["id"]
    assert (
        browser.post(f"/webhooks/{webhook}/settings", urlencode({"version": value}).encode(), **FORM).status
        == 303
    )
    form = urlencode({"url": "https://example.com", "how": "every", "amount": value, "unit": ""}).encode()
    assert browser.post(f"/webhooks/{webhook}/schedule", form, **FORM).status == 422
    connection = HTTPConnection("127.0.0.1", program.port, timeout=PATIENCE)
    connection.request("GET", f"/live/stream?newest={quote(value)}", headers={"Cookie": cookie})
    assert connection.getresponse().status == 200
    connection.close()


@pytest.mark.parametrize("value", ["1e999", "nan", ENDLESS, "soon"])
def test_a_time_out_that_is_no_number_is_refused_and_shown_again(
    browser: Client, program: Program, value: str
) -> None:
    api = Client(program.port, program.admin_key)
    webhook = api.post("webhooks", {"name": "Orders", "authentication": {"method": "none"}}).json["id"]
    form = urlencode(
        {"synchronousResponse.enabled": "on", "synchronousResponse.timeoutSeconds": value}
    ).encode()
    page = browser.post(f"/webhooks/{webhook}/settings", form, **FORM)
    assert page.status == 422 and f'value="{value}"' in page.text


def test_a_form_that_is_too_large_is_refused(program: Program) -> None:
    stranger = Client(program.port, Sec_Fetch_Site="same-origin")
    page = stranger.post("/sign-in", b"name=" + b"a" * 16 * 1024, **FORM)
    assert (page.status, "larger than 16 KiB" in page.text) == (413, True)


def test_a_list_of_calls_is_kept_by_no_cache(browser: Client) -> None:
    headers = browser.get("/calls/export?format=csv").headers
    assert headers["content-disposition"] == 'attachment; filename="calls.csv"'
    assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")


def test_what_was_saved_is_not_told_once_it_is_deleted(browser: Client, program: Program) -> None:
    api = Client(program.port, program.admin_key)
    webhook = api.post("webhooks", {"name": "Orders", "authentication": {"method": "none"}}).json["id"]
    before = f"/webhooks/{webhook}/settings?notice=saved"
    assert "Saved. It applies from the next call on." in browser.get(before).text
    api.delete(f"webhooks/{webhook}")
    page = browser.get(before)
    assert (page.status, "is in the bin" in page.text, "Saved." in page.text) == (404, True, False)


def test_a_way_back_with_line_breaks_in_it_adds_no_header(browser: Client, program: Program) -> None:
    api = Client(program.port, program.admin_key)
    webhook = api.post("webhooks", {"name": "Orders", "authentication": {"method": "none"}}).json
    Client(program.port).post("/webhook/" + webhook["url"].rpartition("/")[2], {"a": 1})
    invocation = api.get(f"invocations?webhookId={webhook['id']}").json["items"][0]["id"]
    form = {"invocation": invocation, "path": "a", "field": "fieldOne", "back": "/calls\r\nX-Evil: 1\u2028"}
    reply = browser.post("/calls/map", urlencode(form).encode(), Hx_Request="true", **FORM)
    assert reply.status == 200 and "x-evil" not in reply.headers
    assert reply.headers["hx-redirect"].startswith("/calls%0D%0AX-Evil")


def test_a_webhook_that_cannot_be_read_is_named_with_the_reason_and_can_be_deleted(
    browser: Client, program: Program
) -> None:
    api = Client(program.port, program.admin_key)
    webhook = api.post("webhooks", {"name": "Newer", "authentication": {"method": "none"}}).json
    overwrite(program.data_dir, webhook["id"])
    path = f"/webhooks/{webhook['id']}"
    for page, status in ((browser.get("/webhooks"), 200), (browser.get(path), 503)):
        assert (page.status, "Newer" in page.text, "quietHours" in page.text) == (status, True, True)
    assert "Not served" in browser.get("/webhooks").text
    wait_until(lambda: not api.get("/readyz").json["webhooks"]["ok"], what="/readyz to tell it")
    assert webhook["id"] in api.get("/readyz").json["webhooks"]["detail"]
    assert Client(program.port).post("/webhook/" + webhook["url"].rpartition("/")[2], {}).status == 503
    done = browser.post(f"{path}/delete", b"typed=Newer", **FORM)
    assert (done.status, done.headers["cache-control"]) == (303, "no-store")
    assert browser.get(path).status == 404


def test_a_webhook_is_never_open_because_a_field_was_left_out(browser: Client, program: Program) -> None:
    for form in ({"name": "No method"}, {"name": "No method", "method": "nothing"}):
        assert browser.post("/webhooks/new/other", urlencode(form).encode(), **FORM).status == 422
    listed = Client(program.port, program.admin_key).get("webhooks?search=No%20method").json
    assert listed["items"] == []


WEAK = ("Anybody who knows the URL", "short enough to be guessed")


def test_the_ready_page_warns_of_what_is_weak(browser: Client, program: Program) -> None:
    api = Client(program.port, program.admin_key)
    for authentication, warning in (
        ({"method": "none"}, WEAK[0]),
        ({"method": "token", "token": "ab"}, WEAK[1]),
        ({"method": "token", "token": "a token of the tests"}, None),
    ):
        made = api.post("webhooks", {"name": "Ready", "authentication": authentication}).json
        page = browser.get(f"/webhooks/{made['id']}/ready").text
        shown = [one for one in WEAK if one in page]
        assert shown == ([warning] if warning else [])
