"""The program on this machine to which calls are sent, as they were sent to the gateway."""

import socket
import ssl
import threading
import time
from base64 import b64decode
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from string import punctuation
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from postern.core.names import OF_THE_CONNECTION
from postern.core.signatures.redact import MASK
from postern.surfaces.cli.files import read_secret
from postern.surfaces.cli.gateway.web import FAILURES, body_of, line_to, reason, trusted
from postern.surfaces.cli.run import end, err, plain
from postern.usecases.history.views.requests import RecordedRequest

ASK_AGAIN = 1.0
LARGEST_ANSWER = 1024 * 1024
"""Bytes. No more is read, because an answer may have no end."""
LATE, CLOSED = "no answer in time", "it had not answered when the command ended"


class TargetAnswer(NamedTuple):
    """Holds an ``error`` if there was no answer."""

    status: int | None
    error: str
    milliseconds: float


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
        self._under_way: set[_Request] = set()
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
        target = quoted(where.path or "/", query)
        request = _Request()
        # One limit for the whole answer: a program that sends a byte now and then never exceeds one for each read.
        deadline = threading.Timer(self._timeout, request.end, [LATE])
        deadline.daemon = True
        deadline.start()
        self._under_way.add(request)
        if self._is_closed:
            request.end(CLOSED)
        line = line_to(where, self._trusted)
        began = time.perf_counter()
        status: int | None = None
        error = ""
        try:
            request.connect(line, self._timeout, self._trusted if where.scheme == "https" else None)
            with suppress(ConnectionError):  # it may have answered before it had read all
                _send(line, call, target, headers)
            with line.getresponse() as heard:
                body_of(heard, LARGEST_ANSWER)
                status = heard.status
        except FAILURES as failure:
            error = plain(_in_words(failure))
        finally:
            deadline.cancel()
            self._under_way.discard(request)
            line.close()
            request.close()
        lasted = (time.perf_counter() - began) * 1000
        # The end of the connection is the end of an answer without a length, whoever has closed it.
        if status is None or request.ended_by:
            return TargetAnswer(None, request.ended_by or error, lasted)
        return TargetAnswer(status, "", lasted)

    def _open(self, text: str) -> str:
        """Puts the token in the place of the masked credential; a query's parameter cannot be left out."""
        return text if self._masked is None else text.replace(MASK, self._masked)

    def close(self) -> None:
        """Ends the requests that are under way, without an answer."""
        self._is_closed = True
        for request in list(self._under_way):
            request.end(CLOSED)


class _Request:
    """A request under way. Another thread may end it at any moment, also while it connects."""

    def __init__(self) -> None:
        self.ended_by = ""
        self._sockets: list[socket.socket] = []

    def connect(self, line: HTTPConnection, within: float, trusted: ssl.SSLContext | None) -> None:
        trouble: OSError | None = None
        for family, kind, protocol, _, address in socket.getaddrinfo(
            line.host, line.port, type=socket.SOCK_STREAM
        ):
            line.sock = socket.socket(family, kind, protocol)
            # TLS takes the socket for itself, and so does an answer without a length: this one stays in reach.
            self._sockets.append(line.sock.dup())
            if self.ended_by:
                break
            line.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line.sock.settimeout(within)
            try:
                line.sock.connect(address)
            except OSError as error:
                line.sock.close()
                trouble = trouble or error
                continue
            if trusted is not None:
                line.sock = trusted.wrap_socket(line.sock, server_hostname=line.host)
            return
        raise trouble or OSError(self.ended_by)

    def end(self, why: str) -> None:
        self.ended_by = self.ended_by or why
        for connection in list(self._sockets):
            with suppress(OSError):  # it is not connected yet, or not any more
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for connection in self._sockets:
            connection.close()


def quoted(path: str, query: str) -> str:
    """Quotes what no line of a request carries, and nothing else: a signature may cover the query."""
    return quote(f"{path}?{query}" if query else path, safe=punctuation)


def _send(line: HTTPConnection, call: RecordedRequest, target: str, headers: list[tuple[str, str]]) -> None:
    line.putrequest(call.method, target, skip_accept_encoding=True)
    body = b64decode(call.body_base64 or "")
    for name, value in headers:
        line.putheader(name, value.encode("latin-1"))
    if body or call.method in ("POST", "PUT", "PATCH"):
        line.putheader("Content-Length", str(len(body)))
    line.endheaders(body)


def _in_words(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return LATE
    if isinstance(error, HTTPException):
        return f"it hung up, or does not speak HTTP: {reason(error)}"
    return reason(error)
