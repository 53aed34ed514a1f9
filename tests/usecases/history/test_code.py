"""A copied call, used as a user would: pasted into a shell with a real curl, run by a real Python. Nothing but that
one call may come of it."""

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Any

import pytest

from postern.core.history.invocation import Invocation
from usecases.history.test_code_texts import curl, python, recorded

CALLS = 140
SHELLS = {
    "dash": ["dash"],
    # Asked to expand `!`, as where somebody pastes.
    "bash": ["bash", "--norc", "-o", "history", "-o", "histexpand"],
    "zsh": ["zsh", "-f"],
}
HOSTILE = [
    b"\x01'; touch PWNED; #",
    b"'; touch PWNED; #",
    b"\r\n'\"`touch PWNED`$(touch PWNED)",
    b"'\\''; touch PWNED #\x85",
    b"@secret",
    b"@-",
    b"<secret",
    b"--version",
    b"-o PWNED",
    b"%s%n%d\\0\\x27\\047\\",
    b"!!\n!touch\n!$ 'quoted' !-1",
    b"$'\\x27'; touch PWNED; '",
    "é ü 漢 \U0001f600".encode(),
    "\u202e\u200b\u0085\u009b2J".encode(),
    b"\xff\xfe\x00\x80\x81\x88\x7f\x1b[2J\x07",
    b"\t tab and \x0b\x0c\x08",
    b"${IFS}*~?[a-z]{a,b}\n\n\n",
    b"\n",
    b"0123\x000123\x1b0123",
]
QUERIES = [
    b"",
    b"a=[1-5]&b={x,y}",
    b"a='&b=`touch+PWNED`",
    b"q=%27#x",
    b"a=$(touch+PWNED)\\",
    b"\xe9=\xff",
    b"@secret",
]


def hostile_calls() -> list[Invocation]:
    """Each with a path of its own, which is shown when it fails."""
    chance = random.Random(20_260_101)
    pieces = [*HOSTILE, *(bytes([byte]) for byte in range(256))]

    def dealt() -> Iterator[bytes]:
        """In an order of chance, and none again before all the others: each byte is in several bodies, and in a header."""
        while True:
            yield from chance.sample(pieces, len(pieces))

    in_bodies, in_headers = dealt(), dealt()
    calls = []
    for number in range(CALLS):
        body = HOSTILE[number] if number < len(HOSTILE) else b"".join(islice(in_bodies, chance.randint(0, 8)))
        if number == CALLS - 1:
            body = b"'\x00" * 100_000
        if number == CALLS - 2:
            body = b'{"a": "' + b"a" * 200_000 + b'"}'
        value = b"".join(islice(in_headers, 2)).translate(None, b"\r\n\x00").strip()
        headers = [("content-type", "application/json"), ("x-hostile", value.decode("latin-1"))]
        headers += [("x-same", "one"), ("x-same", "@secret"), ("x-empty", ""), ("!#$&'*`|~", "'")]
        if number % 3 == 0:
            del headers[0]
        path, query = b"/webhook/%d" % number, chance.choice(QUERIES)
        calls.append(recorded(*headers, path=path, query=query, body=body))
    return calls


HttpReply = tuple[bytes, list[tuple[bytes, bytes]], bytes]


@contextmanager
def recorder() -> Iterator[tuple[str, list[HttpReply]]]:
    """Keeps each request's target, headers and body as bytes."""
    received: list[HttpReply] = []

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            target = self.rfile.readline().split(b" ")[1]
            headers = []
            while (line := self.rfile.readline()) != b"\r\n":
                name, _, value = line.partition(b":")
                headers.append((name, value.strip()))
            known = {name.lower(): value for name, value in headers}
            if b"expect" in known:
                self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = self.rfile.read(int(known.get(b"content-length", 0)))
            received.append((target, headers, body))
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", received
        server.shutdown()
        thread.join()


def needs(*programs: str) -> None:
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"NO {program.upper()}, SO A COPIED CALL IS NOT RUN IN IT: install Debian's packages")


def pasted(shell: str, script: str, folder: Path) -> "subprocess.CompletedProcess[bytes]":
    surroundings = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "HISTFILE": "",
        "LC_ALL": "C.UTF-8",
    }
    return subprocess.run(
        SHELLS[shell], input=script.encode(), cwd=folder, env=surroundings, capture_output=True, timeout=300
    )


# Stands for curl and writes down the words and the input that it was given: in the shell itself, which starts no program
# for it.
NOTING = """curl() {
    printf '%s\\000' "$@" >&9
    case "$*" in *'--data-binary @-') cat >&9 ;; esac
    printf '\\036end\\000' >&9
}
exec 9>../given
"""


def given_to_curl(shell: str, folder: Path) -> list[bytes]:
    """For each call its words and its input, as the shell makes them of what was copied."""
    needs(shell)
    here = folder / "here"
    here.mkdir()
    (here / "secret").write_text("the content of a local file")
    script = "\n".join(curl("http://127.0.0.1", call) for call in hostile_calls()) + "\n"
    ran = pasted(shell, NOTING + script, here)
    errors = [line for line in ran.stderr.splitlines() if not line.startswith((b"  ", b"\r"))]
    assert (ran.stdout, ran.returncode) == (b"", 0), errors[-5:]
    assert [file.name for file in here.iterdir()] == ["secret"]
    return (folder / "given").read_bytes().split(b"\036end\0")


@pytest.fixture(scope="module")
def given_by_bash(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    return given_to_curl("bash", tmp_path_factory.mktemp("bash"))


@pytest.mark.parametrize("shell", sorted({*SHELLS} - {"bash"}))
def test_other_shells_give_curl_what_bash_does_and_do_nothing_else(
    shell: str, given_by_bash: list[bytes], tmp_path: Path
) -> None:
    """And with that the next test runs the real curl."""
    given = given_to_curl(shell, tmp_path)
    assert len(given) == CALLS + 1
    assert given == given_by_bash


def test_whatever_was_recorded_the_command_repeats_it_and_does_nothing_else(tmp_path: Path) -> None:
    needs("bash", "curl")
    (tmp_path / "secret").write_text("the content of a local file")
    calls = hostile_calls()
    with recorder() as (url, received):
        ran = pasted("bash", "\n".join(curl(url, call) for call in calls) + "\n", tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["secret"]
    errors = [line for line in ran.stderr.splitlines() if not line.startswith((b"  ", b"\r"))]
    assert (ran.stdout, ran.returncode) == (b"", 0), errors[-5:]
    repeated_exactly(calls, received)


def repeated_exactly(calls: list[Invocation], received: list[HttpReply]) -> None:
    assert len(received) == len(calls)
    for call, (target, headers, body) in zip(calls, received, strict=True):
        assert target == call.path + (b"?" + in_a_url(call.query) if call.query else b"")
        assert body == call.body, call.path
        wanted = [
            (name.encode(), value.strip(" \t").encode("latin-1")) for name, value in json.loads(call.headers)
        ]
        assert [pair for pair in headers if pair in wanted] == wanted, call.path
        added = {name.lower() for name, _ in headers} - {name for name, _ in wanted}
        assert added <= {b"host", b"user-agent", b"accept", b"content-length", b"expect"}, call.path


def test_the_python_program_repeats_it_too(tmp_path: Path) -> None:
    calls = hostile_calls()
    with recorder() as (url, received):
        # Each as a program of its own, all in one interpreter: starting hundreds is no quick test.
        programs = [python(url, call) for call in calls]
        runner = "import json,sys\nfor source in json.load(sys.stdin): exec(compile(source, 'pasted', 'exec'), {})\n"
        ran = subprocess.run(
            [sys.executable, "-I", "-c", runner],
            input=json.dumps(programs).encode(),
            cwd=tmp_path,
            capture_output=True,
            timeout=300,
        )
    assert (ran.returncode, ran.stderr) == (0, b""), ran.stderr[-2000:]
    assert list(tmp_path.iterdir()) == []
    repeated_exactly(calls, received)


def in_a_url(query: bytes) -> bytes:
    return query.replace(b"#", b"%23").replace(b"\xe9", b"%E9").replace(b"\xff", b"%FF")


@pytest.mark.parametrize("write", [curl, python])
def test_nothing_in_it_moves_a_terminal(write: Any) -> None:
    for call in hostile_calls():
        assert all(char.isprintable() or char == "\n" for char in write("http://127.0.0.1", call))


def test_no_older_bash_finds_its_history_in_a_body_of_several_lines() -> None:
    """Before 5.2 it looked for ! at each line by itself, and knew of a quote only if that had begun there."""
    many = 0
    for call in hostile_calls():
        for line in curl("http://127.0.0.1", call).split("\n"):
            quote = ""
            for char in line:
                assert char != "!" or quote == "'", line
                if char in "'\"" and quote in ("", char):
                    quote = "" if quote else char
        many += b"\n" in (call.body or b"") and b"!" in (call.body or b"")
    assert many > 1  # or nothing was asked
