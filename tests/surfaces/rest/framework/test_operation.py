"""Rules for every operation: reading, refusing, pages, versions, the same request again."""

from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from support.client import Client
from support.program import Program
from support.rest import WEBHOOK, fields, made, problem


@pytest.mark.parametrize(
    "path", ["webhooks?limit=0", "webhooks?limit=201", "webhooks?limit=many", "invocations?limit=1&limit=2"]
)
def test_a_wrong_limit_is_named(api: Client, path: str) -> None:
    assert fields(api.get(path)) == {"limit"}


def test_an_unknown_parameter_is_refused(api: Client) -> None:
    assert fields(api.get("invocations?webhook=wh_1&stauts=failed")) == {"webhook", "stauts"}


def test_what_cannot_be_a_cursor_or_a_time_is_refused(api: Client, served: Program) -> None:
    for path, value in (
        ("webhooks?cursor=", "2"),
        ("invocations?answer=", "x"),
        ("invocations?since=", "yesterday"),
        ("invocations?until=", "9" * 30),
        ("webhooks?search=", "%00"),
    ):
        assert fields(api.get(path + value)) == {path[:-1].partition("?")[2]}
    assert "never awaited" not in served.output()


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        (b"{", "application/json", (400, "malformed_json")),
        (b"", "application/json", (400, "malformed_json")),
        (b'{"name": NaN}', "application/json", (400, "malformed_json")),
        (b'{"name":' + b"[" * 100_000, "application/json", (400, "malformed_json")),
        (b'{"name":' + b"[" * 200 + b"]" * 200 + b"}", "application/json", (400, "malformed_json")),
        (b"[]", "application/json", (400, "payload_not_an_object")),
        (b"{}", "text/plain", (415, "unsupported_media_type")),
        (b"name=Orders", "application/x-www-form-urlencoded", (415, "unsupported_media_type")),
        (b"{}", "application/json; charset=latin-1", (415, "unsupported_media_type")),
        (b" " * (2 * 1024 * 1024 + 1), "application/json", (413, "payload_too_large")),
    ],
)
def test_a_body_that_is_not_json_is_refused(
    api: Client, body: bytes, kind: str, expected: tuple[int, str]
) -> None:
    assert problem(api.post("webhooks", body, Content_Type=kind)) == expected


def test_a_body_where_none_is_taken_is_refused_and_not_passed_over(api: Client) -> None:
    """It may say to which of the channels."""
    answer = api.post("channel-tests", b'{"channelId": "ch_1"}')
    assert (answer.status, answer.json["detail"]) == (
        422,
        "This takes no body. Ask as parameters: channelId.",
    )
    hook = made(api)
    assert api.post(f"webhooks/{hook['id']}/hold", b"[1]").status == 422
    assert api.post("channel-tests", b"{}").status == 200


def test_a_number_that_is_too_large_is_named_in_plain_words(api: Client) -> None:
    answer = api.post("webhooks", b'{"name": "x", "rateLimit": {"burst": 1e999}}')
    assert (answer.status, answer.json["detail"]) == (400, "Number out of range.")


def test_a_body_is_counted_while_it_streams(served: Program) -> None:
    connection = HTTPConnection("127.0.0.1", served.port, timeout=20)
    headers = {"Authorization": f"Bearer {served.admin_key}", "Content-Type": "application/json"}
    connection.request("POST", "/api/v1/webhooks", iter([b" " * 65536] * 40), headers, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()


def test_unknown_paths_and_wrong_methods_are_problems_too(api: Client) -> None:
    for path in ("nothing", "webhooks/", "webhooks/wh_0", "webhooks/%00"):
        assert problem(api.get(path)) == (404, "not_found"), path
    reply = api.ask("PUT", "webhooks")
    assert problem(reply) == (405, "method_not_allowed")
    assert reply.headers["allow"] == "GET, HEAD, POST"


def test_a_path_of_its_own_is_no_id(api: Client) -> None:
    for method in ("GET", "PATCH", "DELETE", "OPTIONS"):
        reply = api.ask(method, "webhooks/many")
        assert problem(reply) == (405, "method_not_allowed")
        assert reply.headers["allow"] == "POST"
    assert api.ask("DELETE", "invocations/count").headers["allow"] == "GET, HEAD"


def test_the_type_of_a_problem_is_a_page(api: Client) -> None:
    page = api.get(api.get("nothing").json["type"])
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "not_found" in page.text
    assert api.get("/problems/none").status == 404


def test_head_is_answered_like_get_without_a_body(api: Client) -> None:
    reply, whole = api.ask("HEAD", "webhooks"), api.get("webhooks")
    assert (reply.status, reply.text) == (200, "")
    assert reply.headers["content-type"] == whole.headers["content-type"]


def test_the_same_creation_sent_again_makes_nothing_twice(api: Client) -> None:
    first, again, other = (
        api.post("webhooks", {**WEBHOOK, "name": name}, Idempotency_Key="once")
        for name in ("Once", "Once", "Other")
    )
    assert (first.status, again.status, first.json) == (201, 201, again.json)
    assert first.headers["location"] == again.headers["location"]
    assert again.headers["idempotency-replayed"] == "true"
    assert problem(other) == (422, "idempotency_mismatch")
    assert len(api.get("webhooks?search=once").json["items"]) == 1


def test_the_same_key_with_another_query_is_another_request(api: Client) -> None:
    webhook = made(api, authentication={"method": "none"})
    call = api.post(urlsplit(webhook["url"]).path, {}).json["invocationId"]
    for values, status in (("recorded", 202), ("recorded", 202), ("current", 422)):
        asked = api.post(f"invocations/{call}/replay?fields={values}", None, Idempotency_Key="replayed once")
        assert asked.status == status, asked.text


def test_a_weak_tag_is_no_version(api: Client) -> None:
    """RFC 9110: If-Match is compared strongly."""
    webhook = made(api)
    for tag, status in (('W/"1"', 412), ('"1"', 200)):
        assert api.ask("PATCH", f"webhooks/{webhook['id']}", {"name": "A"}, If_Match=tag).status == status


def test_a_file_that_is_known_is_not_sent_again(api: Client) -> None:
    tag = api.get("/docs/swagger-ui.css").headers["etag"]
    for known, status in ((tag, 304), (f"W/{tag}", 304), ('"another"', 200)):
        assert api.get("/docs/swagger-ui.css", If_None_Match=known).status == status


def test_a_request_id_is_echoed_and_one_is_made_up(api: Client) -> None:
    assert api.get("me", X_Request_Id="trace-7").headers["x-request-id"] == "trace-7"
    assert len(api.get("me", X_Request_Id="not one\t").headers["x-request-id"]) == 32
