"""The requests of commands over the network, and what a server or a proxy can do to them."""

import os
import select
import socket
import ssl
import threading
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from postern.surfaces.cli.gateway import remote
from postern.surfaces.cli.gateway.profiles import Login
from postern.surfaces.cli.gateway.remote import Remote
from postern.surfaces.cli.gateway.source import Away, HttpQuestion
from postern.surfaces.cli.gateway.web import FAILURES, Web, body_of, line_to
from postern.surfaces.cli.run import FAILED, USAGE
from support.certificates import certificate
from support.raw_server import Answer, program, says
from support.waiting import PATIENCE, wait_until

JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
OK = JSON + b"Content-Length: 2\r\n\r\n{}"
AGAIN = "it says again and again that its answer is still to come"
IN_PARTS = JSON + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"


@pytest.fixture(autouse=True)
def no_proxy_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in os.environ if one.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


def asked(web: Web, method: str = "GET", **headers: str) -> bytes:
    with web.ask(method, "/x", headers, None, PATIENCE) as answer:
        return body_of(answer, 1000)


def question(url: str) -> bytes:
    with closing(Remote(Login(url.rstrip("/"), "pk_x", "shop"))) as gateway:
        return gateway.ask(HttpQuestion("GET", "/webhooks", {}, None)).body


def test_a_connection_is_kept_until_the_server_closes_it() -> None:
    by: list[int] = []

    def answer(text: bytes, ends: bool = False) -> Answer:
        def say(connection: socket.socket, over: threading.Event) -> None:
            by.append(connection.getpeername()[1])
            says(text, ends=ends)(connection, over)

        return say

    answers = (answer(OK), answer(IN_PARTS), answer(OK, ends=True), answer(b"", ends=True), answer(OK))
    with program(*answers) as (url, _), closing(Web(url, by_proxy=False)) as web:
        assert [asked(web), asked(web, "POST"), asked(web)] == [b"{}"] * 3
        wait_until(lambda: select.select([web._kept[0].sock], [], [], 0)[0])
        with pytest.raises(FAILURES):
            asked(web)  # it was sent, and is not sent again
        assert asked(web) == b"{}"
    assert [by.index(one) for one in by] == [0, 0, 0, 3, 4]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n{}", "its answer ended too early"),
        (IN_PARTS.replace(b"\n1\r", b"\nFFFFFFFFFFFF\r", 1), "its answer ended too early"),
        (b"\x1b[2J\r\n\r\n", "·[2J··"),
        (b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000 + OK, AGAIN),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 1000 + OK, AGAIN),
        (b"", "Remote end closed connection without response"),
    ],
)
def test_an_answer_that_is_none_is_a_sentence(said: bytes, why: str) -> None:
    with program(says(said, ends=True)) as (url, _), pytest.raises(Away) as away:
        question(url)
    assert str(away.value) == f"{url.rstrip('/')} cannot be reached: {why}"


def test_an_answer_that_comes_before_all_was_sent_is_read() -> None:
    def refuses(connection: socket.socket, _: threading.Event) -> None:
        connection.sendall(OK.replace(b"200 OK", b"413 Too large"))
        connection.close()  # with most of the request unread

    with (
        program(refuses) as (url, _),
        closing(Web(url, by_proxy=False)) as web,
        web.ask("POST", "/x", {}, bytes(50_000_000), PATIENCE) as answer,
    ):
        assert (answer.status, body_of(answer, 1000)) == (413, b"{}")


def test_no_more_is_read_than_a_gateway_sends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(remote, "LARGEST_ANSWER", 100_000)
    monkeypatch.setattr(remote, "LONGEST_LINE", 100_000)
    endless = says(JSON + b"\r\n", *[b"1" * 65536] * 200)
    with program(endless) as (url, over):
        with pytest.raises(SystemExit) as ended:
            question(url)
        assert (ended.value.code, "answers without end" in capsys.readouterr().err) == (FAILED, True)
        with closing(Remote(Login(url, "pk_x", "shop"))) as gateway, pytest.raises(Away):
            next(gateway.news(None))
        assert not over.is_set()


def test_a_proxy_is_the_one_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    heads: list[bytes] = []
    with program(says(b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n"), heads=heads) as (url, _):
        monkeypatch.setenv("ALL_PROXY", url.replace("//", "//ada:p%40@"))
        for scheme in ("http", "https"):
            with closing(Web(f"{scheme}://[2001:db8::1]:81", by_proxy=True)) as web:
                if scheme == "http":
                    asked(web)
                else:
                    with pytest.raises(OSError, match="407"):
                        asked(web)
        for head, begin in zip(heads, (b"GET http://[2001:db8::1]:81/x HTTP/", b"CONNECT "), strict=True):
            assert head.startswith(begin) and b"\r\nProxy-Authorization: Basic YWRhOnBA\r\n" in head
        monkeypatch.setenv("NO_PROXY", "127.0.0.1,::1")
        for direct in (url, "http://[::1]:81"):
            assert Web(direct, by_proxy=True)._proxy is None
    monkeypatch.setenv("HTTPS_PROXY", "socks5://127.0.0.1:9")
    with pytest.raises(SystemExit) as ended:
        Web("https://shop.test", by_proxy=True)
    assert (ended.value.code, "socks5://" in capsys.readouterr().err) == (USAGE, True)


def test_headers_go_out_as_they_are_written() -> None:
    heads: list[bytes] = []
    with program(says(OK), heads=heads) as (url, _), closing(Web(url, by_proxy=False)) as web:
        asked(web, **{"webhook-id": "1", "X-GitHub-Event": "push"})
        asked(web, **{"user-agent": "Stripe"})
    assert b"\r\nwebhook-id: 1\r\nX-GitHub-Event: push\r\nUser-Agent: Postern\r\n" in heads[0]
    assert b"\r\nuser-agent: Stripe\r\n" in heads[1] and b"Postern" not in heads[1]
    assert line_to(urlsplit("http://[::1]/x"), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)).port == 80


def test_a_certificate_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server, _ = certificate(tmp_path, "localhost")
    with program(says(OK), tls=server) as (url, _):
        port = url.rstrip("/").rpartition(":")[2]
        with pytest.raises(Away, match="its TLS certificate is not valid here: self-signed certificate"):
            question(f"https://localhost:{port}")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "server.pem"))
        assert question(f"https://localhost:{port}") == b"{}"
        with pytest.raises(Away, match=r"not valid here: IP address mismatch"):
            question(f"https://127.0.0.1:{port}")
