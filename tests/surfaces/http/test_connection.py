"""A connection driven by chance: whatever comes in whatever pieces, answered whenever, it keeps count."""

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import pytest
from uvicorn.server import ServerState

from postern.core.answer import CallerAnswer
from postern.surfaces.http import connection as module
from postern.surfaces.http.connection import Connection, Connections, make_place
from postern.surfaces.http.reader import Request
from postern.surfaces.http.states import State


class Transport:
    """Notes what the loop would do."""

    def __init__(self) -> None:
        self.written = b""
        self.shut = self.closed = self.paused = False
        self.unsent = 0

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def write(self, data: bytes) -> None:
        assert not self.shut and not self.closed, "said after the end"
        self.written += data

    def write_eof(self) -> None:
        self.shut = True

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else default


class Asked:
    """An exchange that is answered when the test says so."""

    listens_on = True

    def __init__(self, line: Connection, request: Request) -> None:
        self.line = line
        self.path = request.path
        self.keep_alive = request.keep_alive
        self.begun = self.whole = self.started = self.dropped = False

    def begin(self) -> None:
        assert not self.begun
        self.begun = True
        if self.path.endswith(b"refused"):
            self.answer()

    def take(self, piece: bytes) -> bool:
        assert not self.whole and not self.dropped
        return not self.started

    def finish(self) -> None:
        self.whole = True

    def drop(self) -> None:
        self.dropped = True

    def answer(self) -> None:
        self.started = True
        self.line.send(CallerAnswer(200, [(b"x-path", self.path)], b""), self.keep_alive)
        self.line.answered(self.keep_alive)


class Stage:
    def __init__(self) -> None:
        self.exchanges = exchanges = list[Asked]()

        def make(line: Connection, request: Request) -> Asked:
            exchanges.append(Asked(line, request))
            return exchanges[-1]

        self.shared = Connections(make, make, 100)
        self.state = ServerState()
        self.transport, self.connection = self.connect()

    def connect(self) -> tuple[Transport, Connection]:
        transport = Transport()
        connection = Connection(self.shared, self.state, asyncio.get_running_loop())
        connection.connection_made(transport)
        return transport, connection

    def answerable(self) -> Asked | None:
        """The one that has its turn."""
        waiting = [one for one in self.exchanges if not one.started and not one.dropped]
        return waiting[0] if waiting and waiting[0].begun and waiting[0].whole else None


def some_requests(dice: random.Random) -> bytes:
    data = b""
    for number in range(dice.randrange(1, 6)):
        refused = b"refused" if dice.random() < 0.2 else b""
        close = b"Connection: close\r\n" if dice.random() < 0.1 else b""
        body = b"x" * dice.choice((0, 3, 500))
        head = b"POST /webhook/%d%s HTTP/1.1\r\nHost: x\r\n%s" % (number, refused, close)
        if dice.random() < 0.3:
            data += head + b"Transfer-Encoding: chunked\r\n\r\n"
            data += b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
        else:
            data += head + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    if dice.random() < 0.3:
        data += dice.choice((b"nonsense\r\n\r\n", b"POST / HTTP/1.1\r\n\r\n", b"\x00" * 9))
    return data


async def test_requests_in_any_pieces_answered_at_any_time_get_one_answer_each_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost_count: list[str] = []
    monkeypatch.setattr(module, "log", SimpleNamespace(error=lost_count.append))
    dice = random.Random(20261122)
    seen: set[State] = set()
    for _ in range(3000):
        stage = Stage()
        connection, transport = stage.connection, stage.transport
        data = some_requests(dice)
        end_sent = ends = False
        for _ in range(400):
            seen.add(connection._state)
            ends = transport.closed or connection._state is State.CLOSED
            if ends:
                break
            match dice.choice(("read", "read", "read", "answer", "answer", "turn", "end", "look", "rare")):
                case "read" if data and not transport.paused and not end_sent:
                    size = dice.choice((1, 20, 300, 10_000))
                    connection.data_received(data[:size])
                    data = data[size:]
                case "answer":
                    if (one := stage.answerable()) is not None:
                        one.answer()
                case "turn":
                    await asyncio.sleep(0)
                case "end" if not data and not end_sent:
                    end_sent = True
                    if not connection.eof_received():
                        transport.close()
                case "look" if dice.random() < 0.05:
                    connection.look(asyncio.get_running_loop().time() + dice.choice((0, 50, 100)), 30)
                case "rare" if dice.random() < 0.02:
                    connection.shutdown()
        connection.connection_lost(None)
        await asyncio.sleep(0)
        assert not lost_count
        assert stage.shared.kept == 0
        assert all(one.started or one.dropped for one in stage.exchanges)
        answered = [one.path for one in stage.exchanges if one.started]
        answers = transport.written.split(b"HTTP/1.1 ")[1:]
        paths = [answer.split(b"x-path: ")[1].split(b"\r\n")[0] for answer in answers if b"x-path" in answer]
        assert paths == answered == [one.path for one in stage.exchanges][: len(answered)]
        refusals = [answer for answer in answers if b"x-path" not in answer]
        assert len(refusals) <= 1
        assert not refusals or answers[-1] is refusals[0]
    assert seen == set(State)


async def test_of_many_requests_at_once_one_is_read_in_each_round_and_others_come_between() -> None:
    stage = Stage()
    strangers = [(stage.transport, stage.connection), *(stage.connect() for _ in range(9))]
    _, other = stage.connect()
    for _, stranger in strangers:
        stranger.data_received(b"GET /webhook/refused HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
    assert len(stage.exchanges) == 10
    assert all(transport.paused for transport, _ in strangers)
    strangers[0][1].connection_lost(None)
    for _ in range(3):
        await asyncio.sleep(0)
    assert len(stage.exchanges) == 13, "one in a round, and none for who has gone"
    other.data_received(b"GET /webhook/1 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert stage.exchanges[-1].path == b"/webhook/1"
    for _ in range(1000):
        await asyncio.sleep(0)
    assert len(stage.exchanges) == 2 + 9 * 100
    for transport, _ in strangers[1:]:
        assert transport.written.count(b"HTTP/1.1 200") == 100
        assert not transport.paused


async def test_where_too_much_is_kept_the_connection_that_keeps_the_most_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_KEPT", 1000)
    call = b"POST /webhook/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 400\r\n\r\n" + b"x" * 400
    stage = Stage()
    stranger, its = stage.connect()
    its.data_received(call * 2 + call[:200])
    assert stage.shared.kept == len(call) + 200
    stage.connection.data_received(call * 2)
    assert stranger.closed and not stage.transport.closed
    assert stage.shared.kept == len(call), "what it kept is free at once"
    its.connection_lost(None)
    stage.exchanges[-1].answer()
    await asyncio.sleep(0)
    assert len(stage.exchanges) == 3
    stage.connection.data_received(call * 3)
    assert stage.transport.closed, "it is the one that keeps the most now"
    assert stage.shared.kept == 0


@pytest.mark.parametrize("first", [b"/webhook/refused HTTP/1.1\r\nHost: x", b"nonsense"])
async def test_what_is_kept_is_counted_until_it_is_answered_or_refused(first: bytes) -> None:
    """It is counted also if each request is answered at once, and only its turn has not come."""
    stage = Stage()
    more = b"GET /webhook/refused HTTP/1.1\r\nHost: x\r\n\r\n"
    stage.connection.data_received(b"GET " + first + b"\r\n\r\n" + more * 3)
    assert stage.shared.kept == (0 if first == b"nonsense" else 3 * len(more))
    assert stage.connection._reader is None or first != b"nonsense"
    for _ in range(3):
        await asyncio.sleep(0)
    assert stage.shared.kept == 0


async def test_one_connection_keeps_little_though_the_application_reads_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage()
    stage.connection.data_received(b"GET /docs HTTP/1.1\r\nHost: x\r\n\r\n")
    for _ in range(4):
        assert not stage.transport.closed
        stage.connection.data_received(b"GET /docs HTTP/1.1\r\nHost: x\r\n\r\n" * 2600)
        assert stage.transport.paused
        stage.connection.flow.resume_reading()
    assert stage.transport.closed
    assert stage.shared.kept <= 6 * module.MOST_AT_ONCE


async def test_requests_cut_anywhere_are_read_one_after_the_other() -> None:
    """An empty line may come in two pieces, and a body may hold empty lines."""
    body = b"a\r\n\r\nb\r\n\r\n"
    chunked = b"Transfer-Encoding: chunked\r\n\r\n%x;x=y\r\n%s\r\n0\r\nTrailer: t\r\n\r\n" % (len(body), body)
    line = b" /webhook/refused HTTP/1.1\r\nHost: x\r\n"
    data = b"\r\n\r\nGET" + line + b"\r\nPOST" + line + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    data += b"POST" + line + chunked + b"GET" + line + b"Upgrade: h2c\r\nConnection: upgrade\r\n\r\n"
    for cut in range(1, len(data)):
        stage = Stage()
        for piece in (data[:cut], data[cut:], data):
            stage.connection.data_received(piece)
            for _ in range(5):
                await asyncio.sleep(0)
        assert len(stage.exchanges) == 8, cut
        assert stage.transport.written.count(b"HTTP/1.1 200") == 8
        assert stage.shared.kept == 0


async def test_who_does_not_read_an_answer_gives_its_place_to_others() -> None:
    stage = Stage()
    stage.connection.data_received(b"GET /webhook/refused HTTP/1.1\r\nHost: x\r\n\r\n")
    _, sender = stage.connect()
    both = [stage.connection, sender]
    make_place(both, 2, asyncio.get_running_loop().time() + 60)
    assert [one._state for one in both] == [State.CLOSED, State.CLOSED]
    stage = Stage()
    stage.transport.unsent = 20_000
    stage.connection.data_received(b"GET /webhook/1 HTTP/1.1\r\nHost: x\r\n\r\n")
    now = asyncio.get_running_loop().time() + 60
    reader, reading = stage.connect()
    half, sending = stage.connect()
    sending.data_received(b"GET /")
    reading.data_received(b"GET /webhook/1 HTTP/1.1\r\nHost: x\r\n\r\n")
    reader.unsent = 20_000
    for second in range(20):  # one takes its answer slowly, the other does not
        reader.unsent -= 1
        for one in (stage.connection, reading):
            one.look(now + second, 30)
    every = [reading, sending, stage.connection]
    for transport in (stage.transport, half, reader):
        assert not transport.closed
        make_place(every, 1, now + 20)
        assert transport.closed
        every = [one for one in every if one._state is not State.CLOSED]


@pytest.mark.parametrize("closes", [False, True])
async def test_a_slow_reader_is_waited_for_as_long_as_it_reads(closes: bool) -> None:
    stage = Stage()
    transport, connection = stage.transport, stage.connection
    now = asyncio.get_running_loop().time()
    ending = b"Connection: close\r\n" if closes else b""
    connection.data_received(b"GET /webhook/1 HTTP/1.1\r\nHost: x\r\n" + ending + b"\r\n")
    transport.unsent = 60_000
    connection.pause_writing()
    if closes:
        stage.exchanges[0].answer()
    aborted: list[float] = []
    transport.abort = lambda: aborted.append(now)  # type: ignore[method-assign]
    for _ in range(100):  # by the time we look, as much was written as it had taken
        now += 1
        connection._loop = SimpleNamespace(time=lambda now=now: now)  # type: ignore[assignment, misc]
        connection.resume_writing()
        connection.pause_writing()
        connection.look(now, 30)
    for _ in range(100):
        now, transport.unsent = now + 1, transport.unsent - 10
        connection.look(now, 30)
    assert not aborted
    for _ in range(30):
        connection.look(now := now + 1, 30)
    assert not aborted
    connection.look(now + 1, 30)
    assert aborted


async def test_what_nobody_wants_is_counted_for_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_DISCARDED", 1000)
    stage = Stage()
    head = b"POST /webhook/refused HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
    for length in (600, 600, 600, 1001):
        assert not stage.transport.closed
        stage.connection.data_received(head % length)
        stage.connection.data_received(b"x" * length)
    assert stage.transport.closed


async def test_a_head_request_hears_the_length_of_the_body_and_no_body() -> None:
    stage = Stage()
    stage.connection.send(CallerAnswer(200, [], b"left out"), keep_alive=True, to_head=True)
    assert b"content-length: 8\r\n" in stage.transport.written
    assert stage.transport.written.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("status", [204, 304])
async def test_an_answer_that_has_no_body_by_its_status_is_sent_without_one(status: int) -> None:
    stage = Stage()
    stage.connection.send(CallerAnswer(status, [(b"x-a", b"b")], b"left out"), keep_alive=True)
    head, body = stage.transport.written.split(b"\r\n\r\n")
    assert b"content-length" not in head
    assert body == b""
