"""Thousands of strangers at the real program: memory stays bounded, and it goes on serving."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from postern.usecases.operations import retention
from postern.usecases.webhooks import webhooks
from support.program import Program, StartProgram
from support.waiting import wait_until
from support.webhooks import OWNER, TOKEN, ServedWebhook, make_webhook, stories, wait_until_served, within
from support.wire import exchange, request, wire

KEY = ("X-Api-Key", TOKEN)
JSON = ("Content-Type", "application/json")
BODY = b'{"order": 1}'


WORKFLOW = """
from postern.workflows import respond, workflow

@workflow(webhook_id={id!r})
def answer(event):
    respond({words!r})
"""


@pytest.fixture
def start(start_program: StartProgram) -> Iterator[Callable[..., Program]]:
    started: list[Program] = []

    def start_serving(*served: ServedWebhook, **settings: str) -> Program:
        started.append(start_program(POSTERN_LOG="json", **settings))
        wait_until_served(started[-1].port, *served)
        return started[-1]

    yield start_serving
    for program in started:
        assert program.process.poll() is not None or program.stop() == 0
        assert "Traceback" not in program.output()


def test_uploads_that_break_off_leave_no_memory_behind(tmp_path: Path, start: Callable[..., Program]) -> None:
    webhook = make_webhook(tmp_path / "data")
    program = start(webhook, POSTERN_ENGINE="none")
    whole = 256 * 1024
    broken_off = request("POST", webhook.path, [JSON, ("Content-Length", str(whole))], b"x" * (whole - 1))
    before = program.megabytes("VmHWM")  # the most that it has held so far
    for _ in range(4_000 // 40):
        with ExitStack() as together:
            connections = [together.enter_context(wire(program.port)) for _ in range(40)]
            for connection in connections:
                connection.send(broken_off)
    assert exchange(program.port, "POST", webhook.path, [KEY, JSON], BODY).status == 200
    # What is on its way at one time is 10, and all of it 1000.
    assert program.megabytes("VmHWM") < before + 60


def test_one_caller_can_take_no_place_for_bodies_from_others_and_gives_its_own_back_in_time(
    tmp_path: Path, start: Callable[..., Program]
) -> None:
    webhook, other = make_webhook(tmp_path / "data"), make_webhook(tmp_path / "data")
    program = start(webhook, other, POSTERN_ENGINE="none", POSTERN_BODY_TIMEOUT="5")
    whole = 1024 * 1024
    unfinished = request("POST", webhook.path, [JSON, ("Content-Length", str(whole))], b" " * (whole - 1))
    large = request("POST", "PATH", [KEY, JSON], b" " * 900_000 + BODY)

    def status(path: str, source: str) -> int:
        with wire(program.port, source=source) as connection:
            data = large.replace(b"PATH", path.encode())
            for piece in (data[:500_000], data[500_000:]):
                connection.send(piece)
            answer = connection.heard()
            return answer.status

    with ExitStack() as together:
        strangers = [together.enter_context(wire(program.port, source="127.0.0.2")) for _ in range(60)]
        for connection in strangers:
            connection.send(unfinished)
        # Its share is taken: from here on the gateway turns it away, and nobody else.
        wait_until(lambda: status(webhook.path, "127.0.0.2") == 503, what="its share to be taken")
        assert [status(path, "127.0.0.1") for path in (webhook.path, other.path)] == [200, 200]
        for connection in strangers:
            answer = connection.heard()
            assert answer.code in ("temporarily_unavailable", "request_timeout")
        # The connections are still there, but nothing of what they sent is.
        assert status(webhook.path, "127.0.0.2") == 200


def test_a_flood_leaves_the_sender_s_own_rejected_calls_there(
    tmp_path: Path, start: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = make_webhook(tmp_path / "data")
    program = start(webhook, POSTERN_ENGINE="none")
    wrong = [("X-Api-Key", "not the right one"), JSON]
    rejected = [exchange(program.port, "POST", webhook.path, wrong, BODY) for _ in range(5)]
    ids = {answer.headers["x-invocation-id"] for answer in rejected}
    unsigned, reading = request("POST", webhook.path, [JSON], BODY), request("GET", webhook.path, [], b"")
    counts: Counter[int] = Counter()
    for address in range(6):
        with wire(program.port, source=f"127.0.1.{address + 1}") as connection:
            for flood in (unsigned, reading):
                connection.send(flood * 100)
                for _ in range(100):
                    answer = connection.heard()
                    counts[answer.status] += 1
    assert counts == {401: 600, 405: 600}, "each hears its reason"
    assert program.stop() == 0
    kept = stories(tmp_path / "data", webhook)
    assert len(kept) == 1206, "and was recorded while there was room"  # 1: asked whether it is served
    monkeypatch.setattr(retention, "REJECTED_BYTES", 200_000)
    went = within(tmp_path / "data", lambda gateway: retention.trim(gateway, webhook.id))
    kept = stories(tmp_path / "data", webhook)
    assert went > 1000 and ids < {story["id"] for story in kept}
    shown = within(tmp_path / "data", lambda gateway: webhooks.show(gateway, OWNER, webhook.id))
    assert shown.call_count == 1206


def test_more_idle_connections_than_descriptors_stop_neither_calls_nor_workflows(
    tmp_path: Path, start: Callable[..., Program]
) -> None:
    webhook = make_webhook(tmp_path / "data", synchronousResponse={"enabled": True, "timeoutSeconds": 20})
    workflow = tmp_path / "workflow.py"
    workflow.write_text(WORKFLOW.format(id=webhook.id, words="before"))
    program = start(webhook, descriptors="1024:1024", POSTERN_WORKFLOWS=str(workflow))

    def counts() -> str:
        return exchange(program.port, "POST", webhook.path, [KEY, JSON], BODY).body.decode().strip('"')

    wait_until(lambda: counts() == "before", what="the engine to be up")
    with ExitStack() as idle:
        for _ in range(1300):
            idle.enter_context(wire(program.port))
        assert [counts() for _ in range(20)] == ["before"] * 20
        # Noticed by who can look at the file, and answered by a process that could be started.
        workflow.write_text(WORKFLOW.format(id=webhook.id, words="after"))
        wait_until(lambda: counts() == "after", what="the change to be noticed")
        for _ in range(1300):
            idle.enter_context(wire(program.port))
        assert [counts() for _ in range(20)] == ["after"] * 20
    assert program.output().count("the workflows changed") == 1
    assert "Too many open files" not in program.output()


def test_the_soft_limit_of_descriptors_is_raised(tmp_path: Path, start: Callable[..., Program]) -> None:
    program = start(descriptors="1024:4096", POSTERN_ENGINE="none")
    limits = Path(f"/proc/{program.process.pid}/limits").read_text()
    assert limits.split("Max open files")[1].split()[:2] == ["4096", "4096"]
