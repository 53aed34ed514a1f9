"""`postern listen --answer`: a program on this machine answers callers in the place of the workflow, for as long as its
command lives."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from postern.surfaces.cli.run import CONFLICT, NOT_FOUND, OK, USAGE
from support.client import Client, admin_of, call, made
from support.commands import typed
from support.listener import listening
from support.program import Program, StartProgram
from support.reply import HttpReply
from support.server import Answer, Asked, serving
from support.waiting import PATIENCE, free_port, wait_until

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


WAITS = {"enabled": True, "timeoutSeconds": 20}


def story_of(gateway: Program, answer: HttpReply) -> dict[str, Any]:
    story: dict[str, Any] = admin_of(gateway).get(f"invocations/{answer.headers['x-invocation-id']}").json
    return story


@pytest.fixture
def gateway(start_program: StartProgram) -> Program:
    return start_program(POSTERN_ENGINE="none", POSTERN_LOG="off")


def test_callers_hear_the_local_program_to_the_byte(gateway: Program, local: Local, tmp_path: Path) -> None:
    webhook = made(gateway, synchronousResponse=WAITS)
    answering = ("--to", local.url, "--answer", "--name", "ada@laptop")
    with listening(gateway, webhook["id"], *answering) as mine:
        wait_for_listener(gateway, "ada@laptop")
        heard = call(webhook["url"])
        assert (heard.status, heard.body) == (418, BYTES)
        assert (heard.headers["content-type"], heard.headers["x-mine"]) == ("application/x-mine", "yes")
        assert "set-cookie" not in heard.headers
        mine.wait_for(1)
        line = mine.lines[0]
        assert (line["kind"], line["localStatus"], line["callerHeard"]) == ("answer", 418, True)
        story = story_of(gateway, heard)
        assert (story["status"], story["runState"]) == ("responded", "completed")
        assert story["listener"] == "ada@laptop"

        # What a broken program does is what a broken workflow does.
        for wrong in ("hang up", "rubbish"):
            heard = call(webhook["url"], {wrong: True})
            assert (heard.status, heard.code) == (502, "workflow_failed"), wrong
            story = story_of(gateway, heard)
            assert story["status"] == "failed" and story["error"], story

        # A second one hears in one line who answers, and ends.
        ran = typed(tmp_path, "listen", webhook["id"], "--to", local.url, "--answer", to=gateway)
        assert (ran.exit_code, ran.stderr.count("\n")) == (CONFLICT, 1), ran.output
        assert "ada@laptop" in ran.stderr and "since 20" in ran.stderr
        assert "answered by ada@laptop" in typed(tmp_path, "webhooks", "list", to=gateway).stdout

        # Ended by somebody else, the command ends and says who it was.
        assert typed(tmp_path, "listeners", "end", "ada@laptop", to=gateway).exit_code == OK
        assert mine.process.wait(PATIENCE) == CONFLICT
        wait_until(lambda: any("has ended this listener" in line for line in mine.trouble))
    assert present(gateway) == []
    notes = [one["action"] for one in admin_of(gateway).get("audit").json["items"]]
    assert notes[:2] == ["listener ended", "listener answers"]


def test_the_gateway_restarts_and_the_listener_goes_on(
    start_program: StartProgram, local: Local, tmp_path: Path
) -> None:
    given = {"POSTERN_ENGINE": "none", "POSTERN_LOG": "off", "POSTERN_PORT": str(free_port())}
    first = start_program(**given)
    webhook = made(first, synchronousResponse=WAITS)
    with listening(first, webhook["id"], "--to", local.url, "--answer", "--name", "stays") as mine:
        entered = wait_for_listener(first, "stays")
        assert call(webhook["url"]).status == 418
        first.stop()
        second = start_program(**given)
        assert [one["id"] for one in present(second)] == [entered["id"]]
        assert call(webhook["url"]).status == 418
        mine.wait_for(2)
        assert mine.process.poll() is None


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
        assert [(run["kind"], run["status"]) for run in story["localRuns"]] == [("replay", 201)]
        # Its own cursor does not mind: what comes in next is told once, after the replay.
        following = call(webhook["url"], {"status": 200}).json["invocationId"]
        mine.wait_for(2)
        assert [line["id"] for line in mine.lines] == [recorded, following]
        answers = {"name": "reader@laptop", "answers": webhook["id"]}
        assert Client(gateway.port, key).post("listeners", answers).status == 403
    assert typed(tmp_path, "listeners", "list", to=gateway).exit_code == OK


def test_what_cannot_be_answered_is_one_line_and_a_code(
    gateway: Program, local: Local, tmp_path: Path
) -> None:
    quick = made(gateway)["id"]
    for words, code in (
        ((quick, "--to", local.url, "--answer"), CONFLICT),
        (("--to", local.url, "--answer"), USAGE),
        ((quick, "wh_other", "--to", local.url, "--answer"), USAGE),
        ((quick, "--to", local.url, "--answer", "--keep", "x"), USAGE),
        ((quick, "--print", "--answer"), USAGE),
    ):
        ran = typed(tmp_path, "listen", *words, to=gateway)
        assert (ran.exit_code, ran.stderr.count("\n")) == (code, 1), (words, ran.output)
