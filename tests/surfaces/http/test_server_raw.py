"""Bytes that a stranger may send to the real program's port: each gets one clear answer, and the program goes on
serving."""

import random
import select
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.program import Program
from support.reply import HttpReply
from support.waiting import PATIENCE as PATIENCE_OF_OURS
from support.waiting import wait_until
from support.webhooks import TOKEN, ServedWebhook, how_many, make_webhook, stories, wait_until_served
from support.wire import Wire, request, wire

PATIENCE = 2  # seconds the program waits for a request to arrive whole
KEY = ("X-Api-Key", TOKEN)
JSON = ("Content-Type", "application/json")
BODY = b'{"order": 1}'
CHUNKED = ("Transfer-Encoding", "chunked")
RESET = b"\x01\x00\x00\x00\x00\x00\x00\x00"
"""Closes a connection with a reset, as a machine that goes down does it."""


class House(NamedTuple):
    program: Program
    port: int
    webhook: ServedWebhook
    small: ServedWebhook

    def post(
        self,
        *headers: tuple[str, str],
        to: ServedWebhook | None = None,
        body: bytes | None = BODY,
        target: str = "",
        version: str = "HTTP/1.1",
    ) -> bytes:
        """A call as bytes, of the usual webhook where no other is named."""
        path = target or (to or self.webhook).path
        return request("POST", path, [KEY, JSON, *headers], body, version)

    def send(self, data: bytes) -> HttpReply:
        """The one answer to these bytes."""
        with wire(self.port) as connection:
            connection.send(data)
            return connection.heard()

    def newest(self, place: int = 0) -> dict[str, Any]:
        """The story of the newest call."""
        return stories(self.program.data_dir, self.webhook, newest=place + 1)[place]

    def alive(self) -> None:
        """It still does what it is for."""
        answer = self.send(self.post())
        assert (answer.status, answer.json["status"]) == (200, "accepted")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("raw")
    webhook = make_webhook(folder / "data")
    small = make_webhook(folder / "data", payloadLimitBytes=1000)
    settings = {"POSTERN_ENGINE": "none", "POSTERN_BODY_TIMEOUT": str(PATIENCE), "POSTERN_LOG": "json"}
    with Program(folder, settings) as program:
        wait_until_served(program.port, webhook, small)
        yield House(program, program.port, webhook, small)
    assert "Traceback" not in program.output()


@pytest.fixture(autouse=True)
def goes_on_serving(house: House) -> Iterator[None]:
    yield
    house.alive()


# --- bytes that are no request ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"hello\r\n\r\n",
        b"\x00\x01\x02\x03\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x7f" * 64,  # a TLS greeting
        b"POST\r\n\r\n",
        b"POST / HTTP/9.9\r\n\r\n",
        b"POST / HTTP/1.1\nHost x\n\n",
        b"post / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"CONNECT gateway.example:443 HTTP/1.1\r\nHost: gateway.example\r\n\r\n",
        b"POST /a\x00b HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /caf\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nX-A: 1\x002\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nX A: 1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\n: 1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nX-A: 1\r\n folded\r\n\r\n",
        b"GET / HTTP/2.0\r\nHost: x\r\n\r\n",
        b"GET / RTSP/1.0\r\nHost: x\r\n\r\n",
        b"OPTIONS rtsp://x/a RTSP/1.0\r\nCSeq: 1\r\n\r\n",
        b"SOURCE /a ICE/1.0\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.0\r\nHost: x\r\nhost: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x/y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x@y\r\n\r\n",
        b"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)
def test_what_is_not_http_is_a_malformed_request(house: House, data: bytes) -> None:
    with wire(house.port) as connection:
        connection.send(data)
        answer = connection.heard()
        assert answer.code == "malformed_request"
        assert answer.headers["connection"] == "close"
        assert connection.ended()


def test_random_bytes_are_refused_or_ignored_and_never_break_anything(house: House) -> None:
    dice, likely = random.Random(20261121), [8 if char in b"\r\n: " else 1 for char in range(256)]
    for _ in range(150):
        whole = f"POST {house.webhook.path} HTTP/1.1\r\nHost: x\r\n".encode()
        start = dice.choice([b"", b"POST ", b"POST / HTTP/1.1\r\n", whole])
        noise = bytes(dice.choices(range(256), weights=likely, k=dice.randrange(1, 400)))
        with wire(house.port) as connection:
            connection.send(start + noise + b"\r\n\r\n")
            connection.hang_up()
            answer = connection.answer()
            assert answer is None or 400 <= answer.status < 500


# --- heads -----------------------------------------------------------------------------------------------------------


def head_of(house: House, size: int, one: bool) -> bytes:
    """A whole call whose request target and headers are about so large."""
    many = [(f"X-Filler-{number:05}", "f" * 80) for number in range(size // 98)]
    return house.post(*([("X-Filler", "f" * size)] if one else many))


@pytest.mark.parametrize("one", [True, False], ids=["one large header", "many small headers"])
def test_a_head_below_32_kib_is_read(house: House, one: bool) -> None:
    assert house.send(head_of(house, 31 * 1024, one)).status == 200


@pytest.mark.parametrize("one", [True, False], ids=["one large header", "many small headers"])
@pytest.mark.parametrize("size", [33 * 1024, 300 * 1024, 3 * 1024 * 1024])
def test_a_head_above_32_kib_is_refused_and_says_so(house: House, one: bool, size: int) -> None:
    answer = house.send(head_of(house, size, one))  # it can be sent whole, and the answer still arrives
    assert (answer.status, answer.code) == (431, "headers_too_large")


@pytest.mark.parametrize(
    "start",
    ["POST {} HTTP/1.1\r\nHost: x\r\nX-Endless: ", "POST /", "POST {} HTTP/1.1\r\nHost: x\r\nX-Endless"],
)
def test_a_line_that_never_ends_is_refused(house: House, start: str) -> None:
    with wire(house.port) as connection:
        connection.send(start.format(house.webhook.path).encode())
        for _ in range(200):
            connection.send(b"e" * 8000)
        answer = connection.heard()
        assert answer.code in ("headers_too_large", "malformed_request")


def test_requests_before_it_do_not_count_towards_a_head(house: House) -> None:
    whole = house.post(("X-Filler", "f" * 2000))
    with wire(house.port) as connection:
        connection.send(whole * 40 + whole[:1500])
        for _ in range(40):
            answer = connection.heard()
            assert answer.status == 200
        connection.send(whole[1500:])
        last = connection.heard()
        assert last.status == 200


# --- bodies ----------------------------------------------------------------------------------------------------------


def test_a_body_shorter_than_its_length_followed_by_the_end_is_malformed(house: House) -> None:
    with wire(house.port) as connection:
        connection.send(house.post(("Content-Length", "100")))
        connection.hang_up()
        answer = connection.heard()
        assert answer.code == "malformed_request"


def test_what_follows_a_body_longer_than_its_length_is_another_request_and_malformed(house: House) -> None:
    with wire(house.port) as connection:
        connection.send(house.post(("Content-Length", str(len(BODY))), body=BODY + b"and more"))
        first, second = connection.heard(), connection.heard()
        assert first.status == 200
        assert second.code == "malformed_request"
        assert connection.ended()


NO_LENGTHS = ["-1", "+12", "0x0c", "12abc", "1 2", "12,12", "9" * 30, "", "１２"]


@pytest.mark.parametrize(
    "headers",
    [
        *([("Content-Length", length)] for length in NO_LENGTHS),
        [("Content-Length", "12"), ("Content-Length", "12")],
        [("Content-Length", "12"), ("Content-Length", "13")],
        [("Content-Length", "12"), CHUNKED],
        [CHUNKED, ("Content-Length", "12")],
        [("Transfer-Encoding", "gzip")],
        [("Transfer-Encoding", "chunked, identity")],
        [("Transfer-Encoding", "xchunked")],
        [CHUNKED, ("Transfer-Encoding", "identity")],
        [CHUNKED, CHUNKED],
        [("Transfer-Encoding", "chunked, chunked")],
    ],
)
def test_a_length_that_is_none_and_two_ways_to_tell_it_are_malformed(
    house: House, headers: list[tuple[str, str]]
) -> None:
    # A proxy in front and the gateway might each believe another one: that is how requests are smuggled.
    assert house.send(house.post(*headers, body=chunked(BODY))).code == "malformed_request"


@pytest.mark.parametrize("coding", ["gzip, chunked", "x-own,chunked", "identity, chunked"])
def test_a_transfer_coding_that_is_not_understood_is_refused_by_its_name(house: House, coding: str) -> None:
    answer = house.send(house.post(("Transfer-Encoding", coding), body=chunked(BODY)))
    assert (answer.status, answer.code) == (501, "unsupported_transfer_coding")


def test_a_host_may_be_left_out_in_http_1_0_and_have_any_form(house: House) -> None:
    assert house.send(b"GET /healthz HTTP/1.0\r\n\r\n").status == 200
    for host in (b"", b"gateway.example:8080", b"[2001:db8::1]:443", b"a_b.example"):
        assert house.send(b"GET /healthz HTTP/1.1\r\nHost: " + host + b"\r\n\r\n").status == 200


def test_a_request_line_of_another_protocol_is_noticed_in_pieces_and_in_a_body_it_is_none(
    house: House,
) -> None:
    with wire(house.port) as connection:
        for byte in b"GET /a RTSP/1.0\r\nHost: x\r\n\r\n":
            connection.send(bytes([byte]))
        answer = connection.heard()
        assert answer.code == "malformed_request"
    assert house.send(house.post(body=b'{"a": "GET /a RTSP/1.0"}')).status == 200


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + end


def test_a_chunked_body_is_put_together(house: House) -> None:
    assert house.send(house.post(CHUNKED, body=chunked(b'{"or', b'der": ', b"77}"))).status == 200
    assert house.newest()["payload"] == {"order": 77}


def test_a_trailer_is_no_header(house: House) -> None:
    def sent(to: str, *headers: tuple[str, str], trailer: str) -> HttpReply:
        head = request("POST", to, [JSON, CHUNKED, *headers], b"")
        return house.send(head + chunked(BODY, end=f"0\r\n{trailer}\r\n\r\n".encode()))

    assert sent(house.webhook.path, trailer=f"X-Api-Key: {TOKEN}").code == "credential_missing"
    # The API reads its headers when the body, and so what follows it, has come.
    key = f"Authorization: Bearer {house.program.admin_key}"
    assert sent("/api/v1/webhooks", trailer=key).code == "not_authenticated"
    assert sent(house.webhook.path, KEY, trailer="X-After: the body").status == 200
    assert "x-after" not in str(house.newest()["headers"]).lower()


@pytest.mark.parametrize(
    ("start", "endless"),
    [
        (b"1;", b"e" * 8000),
        (b"0\r\nX-Trailer: ", b"e" * 8000),
        (b"0\r\n", b"X-Trailer: e\r\n" * 600),
        (b"", b"1\r\n \r\n" * 1000),
    ],
    ids=["a chunk extension", "a trailer", "many trailers", "chunks of one byte"],
)
def test_chunks_that_are_mostly_something_else_are_refused(
    house: House, start: bytes, endless: bytes
) -> None:
    with wire(house.port) as connection:
        connection.send(house.post(CHUNKED, body=start))
        for _ in range(300):
            connection.send(endless)
        answer = connection.heard()
        assert (answer.status, answer.code) == (400, "too_much_around_chunks")


def test_small_chunks_are_taken_where_they_are_of_five_bytes(house: House) -> None:
    spaces = [b" " * 5] * 20_000
    assert house.send(house.post(CHUNKED, body=chunked(*spaces, BODY))).status == 200


@pytest.mark.parametrize(
    "body",
    [b"zz\r\n", b"-1\r\n", b"fffffffffffffffff\r\n", b"c\r\n" + BODY + b"XX0\r\n\r\n", b"0x5\r\nhello\r\n"],
)
def test_chunks_that_do_not_add_up_are_malformed(house: House, body: bytes) -> None:
    assert house.send(house.post(CHUNKED, body=body)).code == "malformed_request"


@pytest.mark.parametrize("keep", ["keep-alive", "close"])
def test_a_body_over_the_limit_is_refused_and_the_answer_can_be_read_by_a_caller_that_is_still_sending(
    house: House, keep: str
) -> None:
    headers = ("Content-Length", str(20_000_000)), ("Connection", keep)
    with wire(house.port) as connection:
        connection.send(house.post(*headers, to=house.small, body=b"x" * 1000))
        # What is sent from now on nobody will read.
        select.select([connection.socket], [], [], PATIENCE_OF_OURS)
        for _ in range(199):
            connection.send(b"x" * 100_000)
        answer = connection.heard()
        assert (answer.status, answer.code) == (413, "payload_too_large")


def test_after_a_refused_body_the_connection_can_be_used_again(house: House) -> None:
    with wire(house.port) as connection:
        connection.send(house.post(to=house.small, body=b"x" * 300_000))
        connection.send(house.post(to=house.small))
        first, second = connection.heard(), connection.heard()
        assert (first.code, second.status) == ("payload_too_large", 200)


def test_a_chunked_body_over_the_limit_is_refused_at_the_first_byte_too_many(house: House) -> None:
    begun = chunked(b"x" * 900, b"x" * 200, end=b"")  # it has not ended, and never will
    assert house.send(house.post(CHUNKED, to=house.small, body=begun)).code == "payload_too_large"


def test_a_body_exactly_as_large_as_the_limit_is_accepted(house: House) -> None:
    body = b'{"a":"' + b"x" * 992 + b'"}'
    assert len(body) == 1000
    assert house.send(house.post(to=house.small, body=body)).status == 200
    assert house.send(house.post(to=house.small, body=body + b" ")).code == "payload_too_large"


def test_whoever_is_refused_and_sends_for_ever_is_cut_off(house: House) -> None:
    with wire(house.port) as connection:
        connection.send(house.post(("Content-Length", str(10**12)), to=house.small, body=b""))
        with pytest.raises(OSError):
            for _ in range(1000):
                connection.send(b"x" * 1_000_000)


# --- headers ---------------------------------------------------------------------------------------------------------


def test_bytes_that_are_no_text_in_headers_and_query_are_kept_as_they_came(house: House) -> None:
    data = house.post(target=house.webhook.path + "?q=%ff%00&r=%C3%A9").replace(
        b"\r\nContent-Type", b"\r\nX-Odd: \xff\xfe\x80\r\nContent-Type"
    )
    assert house.send(data).status == 200
    story = house.newest()
    assert ["x-odd", "\xff\xfe\x80"] in story["headers"]
    assert story["query"] == "q=%ff%00&r=%C3%A9"


# --- paths and methods -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        "/webhook/",
        "/webhook//",
        "//webhook//",
        "/webhook/" + "a" * 8000,
        "/webhook/%00%ff%2e%2e%2f",
        "/webhook/..%2f..%2fetc%2fpasswd",
        "/webhook/{code}//",
        "/webhook//{code}",
        "/webhook/{code}%20",
        "/WEBHOOK/{code}",
        "*",
        "/",
        "/a?" + "b=c&" * 2000,
    ],
)
def test_a_path_that_leads_nowhere_is_not_found(house: House, target: str) -> None:
    before = how_many(house.program.data_dir)
    answer = house.send(house.post(target=target.format(code=house.webhook.short_code)))
    assert answer.status in (404, 405)
    assert answer.headers["content-type"] == "application/problem+json"
    assert how_many(house.program.data_dir) == before


def test_a_target_with_scheme_and_host_is_its_path(house: House) -> None:
    assert house.send(house.post(target=f"http://gateway.example{house.webhook.path}?a=b")).status == 200


@pytest.mark.parametrize("target", ["http://", "gateway.example:80", "?", "#"])
def test_a_target_that_is_no_path_is_malformed(house: House, target: str) -> None:
    assert house.send(request("OPTIONS", target)).code == "malformed_request"


# --- connections -----------------------------------------------------------------------------------------------------


def test_an_answer_tells_its_date(house: House) -> None:
    answer = house.send(house.post())
    assert abs(parsedate_to_datetime(answer.headers["date"]).timestamp() - time.time()) < 60


def test_pipelined_calls_are_answered_in_order(house: House) -> None:
    expected = [200, 413, 415, 404, 200, 405] * 20
    one_round = [
        house.post(),
        house.post(to=house.small, body=b"x" * 2000),
        request("POST", house.webhook.path, [KEY, ("Content-Type", "text/html")], BODY),
        house.post(target="/webhook/nobody"),
        house.post(to=house.small),
        request("PUT", house.webhook.path, [KEY], b"x" * 500),
    ]
    with wire(house.port) as connection:
        connection.send(b"".join(one_round) * 20)
        answers = [connection.heard() for _ in expected]
    assert [answer.status for answer in answers] == expected
    ids = [one.headers["x-invocation-id"] for one in answers if "x-invocation-id" in one.headers]
    assert len(set(ids)) == len(ids) == 100


def test_who_asks_much_and_reads_late_hears_every_answer(house: House) -> None:
    many = 20_000
    asked = house.post(target="/webhook/nobody", body=b"")
    sent = 0
    with wire(house.port, room=4096) as connection:
        # Well below the gateway's own patience with somebody who takes no answers. Once its buffer is full
        # the kernel takes a little now and then, for seconds: whoever has not been rid of all within one is
        # not being read.
        connection.socket.settimeout(0.1)
        until = time.monotonic() + 1
        with suppress(TimeoutError):
            while sent < many and time.monotonic() < until:
                connection.send(asked * 100)
                sent += 100
        assert sent < many, "the gateway reads on although nobody takes its answers"
        connection.socket.settimeout(PATIENCE_OF_OURS)
        assert {connection.heard().status for _ in range(sent)} == {404}


def test_who_asks_much_and_goes_without_reading_breaks_nothing(house: House) -> None:
    with wire(house.port, room=4096) as connection:
        connection.socket.settimeout(0.1)
        with suppress(TimeoutError, ConnectionError):
            while True:
                connection.send(house.post(target="/webhook/nobody", body=b"") * 100)
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


def test_a_caller_that_has_closed_its_side_still_hears_every_answer(house: House) -> None:
    with wire(house.port) as connection:
        connection.send(house.post() * 3)
        connection.hang_up()
        assert [connection.heard().status for _ in range(3)] == [200] * 3
        assert connection.ended()


def test_a_caller_that_disconnects_in_the_middle_leaves_no_trace(house: House) -> None:
    before = how_many(house.program.data_dir, house.webhook)
    whole = house.post()
    for cut in range(1, len(whole), 17):
        with wire(house.port) as connection:
            connection.send(whole[:cut])
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    house.alive()
    assert how_many(house.program.data_dir, house.webhook) == before + 1


def test_who_sends_nothing_more_hears_so_and_is_let_go(house: House) -> None:
    half = house.post(("Content-Length", "100"))
    starts = [b"", b"POST", b"POST / HTTP/1.1\r\nHost:", b"\r\n\r\n", half]
    connections = [Wire(house.port) for _ in starts]
    for connection, start in zip(connections, starts, strict=True):
        connection.send(start)
    for connection in connections:
        answer = connection.heard()
        assert (answer.status, answer.code) == (408, "request_timeout")
        assert connection.ended()
        connection.close()


def test_a_head_or_body_that_drips_is_timed_out_however_steadily(house: House) -> None:
    dripping = house.post(), house.post(("Content-Length", "10000"), body=b"x" * 10_000)

    def answer_to(data: bytes) -> HttpReply | None:
        with wire(house.port) as connection:
            return drip(connection, data)

    with ThreadPoolExecutor() as callers:
        for answer in callers.map(answer_to, dripping):
            assert answer is not None
            assert answer.code == "request_timeout"


def drip(connection: Wire, data: bytes) -> HttpReply | None:
    connection.socket.settimeout(0.1)
    for byte in data:
        connection.send(bytes([byte]))
        try:
            return connection.answer()
        except TimeoutError:
            continue
    return None


def test_http_1_0_is_answered_and_the_connection_closed(house: House) -> None:
    with wire(house.port) as connection:
        connection.send(house.post(version="HTTP/1.0"))
        answer = connection.heard()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert connection.ended()


@pytest.mark.parametrize("protocol", ["h2c", "websocket", "TLS/1.2"])
@pytest.mark.parametrize("pieces", ["at once", "byte by byte"])
def test_an_offer_to_change_protocols_is_declined_by_answering(
    house: House, protocol: str, pieces: str
) -> None:
    offer = [
        ("Connection", "Upgrade, HTTP2-Settings"),
        ("Upgrade", protocol),
        ("HTTP2-Settings", "AAMAAABkAAQAAP__"),
    ]
    in_chunks = house.post(*offer, CHUNKED, body=chunked(BODY))
    data = house.post(*offer) + request("GET", house.webhook.path, offer) + in_chunks + house.post()
    with wire(house.port) as connection:
        for piece in [data] if pieces == "at once" else [bytes([byte]) for byte in data]:
            connection.send(piece)
        assert [connection.heard().status for _ in range(4)] == [200, 405, 200, 200]
    assert ["upgrade", protocol] in house.newest(1)["headers"]


def test_a_caller_that_asks_before_sending_its_body_is_asked_to_go_on(house: House) -> None:
    head, _, body = house.post(("Expect", "100-continue")).partition(b"\r\n\r\n")
    with wire(house.port) as connection:
        connection.send(head + b"\r\n\r\n")
        go_on = connection.heard()
        assert go_on.status == 100
        connection.send(body)
        answer = connection.heard()
        assert answer.status == 200


@pytest.mark.parametrize("case", ["unknown", "too large", "wrong method"])
def test_a_caller_that_asks_before_sending_its_body_is_refused_without_it(house: House, case: str) -> None:
    expect = ("Expect", "100-continue")
    data, code = {
        "unknown": (house.post(expect, target="/webhook/nobody"), "webhook_not_found"),
        "too large": (house.post(expect, to=house.small, body=b"x" * 2000), "payload_too_large"),
        "wrong method": (request("PUT", house.webhook.path, [expect], BODY), "method_not_allowed"),
    }[case]
    with wire(house.port) as connection:
        connection.send(data.partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
        answer = connection.heard()
        assert answer.code == code
        assert answer.headers["connection"] == "close"
        assert connection.ended()


def test_a_wrong_method_is_refused_before_the_whole_body_came(house: House) -> None:
    with wire(house.port) as connection:
        connection.send(request("PUT", house.webhook.path, [], BODY)[:-1])
        assert connection.heard().code == "method_not_allowed"


# --- what all of it leaves behind ------------------------------------------------------------------------------------


def test_none_of_it_makes_the_program_grow(house: House) -> None:
    def abuse() -> None:
        lines = [
            b"nonsense\r\n\r\n",
            house.post(to=house.small, body=b"x" * 100_000),
            house.post()[:-5],
            head_of(house, 200_000, one=False),
        ]
        connections = [Wire(house.port) for _ in range(100)]
        for number, connection in enumerate(connections):
            connection.send(lines[number % len(lines)])
        for connection in connections:
            connection.close()

    def descriptors() -> int:
        return len(list(Path(f"/proc/{house.program.process.pid}/fd").iterdir()))

    abuse()
    house.alive()
    before, open_before = house.program.megabytes(), descriptors()
    for _ in range(5):
        abuse()
    house.alive()
    wait_until(
        lambda: descriptors() <= open_before + 5, PATIENCE * 3, what="abandoned connections to be closed"
    )
    assert house.program.megabytes() < before + 40


def test_of_an_answer_that_nobody_reads_the_kernel_keeps_little(house: House) -> None:
    with socket.socket() as caller:
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        caller.connect(("127.0.0.1", house.port))
        caller.sendall(request("GET", "/docs/swagger-ui.js", [], None))
        ours = f"{caller.getsockname()[1]:04X}"

        def unsent() -> int:
            """Bytes that the kernel keeps on the program's side of the connection."""
            lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
            return sum(int(one[4].partition(":")[0], 16) for one in lines if one[2].endswith(":" + ours))

        assert wait_until(unsent) < 512 * 1024  # of 1.7 MB, all of which are written at once
