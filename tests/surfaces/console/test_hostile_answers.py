"""What a workflow answers is served from the console's origin, and whoever calls may have chosen it: none of it may
act as the console's user."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, Page

from support.browser import new_context
from support.client import PASSWORD
from support.program import Program
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


@contextmanager
def obedient_engine() -> Iterator[str]:
    """Answers with the headers and the body that the call asks for: in its own response, or by the response
    action."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """A page of another site."""
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><form method=post><input name=payload></form>")

        def do_POST(self) -> None:
            event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            wanted = {"Content-Type": event["fieldOne"], "X-Content-Type-Options": event["fieldTwo"]}
            headers = {name: value for name, value in wanted.items() if value}
            if event["fieldFour"] == "inline":
                self.send_response(200)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(event["fieldThree"].encode())
                return
            slot = event["response"]
            answer = json.dumps({"headers": headers, "body": event["fieldThree"]}).encode()
            posting = Request(slot["url"], answer, {"Authorization": f"Bearer {slot['token']}"})
            posting.add_header("Content-Type", "application/json")
            try:
                urlopen(posting, timeout=10).close()
                status = 202
            except OSError:
                status = 400  # it cannot be sent: the workflow has failed
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def other_site() -> Iterator[str]:
    with obedient_engine() as url:
        yield url


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
    program = Program(tmp_path_factory.mktemp("answers"), environment)
    try:
        program.wait_until_ready()
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
        program.stop()
    finally:
        program.kill()


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
