"""A server that says what it is told to, byte for byte: what a program or a gateway can do wrong."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Answer = Callable[[socket.socket, threading.Event], object]


@contextmanager
def program(
    *answers: Answer, heads: list[bytes] | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[tuple[str, threading.Event]]:
    """One for each request that comes, and then the last one again. It keeps a connection open, and is over with the event. What it
    was asked is in ``heads``."""
    over = threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))
    left = list(answers)

    def serve(accepted: socket.socket) -> None:
        with (
            suppress(OSError),
            tls.wrap_socket(accepted, server_side=True) if tls else accepted as connection,
        ):
            while not over.is_set():
                heard = b""
                while b"\r\n\r\n" not in heard:
                    piece = connection.recv(65536)
                    if not piece:
                        return
                    heard += piece
                if heads is not None:
                    heads.append(heard)
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


def says(*parts: bytes, ends: bool = False) -> Answer:
    def answer(connection: socket.socket, _: threading.Event) -> None:
        for part in parts:
            connection.sendall(part)
        if ends:
            connection.shutdown(socket.SHUT_RDWR)

    return answer
