"""The management API as other programs meet it."""

import shlex
import threading
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.client import PASSWORD, Client, HttpReply
from support.program import Program, StartProgram
from support.waiting import wait_until

WEBHOOK = {"name": "Orders", "authentication": {"method": "token", "token": "a token of the tests"}}


def made(api: Client, **settings: Any) -> dict[str, Any]:
    webhook: dict[str, Any] = api.post("webhooks", {**WEBHOOK, **settings}).json
    return webhook


def problem(reply: HttpReply) -> tuple[int, str]:
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json["status"] == reply.status
    assert reply.json["type"] == f"/problems/{reply.json['code']}"
    return reply.status, reply.json["code"]


def fields(reply: HttpReply) -> set[str]:
    assert problem(reply) == (422, "invalid_request")
    return {error["field"] for error in reply.json["errors"]}


def test_a_creation_says_where_the_thing_is_and_never_a_secret(api: Client) -> None:
    reply = api.post("webhooks", WEBHOOK)
    assert reply.status == 201
    assert reply.headers["location"] == f"/api/v1/webhooks/{reply.json['id']}"
    assert reply.headers["etag"] == '"1"'
    assert api.get(reply.headers["location"]).json == reply.json
    assert "a token of the tests" not in reply.text
    assert reply.json["authentication"]["tokenSet"] is True


def test_every_wrong_field_is_named_at_once(api: Client) -> None:
    wrong = {
        "name": "",
        "authentication": {"method": "token", "headerName": "Host", "token": "x"},
        "payloadLimitBytes": "1024",
        "rateLimit": {"burst": 0},
        "colour": "red",
    }
    assert fields(api.post("webhooks", wrong)) == {
        "name",
        "authentication.headerName",
        "payloadLimitBytes",
        "rateLimit.burst",
        "colour",
    }


@pytest.mark.parametrize(
    "path", ["webhooks?limit=0", "webhooks?limit=201", "webhooks?limit=many", "invocations?limit=1&limit=2"]
)
def test_a_wrong_limit_is_named(api: Client, path: str) -> None:
    assert fields(api.get(path)) == {"limit"}


def test_an_unknown_parameter_is_refused(api: Client) -> None:
    assert fields(api.get("invocations?webhook=wh_1&stauts=failed")) == {"webhook", "stauts"}


def test_what_cannot_be_a_cursor_or_a_time_is_refused(api: Client) -> None:
    assert fields(api.get("webhooks?cursor=2")) == {"cursor"}
    assert fields(api.get("invocations?since=yesterday")) == {"since"}
    assert fields(api.get("invocations?until=" + "9" * 30)) == {"until"}
    assert fields(api.get("webhooks?search=%00")) == {"search"}


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


def test_a_body_is_counted_while_it_streams(served: Program) -> None:
    connection = HTTPConnection("127.0.0.1", served.port, timeout=20)
    headers = {"Authorization": f"Bearer {served.admin_key}", "Content-Type": "application/json"}
    connection.request("POST", "/api/v1/webhooks", iter([b" " * 65536] * 40), headers, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()


def test_unknown_paths_and_wrong_methods_are_problems_too(api: Client) -> None:
    assert problem(api.get("nothing")) == (404, "not_found")
    assert problem(api.get("webhooks/")) == (404, "not_found")
    assert problem(api.get("webhooks/wh_0")) == (404, "not_found")
    assert problem(api.get("webhooks/%00")) == (404, "not_found")
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
    assert (reply.status, reply.text, reply.headers["content-type"]) == (
        200,
        "",
        whole.headers["content-type"],
    )


def test_pages_go_on_where_the_last_one_ended(api: Client) -> None:
    ids = [made(api, name=f"Paged {number}")["id"] for number in range(5)]
    seen, cursor = [], ""
    while True:
        page = api.get(f"webhooks?search=paged&limit=2{cursor}").json
        seen += [webhook["id"] for webhook in page["items"]]
        if page["nextCursor"] is None:
            break
        cursor = f"&cursor={page['nextCursor']}"
    assert seen == ids[::-1]


def test_a_lost_update_is_refused(api: Client) -> None:
    path = f"webhooks/{made(api)['id']}"
    assert api.patch(path, {"name": "First"}, If_Match='"1"').headers["etag"] == '"2"'
    assert problem(api.patch(path, {"name": "Second"}, If_Match='"1"')) == (412, "version_conflict")
    assert problem(api.patch(path, {"name": "Second"}, If_Match='W/"2"')) == (412, "version_conflict")
    assert problem(api.delete(path, If_Match='"1"')) == (412, "version_conflict")
    assert api.patch(path, {"name": "Second"}, If_Match='"7", "2"').json["name"] == "Second"
    assert api.patch(path, {"name": "Third"}, If_Match="*").json["version"] == 4
    assert api.delete(path, If_Match='"4"').status == 204
    assert api.get(path).status == 404


def test_a_patch_changes_what_it_names(api: Client) -> None:
    webhook = made(api, fieldMapping={"fieldOne": "a", "fieldTwo": "b"})
    changed = api.patch(
        f"webhooks/{webhook['id']}",
        {"fieldMapping": {"fieldTwo": None}, "authentication": {"headerName": "X-Token"}},
    ).json
    assert changed["fieldMapping"] == {
        "fieldOne": "a",
        "fieldTwo": None,
        "fieldThree": None,
        "fieldFour": None,
    }
    assert (changed["authentication"]["headerName"], changed["authentication"]["tokenSet"]) == (
        "X-Token",
        True,
    )


def test_switching_and_promoting(api: Client) -> None:
    path = f"webhooks/{made(api, authentication={'method': 'token', 'token': 'first', 'secondToken': 'second'})['id']}"
    assert api.post(f"{path}/disable").json["enabled"] is False
    assert api.post(f"{path}/enable").json["enabled"] is True
    assert api.post(f"{path}/promote").json["authentication"]["secondTokenSet"] is False
    assert problem(api.post(f"{path}/promote")) == (409, "conflict")


def test_the_same_creation_sent_again_makes_nothing_twice(api: Client) -> None:
    first, again = (
        api.post("webhooks", {**WEBHOOK, "name": "Once"}, Idempotency_Key="once") for _ in range(2)
    )
    assert (first.status, again.status, first.json) == (201, 201, again.json)
    assert (first.headers["location"], again.headers["idempotency-replayed"]) == (
        again.headers["location"],
        "true",
    )
    assert problem(api.post("webhooks", {**WEBHOOK, "name": "Other"}, Idempotency_Key="once")) == (
        422,
        "idempotency_mismatch",
    )
    assert len(api.get("webhooks?search=once").json["items"]) == 1


def test_many_at_once_with_one_key_make_one(api: Client) -> None:
    answers: list[HttpReply] = []

    def create() -> None:
        answers.append(api.post("api-keys", {"name": "Raced", "level": "read"}, Idempotency_Key="race"))

    racers = [threading.Thread(target=create) for _ in range(8)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert {answer.status for answer in answers} == {201}
    assert len({answer.json["key"] for answer in answers}) == 1
    assert len([key for key in api.get("api-keys").json["items"] if key["name"] == "Raced"]) == 1


def test_a_refused_creation_may_be_corrected_under_the_same_key(api: Client) -> None:
    assert api.post("webhooks", {**WEBHOOK, "name": ""}, Idempotency_Key="corrected").status == 422
    assert api.post("webhooks", WEBHOOK, Idempotency_Key="corrected").status == 201


def test_the_key_of_another_is_another_key(api: Client, served: Program) -> None:
    other = Client(served.port, api.post("api-keys", {"name": "Other", "level": "admin"}).json["key"])
    first, second = (client.post("webhooks", WEBHOOK, Idempotency_Key="shared") for client in (api, other))
    assert first.json["id"] != second.json["id"]


def test_a_key_is_shown_once_and_works_until_it_is_deleted(api: Client, served: Program) -> None:
    reply = api.post("api-keys", {"name": "Automation", "level": "read"})
    key = reply.json.pop("key")
    reader = Client(served.port, key)
    assert reader.get("webhooks").status == 200
    assert problem(reader.post("webhooks", WEBHOOK)) == (403, "access_denied")
    assert key not in api.get("api-keys").text
    assert api.delete(f"api-keys/{reply.json['id']}").status == 204
    refused = reader.get("webhooks")
    assert problem(refused) == (401, "not_authenticated")
    assert refused.headers["www-authenticate"].startswith("Bearer")


def signed_in(served: Program, **headers: str) -> Client:
    reply = Client(served.port).post("sessions", {"name": "admin", "password": PASSWORD})
    assert reply.status == 201
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=lax" in cookie and "Path=/" in cookie
    return Client(served.port, Cookie=cookie.partition(";")[0], **headers)


def test_a_session_works_like_a_key(served: Program) -> None:
    browser = signed_in(served, Sec_Fetch_Site="same-origin")
    assert browser.get("me").json["name"] == "admin"
    assert [one["current"] for one in browser.get("sessions").json["items"]].count(True) == 1
    assert browser.delete("sessions/current").status == 204
    assert problem(browser.get("me")) == (401, "not_authenticated")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "own"}, 403),
        ({"Sec-Fetch-Site": "none"}, 201),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "own"}, 201),
        ({}, 403),
    ],
)
def test_another_page_cannot_use_a_session(served: Program, headers: dict[str, str], status: int) -> None:
    browser = signed_in(served)
    given = {name: value.replace("own", served.url) for name, value in headers.items()}
    assert browser.post("webhooks", WEBHOOK, **given).status == status
    assert browser.get("webhooks", **given).status == 200


def test_a_wrong_password_is_refused(served: Program) -> None:
    assert problem(Client(served.port).post("sessions", {"name": "admin", "password": "wrong"})) == (
        401,
        "not_authenticated",
    )


def test_users_are_made_changed_and_deleted(api: Client, served: Program) -> None:
    reply = api.post("users", {"name": "Rita", "password": PASSWORD, "level": "read"})
    assert (reply.status, reply.json["name"]) == (201, "rita")
    assert problem(api.post("users", {"name": "rita", "password": PASSWORD, "level": "read"})) == (
        409,
        "conflict",
    )
    path = reply.headers["location"]
    assert api.patch(path, {"level": "write"}).json["level"] == "write"
    assert api.patch(path, {"password": "another password"}).status == 200
    assert (
        Client(served.port).post("sessions", {"name": "rita", "password": "another password"}).status == 201
    )
    assert api.delete(path).status == 204
    assert api.get(path).status == 404


def test_what_was_changed_can_be_read(api: Client) -> None:
    key = api.post("api-keys", {"name": "Noted", "level": "read"}).json
    entry = api.get(f"audit?subject={key['id']}").json["items"][0]
    assert (entry["action"], entry["actor"], entry["level"]) == (
        "api-key created",
        "POSTERN_ADMIN_KEY",
        "admin",
    )
    assert key["key"] not in api.get("audit").text


def test_a_changed_webhook_is_noted_field_by_field_and_without_its_secrets(api: Client) -> None:
    webhook = made(api, fieldMapping={"fieldOne": "a"})
    path = f"webhooks/{webhook['id']}"
    api.patch(path, {"fieldMapping": {"fieldOne": "b"}, "authentication": {"secondToken": "the next token"}})
    api.post(f"{path}/promote")
    api.post(f"{path}/hold")
    api.patch(path, {"name": "Lost"}, If_Match='"1"')
    api.delete(path)
    entries = api.get(f"audit?subject={webhook['id']}").json["items"]
    actions = ["webhook deleted", "webhook held", "secret promoted", "webhook changed", "webhook created"]
    assert [entry["action"] for entry in entries] == actions
    assert entries[3]["changes"] == {
        "fieldMapping.fieldOne": {"before": "a", "after": "b"},
        "secret.second": "set",
    }
    assert (
        "the next token" not in api.get("audit").text and "a token of the tests" not in api.get("audit").text
    )


def test_many_are_replayed_over_http(api: Client) -> None:
    webhook = made(api, authentication={"method": "none"})
    for number in range(3):
        assert api.post(urlsplit(webhook["url"]).path, {"n": number}).status == 200
    plan = api.post("replays", {"filter": {"webhookId": webhook["id"]}})
    assert (plan.status, plan.json["state"], plan.json["count"]) == (201, "planned", 3)
    path = plan.headers["location"]
    assert fields(api.post(f"{path}/run?fields=others")) == {"fields"}
    assert api.post(f"{path}/run?fields=recorded").json["fields"] == "recorded"
    done = wait_until(
        lambda: (reply := api.get(path).json)["state"] == "completed" and reply, what="the replay to be done"
    )
    assert (done["done"], done["skipped"]) == (3, 0)
    assert problem(api.post(f"{path}/cancel")) == (409, "conflict")
    assert fields(api.post("replays", {"filter": {"status": "lost"}})) == {"filter.status"}


def test_a_recorded_call_is_shown_as_a_curl_command_without_its_secret(api: Client) -> None:
    webhook = made(api)
    api.post(urlsplit(webhook["url"]).path + "?a=1", {"it's": "quoted"}, X_Api_Key="a token of the tests")
    invocation = api.get(f"invocations?webhookId={webhook['id']}").json["items"][0]["id"]
    reply = api.get(f"invocations/{invocation}/code")
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert "a token of the tests" not in reply.text
    words = shlex.split(reply.text.replace("\\\n", " "))
    assert words[:6] == ["curl", "-X", "POST", "--globoff", "--url", webhook["url"] + "?a=1"]
    assert "x-api-key: YOUR_X_API_KEY" in words
    assert words[-2:] == ["--data-raw", '{"it\'s": "quoted"}']


def test_an_engine_that_cannot_tell_says_so(api: Client) -> None:
    assert problem(api.get("runs")) == (409, "conflict")


def test_a_stranger_cannot_answer_for_a_workflow(served: Program) -> None:
    stranger = Client(served.port)
    assert problem(stranger.post("invocations/inv_0/response", {"body": 1}, Authorization="Bearer rt_0")) == (
        401,
        "not_authenticated",
    )
    assert problem(stranger.post("invocations/inv_0/response", {"status": 99})) == (401, "not_authenticated")


def test_a_request_id_is_echoed_and_one_is_made_up(api: Client) -> None:
    assert api.get("me", X_Request_Id="trace-7").headers["x-request-id"] == "trace-7"
    assert len(api.get("me", X_Request_Id="not one\t").headers["x-request-id"]) == 32


def test_another_sites_page_signs_nobody_in(served: Program) -> None:
    """It would sign its visitor in as somebody else, who then sees what the visitor does."""
    who = {"name": "admin", "password": PASSWORD}
    stranger = Client(served.port)
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site", "Origin": served.url},
    ):
        assert problem(stranger.post("sessions", who, **headers)) == (403, "access_denied")
    for headers in ({}, {"Origin": served.url}, {"Sec_Fetch_Site": "same-origin"}):
        assert stranger.post("sessions", who, **headers).status == 201


def test_browsers_are_told_to_stay_with_https_where_it_is_the_address(
    start_program: StartProgram, served: Program
) -> None:
    program = start_program(POSTERN_ENGINE="none", POSTERN_BASE_URL="https://hooks.example.com")
    for path in ("/healthz", "/sign-in", "/api/v1/me", "/webhook/none"):
        reply = Client(program.port).ask("POST" if path.startswith("/webhook") else "GET", path)
        assert reply.headers["strict-transport-security"] == "max-age=31536000", path
        assert "strict-transport-security" not in Client(served.port).get(path).headers


def test_a_session_s_cookie_goes_over_https_only_where_that_is_the_address(
    start_program: StartProgram, served: Program
) -> None:
    program = start_program(
        POSTERN_ENGINE="none", POSTERN_BASE_URL="https://hooks.example.com", POSTERN_ADMIN_PASSWORD=PASSWORD
    )
    for port, secure in ((program.port, True), (served.port, False)):
        said = Client(port).post("sessions", {"name": "admin", "password": PASSWORD})
        assert said.status == 201
        assert ("Secure" in said.headers["set-cookie"]) is secure
