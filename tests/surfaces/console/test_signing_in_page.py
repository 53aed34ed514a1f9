"""Who gets into the console, and what another site cannot make a browser do."""

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import pytest

from support.client import PASSWORD, admin_of
from support.program import Program

Answer = tuple[int, dict[str, str], str]


def ask(
    program: Program, method: str, path: str, form: dict[str, str] | None = None, **headers: str
) -> Answer:
    connection = HTTPConnection("127.0.0.1", program.port, timeout=20)
    given = {
        "Sec-Fetch-Site": "same-origin",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    body = None if form is None else urlencode(form)
    try:
        connection.request(
            method,
            path,
            body,
            {"Content-Type": "application/x-www-form-urlencoded", **given} if form is not None else given,
        )
        response = connection.getresponse()
        return (
            response.status,
            {name.lower(): value for name, value in response.getheaders()},
            response.read().decode("utf-8", "replace"),
        )
    finally:
        connection.close()


def sign_in(program: Program, name: str = "admin", password: str = PASSWORD, onward: str = "") -> Answer:
    return ask(program, "POST", "/sign-in", {"name": name, "password": password, "next": onward})


@pytest.fixture(scope="module")
def cookie(program: Program) -> str:
    return sign_in(program)[1]["set-cookie"].partition(";")[0]


def test_the_session_cookie_is_kept_from_scripts_and_other_sites(program: Program) -> None:
    status, headers, _ = sign_in(program)
    assert (status, headers["location"]) == (303, "/webhooks")
    assert (
        "HttpOnly" in headers["set-cookie"]
        and "SameSite=lax" in headers["set-cookie"]
        and "Path=/" in headers["set-cookie"]
    )


def test_a_wrong_password_is_reported_without_saying_which_was_wrong(program: Program) -> None:
    status, headers, page = sign_in(program, password="not this one")
    assert status == 401 and "set-cookie" not in headers
    assert "The name or the password is not right." in page and "not this one" not in page


@pytest.mark.parametrize(
    "onward",
    ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/sign-out"],
)
def test_signing_in_leads_to_our_own_pages_only(program: Program, onward: str) -> None:
    assert sign_in(program, onward=onward)[1]["location"] == "/webhooks"


def test_a_stranger_is_asked_to_sign_in_and_then_gets_where_they_wanted(program: Program) -> None:
    status, headers, _ = ask(program, "GET", "/calls?status=rejected")
    assert (status, headers["location"]) == (303, "/sign-in?next=%2Fcalls%3Fstatus%3Drejected")
    assert sign_in(program, onward="/calls?status=rejected")[1]["location"] == "/calls?status=rejected"


@pytest.mark.parametrize(
    ("before", "onward"),
    [
        ("/webhooks/wh_1/settings?call=inv_1", "/webhooks/wh_1/settings?call=inv_1"),
        ("/webhooks/wh_1/settings/secret", "/webhooks/wh_1/settings"),  # where a form was refused
        ("/settings/keys", "/settings"),
        ("/no/such/page", ""),
        ("", ""),
    ],
)
def test_a_form_of_an_ended_session_says_that_nothing_was_saved_and_leads_back_to_its_page(
    program: Program, before: str, onward: str
) -> None:
    referer = program.url + before if before else "https://evil.example/webhooks"
    status, headers, _ = ask(program, "POST", "/webhooks/wh_1/settings", {"fieldOne": "x"}, Referer=referer)
    asked = parse_qs(urlsplit(headers["location"]).query)
    assert (status, asked.get("next", [""])[0], asked["ended"]) == (303, onward, ["unsaved"])
    assert "nothing was saved" in ask(program, "GET", headers["location"])[2]


def test_a_part_of_a_page_of_an_ended_session_leads_back_to_the_page(program: Program) -> None:
    page = program.url + "/webhooks?search=shop"
    headers = ask(program, "GET", "/webhooks?search=sho", HX_Request="true", HX_Current_URL=page)[1]
    assert headers["hx-redirect"] == "/sign-in?next=%2Fwebhooks%3Fsearch%3Dshop"


@pytest.mark.parametrize("headers", [{"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"}])
def test_another_sites_form_changes_nothing(program: Program, cookie: str, headers: dict[str, str]) -> None:
    webhook = (
        admin_of(program).post("webhooks", {"name": "Kept", "authentication": {"method": "none"}}).json["id"]
    )
    status, _, _ = ask(
        program, "POST", f"/webhooks/{webhook}/delete", {"typed": "Kept"}, Cookie=cookie, **headers
    )
    assert status == 403
    assert admin_of(program).get(f"webhooks/{webhook}").status == 200
    status, answered, _ = ask(program, "POST", "/theme", {"theme": "dark"}, **headers)
    assert status == 403 and "set-cookie" not in answered


def test_every_page_forbids_scripts_from_elsewhere_and_frames(program: Program, cookie: str) -> None:
    for path in ("/sign-in", "/webhooks", "/not-there", "/webhooks/wh_unknown"):
        _, headers, _ = ask(program, "GET", path, Cookie=cookie)
        policy = headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy and "unsafe" not in policy and "http" not in policy, path


def test_signing_out_ends_the_session(program: Program) -> None:
    cookie = sign_in(program)[1]["set-cookie"].partition(";")[0]
    assert ask(program, "GET", "/webhooks", Cookie=cookie)[0] == 200
    ask(program, "POST", "/sign-out", {}, Cookie=cookie)
    assert ask(program, "GET", "/webhooks", Cookie=cookie)[0] == 303


def test_who_may_only_read_is_offered_nothing_else_and_refused_it(program: Program, cookie: str) -> None:
    webhook: Any = (
        admin_of(program)
        .post("webhooks", {"name": "Seen", "authentication": {"method": "token", "token": "a secret token"}})
        .json
    )
    ask(
        program,
        "POST",
        "/settings/users",
        {"name": "rita", "password": "rita's password", "level": "read"},
        Cookie=cookie,
    )
    reader = sign_in(program, "rita", "rita's password")[1]["set-cookie"].partition(";")[0]
    for path in (
        "/webhooks",
        f"/webhooks/{webhook['id']}",
        f"/webhooks/{webhook['id']}/settings",
    ):
        status, _, page = ask(program, "GET", path, Cookie=reader)
        assert (
            status == 200
            and "New webhook" not in page
            and "/delete" not in page
            and "settings/reveal" not in page
        ), path
    for path in ("settings/reveal", "disable", "delete", "settings/secret"):
        status, _, page = ask(
            program, "POST", f"/webhooks/{webhook['id']}/{path}", {"secret": "x"}, Cookie=reader
        )
        assert status == 403 and "a secret token" not in page, path
    assert ask(program, "GET", "/webhooks/new", Cookie=reader)[0] == 403
    assert ask(program, "GET", "/settings/users", Cookie=reader)[0] == 403


def test_who_generates_a_secret_sees_it_in_that_answer_and_only_administrators_later(
    program: Program, cookie: str
) -> None:
    person = {"name": "wim", "password": "wim's password", "level": "write"}
    ask(program, "POST", "/settings/users", person, Cookie=cookie)
    writer = sign_in(program, "wim", "wim's password")[1]["set-cookie"].partition(";")[0]
    seen = set[str]()

    def generated(path: str, form: dict[str, str]) -> str:
        status, headers, page = ask(program, "POST", path, form, Cookie=writer)
        told = set(re.findall(r"wh(?:k|sec)_[\w+/=-]{40,}", page)) - seen
        assert (status, headers["cache-control"], len(told)) == (200, "no-store", 1), path
        seen.update(told)
        return page

    page = generated("/webhooks/new/tool", {"name": "Made by wim"})
    found = re.search(r'data-address="(/webhooks/wh_[0-9a-f]{32})/ready"', page)
    assert found is not None
    webhook, version = found[1], {"version": "1", "understood": "on"}
    assert "settings/reveal" not in generated(f"{webhook}/settings/secret", {"generate": "second"} | version)
    generated(f"{webhook}/settings", {"was": "token", "method": "hmac", "understood": "on"})
    generated("/webhooks/new/other", {"name": "Signed for wim", "method": "hmac"})
    for path in ("", "/ready", "/settings"):
        status, _, page = ask(program, "GET", webhook + path, Cookie=writer)
        assert status == 200 and not [one for one in seen if one in page], path
    assert ask(program, "POST", f"{webhook}/settings/reveal", {}, Cookie=writer)[0] == 403
    api = admin_of(program)
    asked = f"audit?limit=20&subject={webhook.rpartition('/')[2]}"
    assert not [one for one in api.get(asked).json["items"] if one["action"] == "secret revealed"]
    revealed = ask(program, "POST", f"{webhook}/settings/reveal", {}, Cookie=cookie)[2]
    assert [one for one in seen if one in revealed], "an administrator may"
    assert api.get(asked).json["items"][0]["action"] == "secret revealed"


def test_assets_are_kept_by_the_browser_for_as_long_as_they_stay_the_same(
    program: Program, cookie: str
) -> None:
    page = ask(program, "GET", "/webhooks", Cookie=cookie)[2]
    addresses = re.findall(r'(?:src|href)="(/static/[^"#]+)"', page)
    assert [urlsplit(address).path.rpartition("/")[2] for address in addresses] == [
        "mark.svg",
        "inter.woff2",
        "console.css",
        "console.js",
        "htmx.js",
    ]
    entry = addresses[3]
    imported = urljoin(entry, "./live.js")
    for address in (*addresses, imported):
        status, headers, _ = ask(program, "GET", address)
        assert status == 200 and "immutable" in headers["cache-control"], address
    of_before = re.sub(r"/js/\w+/", "/js/of-an-older-page/", imported)
    assert ask(program, "GET", of_before)[0] == 200
    for changing in (
        of_before,
        urljoin(of_before, "./console.js"),
        "/static/css/console.css",
        "/static/vendor/htmx.js",
    ):
        assert ask(program, "GET", changing)[1]["cache-control"] == "no-cache", changing
    assert ask(program, "GET", urljoin(entry, "./nothing.js"))[0] == 404


def test_an_open_live_stream_ends_soon_after_its_session_or_its_user(program: Program, cookie: str) -> None:
    people = {}
    for name in ("sam", "ursula", "kim"):
        ask(
            program,
            "POST",
            "/settings/users",
            {"name": name, "password": f"{name}'s password", "level": "read"},
            Cookie=cookie,
        )
        people[name] = sign_in(program, name, f"{name}'s password")[1]["set-cookie"].partition(";")[0]
    with ExitStack() as open_ones:
        streams = {name: open_ones.enter_context(stream(program, own)) for name, own in people.items()}
        session = next(
            one["id"] for one in admin_of(program).get("sessions").json["items"] if one["user"] == "sam"
        )
        assert ask(program, "POST", f"/settings/sessions/{session}/end", {}, Cookie=cookie)[0] == 303
        user = next(
            one["id"] for one in admin_of(program).get("users").json["items"] if one["name"] == "ursula"
        )
        assert ask(program, "POST", f"/settings/users/{user}/delete", {}, Cookie=cookie)[0] == 303
        latest = time.monotonic() + 30
        for name in ("sam", "ursula"):
            for _ in streams[name]:  # it says every few seconds that it is still there
                assert time.monotonic() < latest, f"the stream of {name} goes on"
        for line in streams["kim"]:  # who may still look hears on
            if line.startswith(b": still here"):
                break
        else:
            raise AssertionError("the stream of somebody else has ended too")


@contextmanager
def stream(program: Program, cookie: str) -> Iterator[HTTPResponse]:
    connection = HTTPConnection("127.0.0.1", program.port, timeout=60)
    connection.request("GET", "/live/stream", headers={"Cookie": cookie})
    with closing(connection), connection.getresponse() as response:
        assert (response.status, response.headers["content-type"]) == (
            200,
            "text/event-stream; charset=utf-8",
        )
        yield response
