"""Who gets into the console, and what another site cannot make a browser do."""

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest

from support.client import PASSWORD, Client
from support.program import Program
from support.reply import HttpReply
from surfaces.console.conftest import Outside


@pytest.fixture(scope="module")
def stranger(program: Program) -> Client:
    return Client(program.port, Sec_Fetch_Site="same-origin")


def sign_in(stranger: Client, name: str = "admin", password: str = PASSWORD, onward: str = "") -> HttpReply:
    return stranger.submit("/sign-in", {"name": name, "password": password, "next": onward})


def signed_in(stranger: Client, name: str, password: str) -> Client:
    cookie = sign_in(stranger, name, password).headers["set-cookie"].partition(";")[0]
    return Client(stranger.port, Cookie=cookie, Sec_Fetch_Site="same-origin")


def person(visitor: Client, stranger: Client, name: str, level: str) -> Client:
    """Somebody new, who has signed in."""
    visitor.submit("/settings/users", {"name": name, "password": f"{name}'s password", "level": level})
    return signed_in(stranger, name, f"{name}'s password")


def test_the_session_cookie_is_kept_from_scripts_and_other_sites(stranger: Client) -> None:
    reply = sign_in(stranger)
    assert (reply.status, reply.headers["location"]) == (303, "/webhooks")
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= {*reply.headers["set-cookie"].split("; ")}


def test_a_wrong_password_is_reported_without_saying_which_was_wrong(stranger: Client) -> None:
    reply = sign_in(stranger, password="not this one")
    assert reply.status == 401 and "set-cookie" not in reply.headers
    assert "The name or the password is not right." in reply.text and "not this one" not in reply.text


@pytest.mark.parametrize(
    "onward",
    ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/sign-out"],
)
def test_signing_in_leads_to_our_own_pages_only(stranger: Client, onward: str) -> None:
    assert sign_in(stranger, onward=onward).headers["location"] == "/webhooks"


def test_a_stranger_is_asked_to_sign_in_and_then_gets_where_they_wanted(stranger: Client) -> None:
    sent = stranger.get("/calls?status=rejected")
    assert (sent.status, sent.headers["location"]) == (303, "/sign-in?next=%2Fcalls%3Fstatus%3Drejected")
    onward = sign_in(stranger, onward="/calls?status=rejected").headers["location"]
    assert onward == "/calls?status=rejected"


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
    stranger: Client, program: Program, before: str, onward: str
) -> None:
    referer = program.url + before if before else "https://evil.example/webhooks"
    sent = stranger.submit("/webhooks/wh_1/settings", {"fieldOne": "x"}, Referer=referer)
    asked = parse_qs(urlsplit(sent.headers["location"]).query)
    assert (sent.status, asked.get("next", [""])[0], asked["ended"]) == (303, onward, ["unsaved"])
    assert "nothing was saved" in stranger.get(sent.headers["location"]).text


def test_a_part_of_a_page_of_an_ended_session_leads_back_to_the_page(
    stranger: Client, program: Program
) -> None:
    page = program.url + "/webhooks?search=shop"
    headers = stranger.get("/webhooks?search=sho", HX_Request="true", HX_Current_URL=page).headers
    assert headers["hx-redirect"] == "/sign-in?next=%2Fwebhooks%3Fsearch%3Dshop"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_sites_form_changes_nothing(
    visitor: Client, stranger: Client, outside: Outside, site: str
) -> None:
    webhook = outside.webhook(name="Kept")
    form = {"typed": "Kept"}
    assert visitor.submit(f"/webhooks/{webhook['id']}/delete", form, Sec_Fetch_Site=site).status == 403
    assert outside.api.get(f"webhooks/{webhook['id']}").status == 200
    answered = stranger.submit("/theme", {"theme": "dark"}, Sec_Fetch_Site=site)
    assert answered.status == 403 and "set-cookie" not in answered.headers


def test_every_page_forbids_scripts_from_elsewhere_and_frames(visitor: Client) -> None:
    for path in ("/sign-in", "/webhooks", "/not-there", "/webhooks/wh_unknown"):
        policy = visitor.get(path).headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy and "unsafe" not in policy and "http" not in policy, path


def test_signing_out_ends_the_session(stranger: Client) -> None:
    person = signed_in(stranger, "admin", PASSWORD)
    assert person.get("/webhooks").status == 200
    person.submit("/sign-out", {})
    assert person.get("/webhooks").status == 303


def test_who_may_only_read_is_offered_nothing_else_and_refused_it(
    visitor: Client, stranger: Client, outside: Outside
) -> None:
    token = {"method": "token", "token": "a secret token"}
    webhook = f"/webhooks/{outside.webhook(name='Seen', authentication=token)['id']}"
    reader = person(visitor, stranger, "rita", "read")
    for path in ("/webhooks", webhook, f"{webhook}/settings"):
        page = reader.get(path)
        assert page.status == 200, path
        assert not [one for one in ("New webhook", "/delete", "settings/reveal") if one in page.text], path
    for path in ("settings/reveal", "disable", "delete", "settings/secret"):
        page = reader.submit(f"{webhook}/{path}", {"secret": "x"})
        assert page.status == 403 and "a secret token" not in page.text, path
    assert reader.get("/webhooks/new").status == reader.get("/settings/users").status == 403


def test_who_generates_a_secret_sees_it_in_that_answer_and_only_administrators_later(
    visitor: Client, stranger: Client, outside: Outside
) -> None:
    writer = person(visitor, stranger, "wim", "write")
    seen = set[str]()

    def generated(path: str, form: dict[str, str]) -> str:
        page = writer.submit(path, form)
        told = set(re.findall(r"wh(?:k|sec)_[\w+/=-]{40,}", page.text)) - seen
        assert (page.status, page.headers["cache-control"], len(told)) == (200, "no-store", 1), path
        seen.update(told)
        return page.text

    page = generated("/webhooks/new/tool", {"name": "Made by wim"})
    found = re.search(r'data-address="(/webhooks/wh_[0-9a-f]{32})/ready"', page)
    assert found is not None
    webhook, version = found[1], {"version": "1", "understood": "on"}
    assert "settings/reveal" not in generated(f"{webhook}/settings/secret", {"generate": "second"} | version)
    generated(f"{webhook}/settings", {"was": "token", "method": "hmac", "understood": "on"})
    generated("/webhooks/new/other", {"name": "Signed for wim", "method": "hmac"})
    for path in ("", "/ready", "/settings"):
        page = writer.get(webhook + path)
        assert page.status == 200 and not [one for one in seen if one in page.text], path
    assert writer.submit(f"{webhook}/settings/reveal", {}).status == 403
    api, asked = outside.api, f"audit?limit=20&subject={webhook.rpartition('/')[2]}"
    assert not [one for one in api.get(asked).json["items"] if one["action"] == "secret revealed"]
    revealed = visitor.submit(f"{webhook}/settings/reveal", {}).text
    assert [one for one in seen if one in revealed], "an administrator may"
    assert api.get(asked).json["items"][0]["action"] == "secret revealed"


def test_assets_are_kept_by_the_browser_for_as_long_as_they_stay_the_same(
    visitor: Client, stranger: Client
) -> None:
    addresses = re.findall(r'(?:src|href)="(/static/[^"#]+)"', visitor.get("/webhooks").text)
    names = [urlsplit(address).path.rpartition("/")[2] for address in addresses]
    assert names == ["mark.svg", "inter.woff2", "console.css", "console.js", "htmx.js"]
    entry = addresses[3]
    imported = urljoin(entry, "./live.js")
    for address in (*addresses, imported):
        asset = stranger.get(address)
        assert asset.status == 200 and "immutable" in asset.headers["cache-control"], address
    of_before = re.sub(r"/js/\w+/", "/js/of-an-older-page/", imported)
    assert stranger.get(of_before).status == 200
    for changing in (
        of_before,
        urljoin(of_before, "./console.js"),
        "/static/css/console.css",
        "/static/vendor/htmx.js",
    ):
        assert stranger.get(changing).headers["cache-control"] == "no-cache", changing
    assert stranger.get(urljoin(entry, "./nothing.js")).status == 404


def test_an_open_live_stream_ends_soon_after_its_session_or_its_user(
    visitor: Client, stranger: Client, outside: Outside
) -> None:
    people = {name: person(visitor, stranger, name, "read") for name in ("sam", "ursula", "kim")}
    with ExitStack() as open_ones:
        streams = {name: open_ones.enter_context(stream(own)) for name, own in people.items()}
        sessions, users = (outside.api.get(path).json["items"] for path in ("sessions", "users"))
        session = next(one["id"] for one in sessions if one["user"] == "sam")
        assert visitor.submit(f"/settings/sessions/{session}/end", {}).status == 303
        user = next(one["id"] for one in users if one["name"] == "ursula")
        assert visitor.submit(f"/settings/users/{user}/delete", {}).status == 303
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
def stream(person: Client) -> Iterator[HTTPResponse]:
    connection = HTTPConnection("127.0.0.1", person.port, timeout=60)
    connection.request("GET", "/live/stream", headers=person.headers)
    with closing(connection), connection.getresponse() as response:
        told = response.status, response.headers["content-type"]
        assert told == (200, "text/event-stream; charset=utf-8")
        yield response


def test_a_link_invites_somebody_and_signs_them_in_once(visitor: Client, stranger: Client) -> None:
    page = visitor.submit("/settings/users", {"name": "grace", "password": "", "level": "write"})
    (link,) = set(re.findall(r"/join/[A-Za-z0-9_-]{43}", page.text))
    assert (
        "the link ends" in visitor.get("/settings/users").text
        and link not in visitor.get("/settings/users").text
    )

    assert "grace" in stranger.get(link).text
    short = stranger.submit(link, {"password": "short"})
    assert short.status == 422 and "has 8 to 256 characters" in short.text
    joined = stranger.submit(link, {"password": "grace's own password"})
    assert (joined.status, joined.headers["location"]) == (303, "/webhooks")
    cookie = joined.headers["set-cookie"].partition(";")[0]
    inside = Client(stranger.port, Cookie=cookie, Sec_Fetch_Site="same-origin")
    assert inside.get("/webhooks").status == 200
    for again in (stranger.get(link), stranger.submit(link, {"password": "another password"})):
        assert again.status == 404 and "This link was used" in again.text
    assert "location" in signed_in(stranger, "grace", "grace's own password").get("/").headers
