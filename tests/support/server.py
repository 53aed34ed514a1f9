"""A server in threads of the test's own process, for programs that ask somebody."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Asked(NamedTuple):
    method: str
    path: str
    headers: Message
    body: bytes


Answer = tuple[int, str | dict[str, str], bytes] | bytes | None
"""Status, content type or headers, and body; bytes as they are written; or nothing, and the connection ends without an answer."""


@contextmanager
def serving(answer: Callable[[Asked], Answer], port: int = 0) -> Iterator[str]:
    """Its URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            given = answer(Asked(self.command, self.path, self.headers, content))
            if given is None or isinstance(given, bytes):
                self.wfile.write(given or b"")
                self.close_connection = True
                return
            status, headers, body = given
            if isinstance(headers, str):
                headers = {"Content-Type": headers} if headers else {}
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PUT = do_GET

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
