"""Keys, users, sessions and the audit trail over HTTP."""

import pytest

from support.client import PASSWORD, Client
from support.program import Program, StartProgram
from support.rest import WEBHOOK, problem


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
    (own,) = [one["id"] for one in browser.get("sessions").json["items"] if one["current"]]
    ended = signed_in(served, Sec_Fetch_Site="same-origin").delete(f"sessions/{own}")
    assert (ended.status, "set-cookie" in ended.headers) == (204, False), "it was another one's cookie"
    browser = signed_in(served, Sec_Fetch_Site="same-origin")
    (own,) = [one["id"] for one in browser.get("sessions").json["items"] if one["current"]]
    assert "Max-Age=0" in browser.delete(f"sessions/{own}").headers["set-cookie"]
    browser = signed_in(served, Sec_Fetch_Site="same-origin")
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


def test_browsers_and_the_session_s_cookie_stay_with_https_where_it_is_the_address(
    start_program: StartProgram, served: Program
) -> None:
    given = {"POSTERN_BASE_URL": "https://hooks.example.com", "POSTERN_ADMIN_PASSWORD": PASSWORD}
    program = start_program(POSTERN_ENGINE="none", **given)
    for path in ("/healthz", "/sign-in", "/api/v1/me", "/webhook/none"):
        reply = Client(program.port).ask("POST" if path.startswith("/webhook") else "GET", path)
        assert reply.headers["strict-transport-security"] == "max-age=31536000", path
        assert "strict-transport-security" not in Client(served.port).get(path).headers
    for port, secure in ((program.port, True), (served.port, False)):
        session = Client(port).post("sessions", {"name": "admin", "password": PASSWORD})
        assert session.status == 201
        assert ("Secure" in session.headers["set-cookie"]) is secure
