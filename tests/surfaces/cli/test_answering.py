"""Recorded calls are replayed to a program on this machine, for as long as its `postern listen` lives."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from postern.surfaces.cli.run import NOT_FOUND, OK
from support.client import admin_of, call, made
from support.commands import typed
from support.listener import listening
from support.program import Program, StartProgram
from support.server import Answer, Asked, serving
from support.waiting import free_port, wait_until

BYTES = bytes(range(256)) * 3


@dataclass
class Local:
    """Answers as the body asks it to."""

    url: str
    heard: list[Asked]


@pytest.fixture(scope="module")
def local() -> Iterator[Local]:
    heard: list[Asked] = []

    def answer(asked: Asked) -> Answer:
        heard.append(asked)
        wanted = json.loads(asked.body)
        if wanted.get("hang up"):
            return None
        if wanted.get("rubbish"):
            return b"this is no HTTP\r\n\r\n"
        headers = {"Content-Type": "application/x-mine", "X-Mine": "yes", "Set-Cookie": "session=stolen"}
        return wanted.get("status", 418), headers, BYTES

    with serving(answer) as url:
        yield Local(f"{url}/hooks", heard)


def present(gateway: Program) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = admin_of(gateway).get("listeners").json["items"]
    return found


def wait_for_listener(gateway: Program, name: str) -> dict[str, Any]:
    wait_until(lambda: name in [one["name"] for one in present(gateway)], what=f"{name} to be there")
    return next(one for one in present(gateway) if one["name"] == name)


@pytest.fixture
def gateway(start_program: StartProgram) -> Program:
    return start_program(POSTERN_ENGINE="none", POSTERN_LOG="off")


def test_the_gateway_restarts_and_the_listener_goes_on(
    start_program: StartProgram, local: Local, tmp_path: Path
) -> None:
    given = {"POSTERN_ENGINE": "none", "POSTERN_LOG": "off", "POSTERN_PORT": str(free_port())}
    first = start_program(**given)
    recorded = call(made(first)["url"], {"status": 201}).json["invocationId"]
    with listening(first, "--to", local.url, "--name", "stays") as mine:
        entered = wait_for_listener(first, "stays")
        first.stop()
        second = start_program(**given)
        assert [one["id"] for one in present(second)] == [entered["id"]]
        ran = typed(tmp_path, "replay", recorded, "--listener", "stays", to=second)
        assert "answered 201" in ran.stdout, ran.output
        mine.wait_for(1)
        assert mine.process.poll() is None
        # Ended by somebody else, it says who it was, and goes on listening.
        assert typed(tmp_path, "listeners", "end", "stays", to=second).exit_code == OK
        wait_until(lambda: any("has ended this listener" in line for line in mine.trouble))
    assert present(second) == []


def test_a_recorded_call_is_replayed_to_a_listener_that_only_listens(
    gateway: Program, local: Local, tmp_path: Path
) -> None:
    webhook = made(gateway)
    recorded = call(webhook["url"], {"status": 201}).json["invocationId"]
    ran = typed(tmp_path, "replay", recorded, "--listener", "reader@laptop", to=gateway)
    assert ran.exit_code == NOT_FOUND and "nobody does" in ran.stderr, ran.output
    key = admin_of(gateway).post("api-keys", {"name": "reads", "level": "read"}).json["key"]
    with listening(gateway, "--to", local.url, "--name", "reader@laptop", key=key) as mine:
        wait_for_listener(gateway, "reader@laptop")
        ran = typed(tmp_path, "replay", recorded, "--listener", "reader@laptop", to=gateway)
        assert (ran.exit_code, "answered 201" in ran.stdout) == (OK, True), ran.output
        mine.wait_for(1)
        assert (mine.lines[0]["kind"], mine.lines[0]["id"]) == ("replay", recorded)
        assert local.heard[-1].headers["x-postern-replay"] == "true"
        assert local.heard[-1].headers["x-postern-invocation"] == recorded
        story = admin_of(gateway).get(f"invocations/{recorded}").json
        assert len(story["deliveries"]) == 1
        assert [run["status"] for run in story["localRuns"]] == [201]
        # Its own cursor does not mind: what comes in next is told once, after the replay.
        following = call(webhook["url"], {"status": 200}).json["invocationId"]
        mine.wait_for(2)
        assert [line["id"] for line in mine.lines] == [recorded, following]
    assert typed(tmp_path, "listeners", "list", to=gateway).exit_code == OK
