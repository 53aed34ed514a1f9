"""Keys, users, sessions and the audit trail over HTTP."""

import pytest

from support.client import PASSWORD, Client
from support.program import Program, StartProgram
from support.rest import WEBHOOK, made, problem


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


def test_browsers_are_asked_to_stay_with_https_where_it_is_the_address(
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
        session = Client(port).post("sessions", {"name": "admin", "password": PASSWORD})
        assert session.status == 201
        assert ("Secure" in session.headers["set-cookie"]) is secure


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
