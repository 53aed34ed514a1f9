import asyncio
import gzip
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from postern.core.address import NOBODY, Allowlist
from postern.core.webhooks.bounds import source_problem
from postern.outbound import client
from postern.outbound.fetch import Fetcher
from postern.outbound.guard import FetchFailed, system_resolve
from stand_in import Raw, Received, Reply, nobody_accepts, stand_in
from support.certificates import certificate
from support.waiting import PATIENCE

# fmt: off
PRIVATE_IN_DISGUISE = [
    "127.0.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "127.1", "0", "0.0.0.0", "localhost", "[::1]", "[::]",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[2002:7f00:1::]", "[64:ff9b::7f00:1]", "224.0.0.1", "[ff02::1]", "169.254.169.254",
    "[fd00:ec2::254]", "10.0.0.1", "100.64.0.1", "192.168.1.1", "[fe80::1]", "[::127.0.0.1]", "127。0。0。1", "①②⑦.0.0.1",
]
# fmt: on
LOOPBACK = Allowlist.parse(["127.0.0.0/8"])


@asynccontextmanager
async def fetcher(
    allowed: Allowlist = LOOPBACK,
    names: dict[str, list[str]] | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Fetcher]:
    """A fetcher whose name server is a table; numeric hosts go to the system's resolver as in the product."""

    async def resolve(host: str, port: int) -> list[str]:
        return names[host] if names and host in names else await system_resolve(host, port)

    made = Fetcher(allowed_ranges=allowed, resolve=resolve, tls=tls)
    try:
        yield made
    finally:
        await made.aclose()


async def failure(made: Fetcher, url: str, **how: object) -> FetchFailed:
    with pytest.raises(FetchFailed) as caught:
        await made.fetch(url, **how)  # type: ignore[arg-type]
    return caught.value


def say_hello(_: Received) -> Reply:
    return Reply(200, {"Content-Type": "text/plain", "ETag": '"1"'}, b"hello")


async def test_an_answer_is_handed_back_whole() -> None:
    async with stand_in(say_hello) as server, fetcher() as made:
        answer = await made.fetch(server.url + "/path?q=1", headers={"X-Key": "k"})
    assert (answer.status, answer.body, answer.header("etag")) == (200, b"hello", '"1"')
    assert (server.received[0].target, server.received[0].headers["x-key"]) == ("/path?q=1", "k")


@pytest.mark.parametrize("host", PRIVATE_IN_DISGUISE)
async def test_no_way_of_writing_a_private_address_gets_through(host: str) -> None:
    async with stand_in(say_hello) as server, fetcher(NOBODY) as made:
        failed = await failure(made, f"http://{host}:{server.port}/")
    assert failed.reason_code in ("address_not_allowed", "bad_url", "name_not_found")
    assert not server.received


async def test_a_name_with_one_private_address_among_public_ones_is_refused() -> None:
    async with fetcher(NOBODY, {"mixed.test": ["93.184.216.34", "10.0.0.1"]}) as made:
        failed = await failure(made, "http://mixed.test/")
    assert failed.reason_code == "address_not_allowed"
    assert "10.0.0.1" in failed.detail


async def test_a_range_is_opened_on_purpose_and_no_other() -> None:
    async with stand_in(say_hello) as server, fetcher(Allowlist.parse(["127.0.0.1"])) as made:
        assert (await made.fetch(server.url)).status == 200
        assert (await failure(made, f"http://127.0.0.2:{server.port}/")).reason_code == "address_not_allowed"


async def test_no_range_opens_a_metadata_service() -> None:
    async with fetcher(Allowlist.parse(["0.0.0.0/0", "::/0"])) as made:
        assert (
            await failure(made, "http://169.254.169.254/latest/meta-data/")
        ).reason_code == "address_not_allowed"


async def test_a_name_server_that_changes_its_mind_is_asked_once() -> None:
    answers = [["127.0.0.1"], ["10.0.0.1"], ["10.0.0.1"]]

    async def rebinding(host: str, port: int) -> list[str]:
        return answers.pop(0)

    async with stand_in(say_hello) as server:
        made = Fetcher(allowed_ranges=LOOPBACK, resolve=rebinding)
        assert (await made.fetch(f"http://rebind.test:{server.port}/")).body == b"hello"
        await made.aclose()
    assert len(answers) == 2
    assert server.received[0].headers["host"] == f"rebind.test:{server.port}"


async def test_a_name_without_an_address_says_so() -> None:
    async with fetcher(names={"nowhere.test": []}) as made:
        assert (await failure(made, "http://nowhere.test/")).reason_code == "name_not_found"


async def test_a_name_server_that_is_silent_is_not_taken_for_one_that_knows_no_address() -> None:
    async def asked(host: str, port: int) -> list[str]:
        known = host != "silent.test"
        raise socket.gaierror(socket.EAI_NONAME if known else socket.EAI_AGAIN, "in the system's own words")

    made = Fetcher(resolve=asked)
    for host, why in (
        ("silent.test", "no name server could say where silent.test is"),
        ("nowhere.test", "nowhere.test has no address"),
    ):
        failed = await failure(made, f"http://{host}/")
        assert (failed.reason_code, failed.detail) == ("name_not_found", why)
    await made.aclose()


async def test_the_next_address_is_tried_when_one_refuses_the_connection() -> None:
    async with stand_in(say_hello) as server, fetcher(names={"two.test": ["127.0.0.9", "127.0.0.1"]}) as made:
        assert (await made.fetch(f"http://two.test:{server.port}/")).status == 200


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        *((url, "address_not_allowed") for url in ("http://10.0.0.1/", "http://169.254.169.254/latest/", "http://[::1]/")),
        *((url, "address_not_allowed") for url in ("//2130706434/", "//0x0a.1/")),
        *((url, "bad_url") for url in ("file:///etc/passwd", "gopher://127.0.0.1/", "http://a:b@127.0.0.1/", "http://[::")),
    ],
)  # fmt: skip
async def test_a_redirect_leads_only_to_an_allowed_web_address(location: str, reason: str) -> None:
    allowed = Allowlist.parse(["127.0.0.1"])
    async with stand_in(lambda _: Reply(302, {"Location": location})) as server, fetcher(allowed) as made:
        assert (await failure(made, server.url)).reason_code == reason


def count_down(request: Received) -> Reply:
    left = int(request.target.strip("/"))
    return Reply(302, {"Location": f"/{left - 1}"}) if left else say_hello(request)


async def test_five_redirects_are_followed_and_six_are_not() -> None:
    async with stand_in(count_down) as server, fetcher() as made:
        assert (await made.fetch(server.url + "/5")).body == b"hello"
        assert server.received[-1].target == "/0"
        assert (await failure(made, server.url + "/6")).reason_code == "too_many_redirects"


async def test_redirects_can_be_switched_off() -> None:
    async with stand_in(count_down) as server, fetcher() as made:
        failed = await failure(made, server.url + "/1", max_redirects=0)
    assert "not followed" in failed.detail
    assert len(server.received) == 1


async def test_a_redirect_can_be_an_answer_like_any_other() -> None:
    def moved(request: Received) -> Reply:
        return Reply(302, {"Location": "https://elsewhere.example/thanks"}, b"see there")

    async with stand_in(moved) as server, fetcher() as made:
        fetched = await made.fetch(server.url, max_redirects=None)
    assert (fetched.status, fetched.header("location")) == (302, "https://elsewhere.example/thanks")
    assert (fetched.body, len(server.received)) == (b"see there", 1)


async def test_headers_stay_with_the_site_they_were_given_for() -> None:
    async with (
        stand_in(say_hello) as other,
        stand_in(lambda r: Reply(307, {"Location": "/again" if r.target == "/" else other.url})) as server,
        fetcher() as made,
    ):
        await made.fetch(server.url + "/", headers={"Authorization": "Bearer secret", "X-Key": "secret"})
    assert server.received[1].headers["x-key"] == "secret"
    assert "secret" not in str(other.received[0].headers)


async def test_a_body_is_not_sent_on_to_another_site() -> None:
    async with (
        stand_in(say_hello) as other,
        stand_in(lambda _: Reply(307, {"Location": other.url})) as server,
        fetcher() as made,
    ):
        failed = await failure(made, server.url, method="POST", content=b"payload")
    assert failed.reason_code == "redirect_refused"
    assert not other.received


async def test_a_post_that_is_answered_see_other_becomes_a_get() -> None:
    async with (
        stand_in(lambda r: Reply(303, {"Location": "/done"}) if r.target == "/" else say_hello(r)) as server,
        fetcher() as made,
    ):
        await made.fetch(
            server.url + "/", method="POST", content=b"payload", headers={"Content-Type": "text/plain"}
        )
    assert (
        server.received[1].method,
        server.received[1].body,
        "content-type" in server.received[1].headers,
    ) == ("GET", b"", False)


async def test_cookies_are_not_remembered() -> None:
    async with stand_in(lambda _: Reply(200, {"Set-Cookie": "session=1"})) as server, fetcher() as made:
        await made.fetch(server.url)
        await made.fetch(server.url)
    assert "cookie" not in server.received[1].headers


async def test_a_proxy_in_the_environment_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with stand_in(say_hello) as server, fetcher() as made:
        assert (await made.fetch(server.url)).status == 200


@pytest.mark.parametrize(
    "url",
    [
        "",
        "shop.example",
        "ftp://shop.example/",
        "file:///etc/passwd",
        "http://",
        "http:///path",
        "http://[::",
        "http://user:pw@shop.example/",
        "http://a:99999/",
        "http://shop.example\\hook",
        "http://[::1]shop/",
    ],
)
async def test_what_is_no_web_address_is_called_so_also_where_it_is_written(url: str) -> None:
    assert source_problem(url)
    async with fetcher() as made:
        assert (await failure(made, url)).reason_code == "bad_url"


@pytest.mark.parametrize("headers", [{"X-Key": "a\r\nX-Other: b"}, {"X Key": "a"}, {"X-Key": "ключ"}])
async def test_a_header_that_http_cannot_carry_is_refused(headers: dict[str, str]) -> None:
    async with stand_in(say_hello) as server, fetcher() as made:
        assert (await failure(made, server.url, headers=headers)).reason_code == "bad_request"
    assert not server.received


async def test_an_answer_over_the_limit_is_refused() -> None:
    async with stand_in(lambda _: Reply(body=b"x" * 1001)) as server, fetcher() as made:
        assert (await failure(made, server.url, max_bytes=1000)).reason_code == "too_large"
        assert len((await made.fetch(server.url, max_bytes=1001)).body) == 1001


def compressed(body: bytes, coding: str = "gzip") -> Reply:
    return Reply(200, {"Content-Encoding": coding}, body)


def written(text: bytes) -> Raw:
    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(text)

    return Raw(write)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (compressed(gzip.compress(b"\0" * 50_000_000)), "too_large"),  # counted as it is decompressed
        (Reply(200, {f"X-{n}": "x" * 1000 for n in range(40)}), "too_large"),
        (compressed(gzip.compress(gzip.compress(b"hello")), "gzip, gzip"), "bad_response"),
        (compressed(gzip.compress(b"hello")[:-12]), "bad_response"),
        (compressed(b"no gzip at all"), "bad_response"),
        (compressed(b"hello", "br"), "bad_response"),
        (written(b"SSH-2.0-OpenSSH_9\r\n\r\n"), "bad_response"),
        (written(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), "bad_response"),
    ],
    ids=["bomb", "headers", "twice", "cut gzip", "no gzip", "brotli", "nonsense", "breaks off"],
)
async def test_a_bad_answer_is_refused(answer: Reply | Raw, reason: str) -> None:
    async with stand_in(lambda _: answer) as server, fetcher() as made:
        assert (await failure(made, server.url)).reason_code == reason


async def test_a_server_that_drips_is_left_at_the_deadline() -> None:
    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with stand_in(lambda _: Raw(drip)) as server, fetcher() as made:
        async with asyncio.timeout(PATIENCE):  # to its end it would drip for half an hour
            failed = await failure(made, server.url, timeout=2)
    assert failed.reason_code == "timeout"


async def test_redirects_share_one_deadline() -> None:
    async def slowly(_: Received) -> Reply:
        await asyncio.sleep(0.8)
        return Reply(302, {"Location": "/"})

    async with stand_in(slowly) as server, fetcher() as made:
        assert (await failure(made, server.url, timeout=2)).reason_code == "timeout"


async def test_a_slow_name_server_counts_too() -> None:
    async def slowly(host: str, port: int) -> list[str]:
        await asyncio.sleep(60)
        return []

    made = Fetcher(resolve=slowly)
    assert (await failure(made, "http://slow.test/", timeout=0.6)).reason_code == "connection_failed"
    await made.aclose()


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        ("2.0", 2.0),
        ("Thu, 01 Jan 1970 00:16:50 GMT", 10.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("soon", None),
        ("", None),
    ],
)
async def test_retry_after_is_read_as_seconds_or_as_a_date(value: str, seconds: float | None) -> None:
    async with stand_in(lambda _: Reply(503, {"Retry-After": value})) as server, fetcher() as made:
        assert (await made.fetch(server.url)).retry_after(now=1000.0) == seconds


async def test_reaching_out_sends_nothing() -> None:
    async with stand_in(say_hello) as server, fetcher() as made:
        await made.reach(server.url)
    assert not server.received
    async with fetcher() as made:
        with pytest.raises(FetchFailed):
            await made.reach(server.url)
        with pytest.raises(FetchFailed):
            await made.reach("http://10.0.0.1/")


async def test_nobody_listening_is_a_failed_connection() -> None:
    async with stand_in(say_hello) as server:
        pass
    async with fetcher() as made:
        assert (await failure(made, server.url)).reason_code == "connection_failed"


async def test_tls_is_checked_against_the_name_in_the_url_not_the_number_connected_to(tmp_path: Path) -> None:
    serving, trusting = certificate(tmp_path, "shop.test")
    names = {"shop.test": ["127.0.0.1"], "other.test": ["127.0.0.1"]}
    async with stand_in(say_hello, tls=serving) as server, fetcher(names=names, tls=trusting) as made:
        assert (await made.fetch(f"https://shop.test:{server.port}/")).body == b"hello"
        assert (await failure(made, f"https://other.test:{server.port}/")).reason_code == "tls"


@pytest.mark.parametrize("by_environment", [False, True])
async def test_a_certificate_that_the_system_does_not_trust_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_environment: bool
) -> None:
    serving, _ = certificate(tmp_path, "shop.test")
    if by_environment:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "server.pem"))
    names = {"shop.test": ["127.0.0.1"]}
    async with stand_in(say_hello, tls=serving) as server, fetcher(names=names) as made:
        assert (await failure(made, f"https://shop.test:{server.port}/")).reason_code == "tls"


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("/a%2Fb%7Ec?signature=x%2Fy%3D+z&d=", "/a%2Fb%7Ec?signature=x%2Fy%3D+z&d="),
        ("/ä b[1]?q=ü&r=%zz|#fragment", "/%C3%A4%20b[1]?q=%C3%BC&r=%zz%7C"),
        ("?q=1", "/?q=1"),
    ],
)
async def test_a_url_is_sent_as_it_was_written(written: str, sent: str) -> None:
    """A source that signs its URLs knows no other way of writing them."""
    async with stand_in(say_hello) as server, fetcher() as made:
        await made.fetch(server.url + written)
    assert server.received[0].target == sent


async def test_a_connection_is_used_again() -> None:
    connections = 0

    async def resolve(host: str, port: int) -> list[str]:
        nonlocal connections
        connections += 1
        return ["127.0.0.1"]

    async with stand_in(say_hello) as server:
        made = Fetcher(allowed_ranges=LOOPBACK, resolve=resolve)
        for _ in range(3):
            await made.fetch(f"http://shop.test:{server.port}/")
        await made.aclose()
    assert connections == 1


async def test_a_header_of_the_user_takes_the_place_of_ours_however_it_is_written() -> None:
    async with stand_in(say_hello) as server, fetcher() as made:
        await made.fetch(server.url, headers={"user-agent": "theirs"}, method="POST", content=b"x")
    assert server.received[0].headers["user-agent"] == "theirs"
    assert "content-type" not in server.received[0].headers


async def test_who_finds_all_connections_in_use_waits_for_one_and_is_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "MOST_CONNECTIONS", 1)
    go_on = asyncio.Event()

    async def hold(_: Received) -> Reply:
        await go_on.wait()
        return Reply()

    async with stand_in(hold) as server, fetcher() as made:
        first = asyncio.create_task(made.fetch(server.url))
        while not server.received:
            await asyncio.sleep(0.001)
        failed = await failure(made, server.url, timeout=0.4)
        assert (failed.reason_code, len(server.received)) == ("no_room", 1)
        assert failed.detail == "all 1 connections that the gateway makes at once are in use"
        second = asyncio.create_task(made.fetch(server.url, timeout=PATIENCE))
        await asyncio.sleep(0)
        go_on.set()
        assert [(await one).status for one in (first, second)] == [200, 200]


@pytest.mark.parametrize("no_turn_for", [0.0, 0.5])
async def test_whoever_does_not_take_the_connection_has_not_got_the_request(no_turn_for: float) -> None:
    """Also where the program finds its limits for the connection and for everything over at the same moment."""
    with nobody_accepts() as url:
        async with fetcher() as made:
            await made.prepare()
            asyncio.get_running_loop().call_later(0.01, time.sleep, no_turn_for)
            failed = await failure(made, url, timeout=0.4)
    assert failed.reason_code == "connection_failed"
