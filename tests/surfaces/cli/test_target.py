"""The program on a developer's machine, and what it can do to `postern listen`: nothing that holds a call for ever, fills the
memory, or gives one caller what was meant for another."""

import socket
import threading
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from postern.surfaces.cli.develop.target import LARGEST_ANSWER, LocalTarget, TargetAnswer
from postern.surfaces.cli.run import USAGE
from postern.usecases.answers import Time
from postern.usecases.history.views.requests import RecordedRequest
from support.commands import typed
from support.plain_http import no_certificates_read
from support.raw_server import Answer, program, says
from support.waiting import PATIENCE, wait_until

CALL = RecordedRequest(
    "inv_1", "wh_1", Time(0.0), "POST", "/webhook/x", "", [["Content-Type", "text/plain"]], "", False, {}, ""
)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
DAMAGED = "it hung up, or does not speak HTTP: the head of its answer is"


def target(url: str, timeout: float = PATIENCE) -> LocalTarget:
    with no_certificates_read():
        return LocalTarget(url, None, timeout)


def test_a_call_is_sent_as_it_came() -> None:
    headers = [
        ["x-twice", "b"],
        ["x-twice", "a"],
        ["x-latin", "\xe9"],
        ["x-api-key", "***"],
        ["host", "shop.test"],
    ]
    call = replace(CALL, query="q=%zz&r=a b", headers=headers, body_base64=b64encode(b"\0{").decode())
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor() as pool:
        host = f"127.0.0.1:{listening.getsockname()[1]}"
        with no_certificates_read():
            mine = LocalTarget(f"http://{host}/path?own=1", "secret", PATIENCE)
        sending = pool.submit(mine.send, call)
        with listening.accept()[0] as connection:
            came = b""
            while not came.endswith(b"\0{"):
                came += connection.recv(65536)
            connection.sendall(OK)
        assert sending.result(PATIENCE).status == 200
    assert came.decode("latin-1").split("\r\n") == [
        "POST /path?own=1&q=%zz&r=a%20b HTTP/1.1",
        f"Host: {host}",
        *("x-twice: b", "x-twice: a", "x-latin: \xe9", "x-api-key: secret", "X-Postern-Invocation: inv_1"),
        *("Content-Length: 2", "", "\0{"),
    ]


def test_half_a_body_is_not_sent_as_a_whole_one() -> None:
    for call in (replace(CALL, body_truncated=True), replace(CALL, body_base64=None)):
        answer = target("http://127.0.0.1:9").send(call)
        assert (answer.status, answer.error) == (None, "not sent: its body is not kept whole")


def test_a_program_that_sends_a_byte_now_and_then_is_too_slow() -> None:
    def drips(start: bytes, piece: bytes) -> Answer:
        def answer(connection: socket.socket, over: threading.Event) -> None:
            connection.sendall(start)
            for _ in range(100):
                over.wait(0.02)
                connection.sendall(piece)
            connection.sendall(b"X-End: 1\r\nContent-Length: 0\r\n\r\n")

        return answer

    head = b"HTTP/1.1 200 OK\r\n"
    long = head + b"Content-Length: 131\r\n"
    for answer in (
        drips(long + b"\r\n", b"x"),
        drips(long + b"Connection: close\r\n\r\n", b"x"),
        drips(head + b"\r\n", b"x"),
        drips(head, b"X-More: 1\r\n"),
    ):
        with program(answer) as (url, _):
            heard = target(url, 0.3).send(CALL)
            assert (heard.status, heard.error) == (None, "no answer in time")


def test_no_more_is_read_than_an_answer_may_have() -> None:
    def endless(connection: socket.socket, _: object) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        with suppress(OSError):
            while True:
                connection.sendall(bytes(LARGEST_ANSWER))

    with program(endless) as (url, _):
        assert target(url).send(CALL).status == 200


def test_what_comes_before_an_answer_is_not_the_answer() -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    with program(says(hints * 2 + OK.replace(b"OK\r\n", b"OK\r\nX-Folded: a\r\n b\r\n"))) as (url, _):
        heard = target(url).send(CALL)
    assert heard.status == 200


def test_what_follows_an_answer_is_not_the_answer_to_the_next_call() -> None:
    surplus = says(OK + b"HTTP/1.1 500 Evil\r\nContent-Length: 4\r\n\r\nevil")
    with program(surplus, says(OK)) as (url, _):
        mine = target(url)
        assert [mine.send(CALL).status for _ in range(3)] == [200] * 3


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (says(b"\x1b[2J\r\n\r\n"), "it hung up, or does not speak HTTP: "),
        (lambda connection, _: connection.shutdown(2), "it hung up, or does not speak HTTP: "),
        (says(b"HTTP/1.1 101 Yes\r\nUpgrade: x\r\n\r\n"), "it hung up, or does not speak HTTP: "),
        (says(b"HTTP/1.1 200 OK\r\nno header\r\nContent-Length: 2\r\n\r\nok"), f"{DAMAGED} damaged"),
        (says(OK.replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\n")), f"{DAMAGED} damaged"),
        (says(OK.replace(b"2\r", b"\xb2\r")), f"{DAMAGED} damaged"),
        (
            lambda connection, _: (
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"),
                connection.shutdown(2),
            ),
            "it hung up, or does not speak HTTP: ",
        ),
    ],
)
def test_what_is_wrong_with_a_program_is_said(answer: Answer, words: str) -> None:
    with program(answer) as (url, _):
        heard = target(url).send(CALL)
        assert (heard.status, heard.error[: len(words)]) == (None, words)
        assert "\x1b" not in heard.error
    for host in ("127.0.0.1", "localhost"):
        port = url.rpartition(":")[2]
        assert target(f"http://{host}:{port}").send(CALL).error == "Connection refused"


@pytest.mark.parametrize(
    "begun", [b"", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\n"]
)
def test_a_command_that_ends_waits_for_no_program(begun: bytes) -> None:
    asked = threading.Event()

    def hangs(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(begun)
        asked.set()
        over.wait(2 * PATIENCE)

    with program(hangs) as (url, over):
        mine = target(url, 2 * PATIENCE)
        heard: list[TargetAnswer] = []
        sending = threading.Thread(target=lambda: heard.append(mine.send(CALL)), daemon=True)
        sending.start()
        assert asked.wait(PATIENCE)
        mine.close()
        sending.join(PATIENCE)
        assert not over.is_set()
        assert [one.error for one in heard] == ["it had not answered when the command ended"]
        assert mine.send(CALL).status is None  # nothing is begun any more


def test_a_command_that_ends_does_not_wait_until_it_is_connected() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.socket() as first:
        first.connect(full.getsockname())  # there is no place for a second one
        mine = target(f"http://127.0.0.1:{full.getsockname()[1]}", 2 * PATIENCE)
        heard: list[TargetAnswer] = []
        threading.Thread(target=lambda: heard.append(mine.send(CALL)), daemon=True).start()
        wait_until(lambda: any(one._sockets for one in mine._under_way))
        wait_until(lambda: mine.close() or heard)  # the first may come before it has begun to connect
    assert [one.error for one in heard] == ["it had not answered when the command ended"]


def test_a_token_that_no_header_carries_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("€")
    words = ("replay", "inv_1", "--to", "http://127.0.0.1:9/", "--token", f"file:{tmp_path / 'token'}")
    ran = typed(tmp_path, *words)
    assert (ran.exit_code, ran.stderr) == (USAGE, "--token: no header can carry this text\n")
