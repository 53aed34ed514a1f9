"""The program on this machine to which calls are sent, as they were sent to the gateway."""

import socket
import threading
import time
import zlib
from base64 import b64decode
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, IncompleteRead
from string import punctuation
from typing import NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

from postern.core.calls.content import unpacked
from postern.core.names import OF_THE_CONNECTION
from postern.core.signatures.redact import MASK
from postern.surfaces.cli.files import read_secret
from postern.surfaces.cli.gateway.web import FAILURES, PlainConnection, SecureConnection, reason, trusted
from postern.surfaces.cli.run import end, err, plain
from postern.usecases.history.views.requests import RecordedRequest

ASK_AGAIN = 1.0
LARGEST_ANSWER = 1024 * 1024
"""Bytes. No more is read, because an answer may have no end."""


class TargetAnswer(NamedTuple):
    """Holds an ``error`` if there was no answer."""

    status: int | None
    error: str
    milliseconds: float
    headers: list[tuple[str, str]] = []
    body: bytes = b""
    """Only the beginning of a body that is larger than an answer may be."""


def checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        usable = usable and "@" not in parts.netloc
    except ValueError:
        usable = False
    if not usable:
        end("--to: write the URL of a program, like http://localhost:3000/path")
    return url


def token_for_header(source: str) -> str:
    token = read_secret(source)
    try:
        token.encode("latin-1")
    except UnicodeEncodeError:
        end("--token: no header can carry this text")
    return token


class LocalTarget:
    """Sends calls to the program. Each call has a connection of its own, so that what a program sends after its
    answer is not taken for the answer to the next call."""

    def __init__(self, url: str, masked: str | None, timeout: float) -> None:
        self._url = url
        self._masked = masked
        self._trusted = trusted(url)
        self._timeout = timeout
        self._under_way: set[HTTPConnection] = set()
        self._is_closed = False

    def send(self, call: RecordedRequest, retry: bool = False, is_replay: bool = False) -> TargetAnswer:
        if call.body_base64 is None or call.body_truncated:
            return TargetAnswer(None, "not sent: its body is not kept whole", 0.0)
        reported = False
        while True:
            answer = self._once(call, is_replay)
            if answer.status is not None or not retry:
                return answer
            if not reported:
                err.print(
                    f"{call.invocation_id}: {answer.error}. It is sent again until there is an answer.",
                    "yellow",
                )
                reported = True
            time.sleep(ASK_AGAIN)

    def _once(self, call: RecordedRequest, is_replay: bool) -> TargetAnswer:
        where = urlsplit(self._url)
        query = "&".join(filter(None, (where.query, self._open(call.query))))
        headers = [
            (name, self._open(value))
            for name, value in call.headers
            if name.lower() not in OF_THE_CONNECTION and (value != MASK or self._masked is not None)
        ]
        headers.append(("X-Postern-Invocation", call.invocation_id))
        if is_replay:
            headers.append(("X-Postern-Replay", "true"))
        target = _quoted(where.path or "/", query)
        is_late = threading.Event()
        line = self._line(where)

        def end_late() -> None:
            is_late.set()
            _hang_up(line)

        # One limit for the whole answer: a program that sends a byte now and then never exceeds one for each read.
        deadline = threading.Timer(self._timeout, end_late)
        deadline.start()
        self._under_way.add(line)
        began = time.perf_counter()
        status: int | None = None
        heard: list[tuple[str, str]] = []
        body, error = b"", ""
        try:
            if not self._is_closed:
                line.connect()
            if not (self._is_closed or is_late.is_set()):
                _send(line, call, target, headers)
                status, heard, body = _answer(line)
        except (*FAILURES, EOFError, zlib.error) as failure:
            error = plain(_in_words(failure))
        finally:
            deadline.cancel()
            self._under_way.discard(line)
            line.close()
        # The end of the connection is the end of an answer without a length, whoever has closed it.
        if self._is_closed:
            status, error = None, "it had not answered when the command ended"
        elif is_late.is_set():
            status, error = None, "no answer in time"
        return TargetAnswer(status, error, (time.perf_counter() - began) * 1000, heard, body)

    def _line(self, where: SplitResult) -> HTTPConnection:
        host = where.hostname or ""
        if where.scheme == "https":
            return SecureConnection(host, where.port, timeout=self._timeout, context=self._trusted)
        return PlainConnection(host, where.port, timeout=self._timeout)

    def _open(self, text: str) -> str:
        """Puts the token in the place of the masked credential; a query's parameter cannot be left out."""
        return text if self._masked is None else text.replace(MASK, self._masked)

    def close(self) -> None:
        """Ends the requests that are under way, without an answer."""
        self._is_closed = True
        for line in list(self._under_way):
            _hang_up(line)


def _hang_up(line: HTTPConnection) -> None:
    """From another thread: the one that reads there hears that the connection is closed."""
    with suppress(AttributeError, OSError):  # it is not made yet, or closed
        line.sock.shutdown(socket.SHUT_RDWR)


def _quoted(path: str, query: str) -> str:
    """Quotes what no line of a request carries, and nothing else: a signature may cover the query."""
    return quote(f"{path}?{query}" if query else path, safe=punctuation)


def _send(line: HTTPConnection, call: RecordedRequest, target: str, headers: list[tuple[str, str]]) -> None:
    line.putrequest(call.method, target, skip_accept_encoding=True)
    body = b64decode(call.body_base64 or "")
    for name, value in (*headers, ("Content-Length", str(len(body)))):
        line.putheader(name, value.encode("latin-1"))
    line.endheaders(body)


def _answer(line: HTTPConnection) -> tuple[int, list[tuple[str, str]], bytes]:
    heard = line.getresponse()
    if heard.status < 200:
        raise HTTPException(f"{heard.status} {heard.reason}")
    body = b""
    while len(body) <= LARGEST_ANSWER and (piece := heard.read1(64 * 1024)):
        body += piece
    if heard.length and len(body) <= LARGEST_ANSWER:
        raise IncompleteRead(body, heard.length)
    codings = [
        one for name in heard.headers.get_all("content-encoding", []) for one in name.lower().split(",")
    ]
    for coding in reversed([one.strip() for one in codings]):
        if coding in ("gzip", "x-gzip", "deflate") and len(body) <= LARGEST_ANSWER:
            body = unpacked(body, coding.encode(), LARGEST_ANSWER)
    return heard.status, heard.getheaders(), body


def _in_words(error: BaseException) -> str:
    if isinstance(error, HTTPException):
        return f"it hung up, or does not speak HTTP: {error}"
    if isinstance(error, EOFError | zlib.error):
        return f"its answer cannot be decompressed: {error}"
    return reason(error)
