"""The program on a developer's machine, and what it can do to `postern listen`: nothing that holds a call for ever, fills the
memory, or gives one caller what was meant for another."""

import gzip
import socket
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from postern.surfaces.cli.develop.presence import _why_not
from postern.surfaces.cli.develop.target import LARGEST_ANSWER, LocalTarget, TargetAnswer
from postern.surfaces.cli.run import USAGE
from postern.usecases.answers import Time
from postern.usecases.history.views.requests import RecordedRequest
from support.commands import typed
from support.plain_http import no_certificates_read
from support.waiting import PATIENCE

CALL = RecordedRequest(
    "inv_1", "wh_1", Time(0.0), "POST", "/webhook/x", "", [["Content-Type", "text/plain"]], "", False, {}, ""
)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

Answer = Callable[[socket.socket, threading.Event], object]


@contextmanager
def program(*answers: Answer) -> Iterator[tuple[str, threading.Event]]:
    """One for each request that comes, and then the last one again. It keeps a connection open, and is over with the event."""
    over = threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))
    left = list(answers)

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while not over.is_set():
                heard = b""
                while b"\r\n\r\n" not in heard:
                    piece = connection.recv(65536)
                    if not piece:
                        return
                    heard += piece
                (left.pop(0) if len(left) > 1 else left[0])(connection, over)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/", over
    finally:
        over.set()
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def says(*parts: bytes) -> Answer:
    def answer(connection: socket.socket, _: threading.Event) -> None:
        for part in parts:
            connection.sendall(part)

    return answer


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
        assert sending.result(PATIENCE).body == b"ok"
    assert came.decode("latin-1").split("\r\n") == [
        "POST /path?own=1&q=%zz&r=a%20b HTTP/1.1",
        f"Host: {host}",
        *("x-twice: b", "x-twice: a", "x-latin: \xe9", "x-api-key: secret", "X-Postern-Invocation: inv_1"),
        *("Content-Length: 2", "", "\0{"),
    ]


def test_a_program_that_sends_a_byte_now_and_then_is_too_slow() -> None:
    def drips(start: bytes, piece: bytes) -> Answer:
        def answer(connection: socket.socket, over: threading.Event) -> None:
            connection.sendall(start)
            for _ in range(100):
                over.wait(0.02)
                connection.sendall(piece)
            connection.sendall(b"X-End: 1\r\nContent-Length: 0\r\n\r\n")

        return answer

    long = b"HTTP/1.1 200 OK\r\nContent-Length: 131\r\n\r\n"
    for answer in (drips(long, b"x"), drips(b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n")):
        with program(answer) as (url, _):
            heard = target(url, 0.3).send(CALL)
            assert (heard.status, heard.error) == (None, "no answer in time")


def test_no_more_is_read_than_an_answer_may_have() -> None:
    folded = gzip.compress(bytes(64 * LARGEST_ANSWER))
    endless = says(b"HTTP/1.1 200 OK\r\n\r\n", *[bytes(LARGEST_ANSWER)] * 8)
    for answer in (
        endless,
        says(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(folded), folded
        ),
    ):
        with program(answer) as (url, _):
            heard = target(url).send(CALL)
            assert heard.status == 200
            assert LARGEST_ANSWER < len(heard.body) < 64 * LARGEST_ANSWER
            assert _why_not(heard) == "the body may have 1 MiB"
    with program(endless) as (url, _):
        assert len(target(url).send(CALL).body) < 2 * LARGEST_ANSWER


def test_what_follows_an_answer_is_not_the_answer_to_the_next_call() -> None:
    surplus = says(OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
    with program(surplus, says(OK)) as (url, _):
        mine = target(url)
        assert [mine.send(CALL).body for _ in range(3)] == [b"ok"] * 3


def test_what_no_caller_could_read_is_not_passed_on() -> None:
    def answered(coding: str) -> TargetAnswer:
        return TargetAnswer(200, "", 1.0, [("Content-Encoding", coding)], b"...")

    assert [_why_not(answered(coding)) for coding in ("gzip", " GZip , identity", "deflate", "")] == [""] * 4
    assert _why_not(answered("gzip, br")) == "it is compressed as br; gzip and deflate can be undone"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (says(b"\x1b[2J\r\n\r\n"), "it hung up, or does not speak HTTP: "),
        (lambda connection, _: connection.shutdown(2), "it hung up, or does not speak HTTP: "),
        (says(b"HTTP/1.1 101 Yes\r\nUpgrade: x\r\n\r\n"), "it hung up, or does not speak HTTP: "),
        (
            lambda connection, _: (
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"),
                connection.shutdown(2),
            ),
            "it hung up, or does not speak HTTP: ",
        ),
        (
            says(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok"),
            "its answer cannot be decompressed: ",
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


def test_a_command_that_ends_waits_for_no_program() -> None:
    asked = threading.Event()

    def hangs(_: socket.socket, over: threading.Event) -> None:
        asked.set()
        over.wait(PATIENCE)

    with program(hangs) as (url, over):
        mine = target(url)
        heard: list[TargetAnswer] = []
        sending = threading.Thread(target=lambda: heard.append(mine.send(CALL)))
        sending.start()
        assert asked.wait(PATIENCE)
        mine.close()
        sending.join(PATIENCE)
        assert not over.is_set()
        assert [one.error for one in heard] == ["it had not answered when the command ended"]
        assert mine.send(CALL).status is None  # nothing is begun any more


def test_a_token_that_no_header_carries_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("€")
    words = ("replay", "inv_1", "--to", "http://127.0.0.1:9/", "--token", f"file:{tmp_path / 'token'}")
    ran = typed(tmp_path, *words)
    assert (ran.exit_code, ran.stderr) == (USAGE, "--token: no header can carry this text\n")
