"""``postern`` for commands that are typed into a shell: a small client hands its words, folder, environment and streams to
the tests, where a fork of the program takes them (`support/forks.py`), and ends as that ends."""

import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

from support import forks
from support.waiting import PATIENCE

# The interpreter without its site packages: it takes a fiftieth of a start of the program.
CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as tests:
    tests.connect({place!r})
    asked = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(tests, [asked], [0, 1, 2])
    sys.exit(int(tests.recv(100)))
"""
LONGEST = 1 << 18


@contextmanager
def postern_in_shells() -> Iterator[Path]:
    """The folder to put first on the PATH."""
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        place = str(Path(folder, "socket"))
        client = Path(folder, "postern")
        client.write_text(CLIENT.format(python=sys.executable, place=place))
        client.chmod(0o755)
        listening.bind(place)
        listening.listen()
        accepting = threading.Thread(target=_accept, args=(listening,), daemon=True)
        accepting.start()
        try:
            yield Path(folder)
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            accepting.join()


def _accept(listening: socket.socket) -> None:
    while True:
        try:
            client, _ = listening.accept()
        except OSError:  # no more of them
            return
        threading.Thread(target=_serve, args=(client,), daemon=True).start()


def _serve(client: socket.socket) -> None:
    with client:
        asked, descriptors, _, _ = socket.recv_fds(client, LONGEST, 3)
        words, folder, environment = json.loads(asked)
        stdin, stdout, stderr = map(Connection, descriptors)
        with stdin, stdout, stderr:
            given = {name: value for name, value in environment.items() if os.environ.get(name) != value}
            if not forks.shows({name: value for name, value in given.items() if name != "PYTHONUNBUFFERED"}):
                os.write(stderr.fileno(), b"a fork would not show that: start the executable\n")
                client.send(b"1")
                return
            fork = forks.Fork(words, Path(folder), environment, stdout, stderr, stdin)
        try:
            code = fork.wait(PATIENCE)
        finally:
            fork.kill()
        client.send(str(code if code >= 0 else 128 - code).encode())
