"""The wire itself: raw bytes to the program, and the answers as they came back."""

import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from support.reply import HttpReply
from support.waiting import PATIENCE


class Wire:
    """A connection of a caller who minds no rules."""

    def __init__(
        self, port: int, timeout: float = PATIENCE, room: int | None = None, source: str = ""
    ) -> None:
        """``room``: about how much is on its way in each direction before somebody has to wait. ``source``:
        the address it comes from."""
        self.socket = socket.socket()
        self.socket.settimeout(timeout)
        if room is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, room)
        if source:
            self.socket.bind((source, 0))
        self.socket.connect(("127.0.0.1", port))
        self._received = b""

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def hang_up(self) -> None:
        """Shuts the sending side; what comes back is still read."""
        self.socket.shutdown(socket.SHUT_WR)

    def _more(self) -> bool:
        try:
            data = self.socket.recv(65536)
        except ConnectionResetError:
            return False
        self._received += data
        return bool(data)

    def answer(self, to: str = "POST") -> HttpReply | None:
        """The next one, or None when the connection ended before it."""
        while b"\r\n\r\n" not in self._received:
            if not self._more():
                assert not self._received, f"half an answer: {self._received!r}"
                return None
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        assert lines[0].startswith("HTTP/1.1 "), lines[0]
        status = int(lines[0].split()[1])
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        length = 0 if status < 200 or status in (204, 304) or to == "HEAD" else int(headers["content-length"])
        while len(self._received) < length:
            assert self._more(), f"the body ends too soon: {self._received!r}"
        body, self._received = self._received[:length], self._received[length:]
        return HttpReply(status, headers, body)

    def heard(self, to: str = "POST") -> HttpReply:
        """The next one, which has to come."""
        answer = self.answer(to)
        assert answer is not None, "no answer"
        return answer

    def ended(self) -> bool:
        """The program closes the connection, and says nothing more before it does."""
        while self._more():
            pass
        return not self._received

    def close(self) -> None:
        self.socket.close()


@contextmanager
def wire(port: int, timeout: float = PATIENCE, room: int | None = None, source: str = "") -> Iterator[Wire]:
    connection = Wire(port, timeout, room, source)
    try:
        yield connection
    finally:
        connection.close()


def request(
    method: str = "POST",
    target: str = "/",
    headers: Iterable[tuple[str, str]] = (),
    body: bytes | None = None,
    version: str = "HTTP/1.1",
) -> bytes:
    """A request as bytes. The length is told where there is a body and nobody told it already."""
    lines = [
        f"{method} {target} {version}",
        "Host: gateway.example",
        *(f"{name}: {value}" for name, value in headers),
    ]
    has_length = any(name.lower() in ("content-length", "transfer-encoding") for name, _ in headers)
    if body is not None and not has_length:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape") + (body or b"")


def exchange(
    port: int, method: str, target: str, headers: Iterable[tuple[str, str]] = (), body: bytes | None = None
) -> HttpReply:
    """One request on a connection of its own, and its answer."""
    headers = list(headers)
    with wire(port) as connection:
        connection.send(request(method, target, headers, body))
        return connection.heard(method)
