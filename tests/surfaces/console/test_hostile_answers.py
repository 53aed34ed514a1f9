"""What a workflow answers is served from the console's origin, and whoever calls may have chosen it: none of it may
act as the console's user."""

import json
from collections.abc import Iterator
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, Page

from support.browser import new_context
from support.client import PASSWORD
from support.program import Program
from support.server import Answer, Asked, serving
from surfaces.console.conftest import Console, sign_in

ATTACK = """
    const request = new XMLHttpRequest();
    request.open("POST", "/api/v1/api-keys", false);
    request.setRequestHeader("Content-Type", "application/json");
    request.send(JSON.stringify({name: "stolen", level: "admin"}));
"""
HTML = f"<!doctype html><html><body><script>{ATTACK}</script></body></html>"
SVG = f'<svg xmlns="http://www.w3.org/2000/svg"><script>{ATTACK}</script></svg>'
XHTML = f'<html xmlns="http://www.w3.org/1999/xhtml"><body><script>{ATTACK}</script></body></html>'
FORMS = [
    ("text/html", "", HTML),
    ("TEXT/HTML;charset=utf-8", "", HTML),
    (" text/html", "", HTML),
    ("image/svg+xml", "", SVG),
    ("application/xhtml+xml", "", XHTML),
    ("text/xml", "", XHTML),
    ("application/foo+xml", "", XHTML),
    ("application/atom+xml", "", XHTML),
    ("x/y, text/html", "", HTML),
    ("application/json, text/html", "", HTML),
    ("text/plain; a=b, text/html", "", HTML),
    ('text/plain; a="b, text/html"', "", HTML),
    ("unknown/unknown", "off", HTML),
    ("application/unknown", "off", HTML),
    ("*/*", "off", HTML),
    ("x", "off", HTML),
    ("", "off", HTML),
    ("text/plain", "off", HTML),
    ("multipart/x-mixed-replace; boundary=b", "", f"--b\r\nContent-Type: text/html\r\n\r\n{HTML}\r\n--b--"),
]


@pytest.fixture(scope="module")
def other_site() -> Iterator[str]:
    """An engine that answers with the headers and the body that the call asks for: in its own response, or by the
    response action."""

    def answer(asked: Asked) -> Answer:
        if asked.method == "GET":  # a page of another site
            return 200, "text/html", b"<!doctype html><form method=post><input name=payload></form>"
        event = json.loads(asked.body)
        wanted = {"Content-Type": event["fieldOne"], "X-Content-Type-Options": event["fieldTwo"]}
        headers = {name: value for name, value in wanted.items() if value}
        if event["fieldFour"] == "inline":
            return 200, headers, event["fieldThree"].encode()
        slot = event["response"]
        given = json.dumps({"headers": headers, "body": event["fieldThree"]}).encode()
        posting = Request(slot["url"], given, {"Authorization": f"Bearer {slot['token']}"})
        posting.add_header("Content-Type", "application/json")
        try:
            urlopen(posting, timeout=10).close()
        except OSError:
            return 400, "", b""  # it cannot be sent: the workflow has failed
        return 202, "", b""

    with serving(answer) as url:
        yield url.replace("127.0.0.1", "localhost")


@pytest.fixture(scope="module")
def target(
    browser: Browser, other_site: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Console, str]]:
    environment = {
        "POSTERN_ADMIN_PASSWORD": PASSWORD,
        "POSTERN_ENGINE": "http",
        "POSTERN_HTTP_URL": other_site + "/start",
        "POSTERN_HTTP_INLINE": "on",
    }
    with Program(tmp_path_factory.mktemp("answers"), environment) as program:
        context = new_context(browser)
        console = Console(context.new_page(), program)
        sign_in(context, program)
        names = ("fieldOne", "fieldTwo", "fieldThree", "fieldFour")
        webhook = console.webhook(
            fieldMapping={name: name for name in names},
            synchronousResponse={"enabled": True, "timeoutSeconds": 10},
        )
        yield console, webhook["url"]
        context.close()


@pytest.mark.parametrize("way", ["inline", "action"])
def test_no_answer_acts_as_the_consoles_user(way: str, target: tuple[Console, str], other_site: str) -> None:
    console, url = target
    made, took_over = len(console.api.get("api-keys").json["items"]), []
    for kind, sniffing, body in FORMS:
        fields = {"fieldOne": kind, "fieldTwo": sniffing, "fieldThree": body, "fieldFour": way}
        post_from(console.page, other_site, url, fields)
        keys = len(console.api.get("api-keys").json["items"])
        if keys > made:
            took_over.append((kind, sniffing))
        made = keys
    assert took_over == []


def post_from(page: Page, site: str, url: str, fields: dict[str, str]) -> None:
    """A form on another site's page is sent, and its answer shown or saved."""
    saved: list[object] = []

    def note(download: object) -> None:
        saved.append(download)

    page.on("download", note)
    page.goto(site)
    page.evaluate(
        """([url, payload]) => {
            document.forms[0].action = url;
            document.forms[0].payload.value = payload;
            document.forms[0].submit();
        }""",
        [url, json.dumps(fields)],
    )
    while not saved and page.url != url:
        page.wait_for_timeout(10)
    if not saved:
        page.wait_for_load_state()
    page.remove_listener("download", note)
