"""A call's story goes on to its end: whatever ends calls meet, history says of each what its caller really heard and
what became of its runs."""

import json
import socket
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.client import admin_of, made
from support.forks import impatient
from support.program import Program
from support.waiting import PATIENCE, wait_until

WORKFLOW = """
import os, pathlib, signal, time

from postern.workflows import respond, step, workflow

FOLDER = pathlib.Path(os.environ["NOTES"])


@step
def work(n, seconds, kills):
    mark = FOLDER / f"{n}.killed"
    if kills and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(seconds)


@step
def go_on(seconds):
    time.sleep(seconds)


@workflow
def obey(event):
    plan = event["payload"]
    work(plan["n"], plan["before"], plan["kills"])
    if plan["answer"]:
        respond({"n": plan["n"]}, status=plan["answer"])
    go_on(plan["after"])
    if plan["fails"]:
        raise LookupError("no order " + str(plan["n"]))
"""
WAITS = 2
LATE = WAITS + 0.8
LEFT = 0


@dataclass
class Plan:
    n: int
    waits: bool
    before: float = 0.0
    answer: int = 0
    after: float = 0.0
    fails: bool = False
    kills: bool = False
    leaves: bool = False
    times: int = 1
    """How often the same delivery is sent, at once."""
    heard: list[tuple[int, float]] = field(default_factory=list)
    """Status and seconds of each; the status is LEFT where the caller did not stay."""

    @property
    def body(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("n", "before", "answer", "after", "fails", "kills")}


PLANS = [
    Plan(1, waits=False),
    Plan(2, waits=False, fails=True),
    Plan(3, waits=True),
    Plan(4, waits=True, answer=201),
    Plan(5, waits=True, fails=True),
    Plan(6, waits=True, answer=418, fails=True),
    Plan(7, waits=True, before=LATE, answer=200),
    Plan(8, waits=True, before=LATE, fails=True),
    Plan(9, waits=True, before=0.8, answer=200, leaves=True),
    Plan(10, waits=True, before=0.8, fails=True, leaves=True),
    Plan(11, waits=True, before=0.3, answer=207, times=3),
    Plan(12, waits=True, before=0.3, fails=True, times=2),
    Plan(13, waits=True, kills=True, answer=200),
    Plan(14, waits=False, kills=True, fails=True),
    Plan(15, waits=True, answer=200, after=LATE),
]
"""Every kind of end."""


class Stage:
    def __init__(self, program: Program) -> None:
        self.program, self.api = program, admin_of(program)
        program.wait_for_engine()
        once = {"enabled": True, "key": "n"}
        self.paths = {}
        for waits in (True, False):
            answers = {"enabled": waits, "timeoutSeconds": WAITS}
            webhook = made(program, duplicateProtection=once, synchronousResponse=answers)
            self.paths[waits] = urlsplit(webhook["url"]).path

    def call(self, plan: Plan) -> None:
        began = time.monotonic()
        body = json.dumps(plan.body).encode()
        connection = HTTPConnection("127.0.0.1", self.program.port, timeout=PATIENCE)
        connection.request("POST", self.paths[plan.waits], body, {"Content-Type": "application/json"})
        if plan.leaves:
            # It is there until its call is recorded: what was never whole is no call.
            wait_until(lambda: self.stories(plan), what="the call to be recorded")
            assert connection.sock is not None
            connection.sock.shutdown(socket.SHUT_RDWR)
            connection.close()
            plan.heard.append((LEFT, 0.0))
            return
        answer = connection.getresponse()
        answer.read()
        connection.close()
        plan.heard.append((answer.status, time.monotonic() - began))

    def stories(self, plan: Plan) -> list[dict[str, Any]]:
        """Returns the story of each time that it was sent, the first one first."""
        found = self.api.get(f'invocations?limit=200&search="n": {plan.n},'.replace(" ", "%20")).json["items"]
        return [self.api.get(f"invocations/{one['id']}").json for one in reversed(found)]

    def ended(self, plan: Plan) -> list[dict[str, Any]]:
        def whole() -> list[dict[str, Any]]:
            stories = self.stories(plan)
            over = [
                (one["status"] == "duplicate" or one["endedAt"] is not None)
                and (not plan.waits or one["answeredAt"] is not None)
                for one in stories
            ]
            return stories if len(stories) == plan.times and all(over) else []

        return wait_until(whole, what=lambda: f"the end of {plan}: {self.stories(plan)}")

    def ids(self, wanted: str) -> set[str]:
        return {one["id"] for one in self.api.get(f"invocations?limit=200&{wanted}").json["items"]}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "obey.py").write_text(WORKFLOW)
    settings = {"POSTERN_WORKFLOWS": str(tmp_path / "workflows"), "NOTES": str(tmp_path)}
    settings |= impatient(**{"postern.engines.embedded.engine.EmbeddedEngine.asked_after": 1.0})
    with Program(tmp_path, settings) as program:
        yield Stage(program)


def test_history_says_what_callers_heard_and_what_became_of_their_runs(stage: Stage) -> None:
    with ThreadPoolExecutor(20) as callers:
        for calling in [callers.submit(stage.call, plan) for plan in PLANS for _ in range(plan.times)]:
            calling.result(PATIENCE)

    failed, heard, ends = set[str](), dict[str, int](), Counter[str]()
    for plan in PLANS:
        stories = stage.ended(plan)
        first = next(one for one in stories if one["status"] != "duplicate")
        ends[first["runState"]] += 1
        assert (first["runState"], plan) == ("failed" if plan.fails else "completed", plan)
        if plan.fails:
            failed.add(first["id"])
            assert f"no order {plan.n}" in first["error"]
        answered = plan.answer and first["httpStatus"] == plan.answer and plan.waits
        by_rule = "failed" if plan.fails else "responded" if answered else "completed"
        assert (first["status"], plan) == (by_rule, plan)
        if not plan.leaves:
            assert (sorted(one["httpStatus"] for one in stories), plan) == (
                sorted(status for status, _ in plan.heard),
                plan,
            )
            if plan.times == 1:
                ((status, seconds),) = plan.heard
                assert first["durationMs"] / 1000 < seconds + 0.2
                assert status != 504 or first["durationMs"] >= WAITS * 1000
        for one in stories:
            assert (one["callerGone"], plan) == (plan.leaves, plan)
            heard[one["id"]] = LEFT if plan.leaves else one["httpStatus"]

    assert stage.ids("status=failed") == failed
    for answer, statuses in (("504", {504}), ("502", {502}), ("5xx", set(range(500, 600))), ("gone", {LEFT})):
        assert stage.ids(f"answer={answer}") == {one for one, status in heard.items() if status in statuses}
    assert stage.ids("answer=200") >= {one for one, status in heard.items() if status == 200}

    # A replay of the failed ones together.
    plan = stage.api.post("replays", {"filter": {"status": "failed"}}).json
    assert plan["count"] == len(failed)

    def counted() -> dict[str, Any]:
        total = stage.api.get("volumes?range=hour").json["total"]
        return total if sum(total["answers"].values()) == len(heard) else {}

    total = wait_until(counted, what="every answer to be counted")
    assert total["runs"] == dict(ends)
    stayed = Counter(str(status) for status in heard.values() if status != LEFT)
    assert all(total["answers"][status] >= count for status, count in stayed.items())
    metrics = stage.api.ask("GET", "/metrics").text
    assert f'postern_runs_ended_total{{state="failed"}} {float(ends["failed"])}' in metrics


def test_the_first_workflow_that_fails_after_a_start_is_reported_at_once(stage: Stage) -> None:
    plan = Plan(1, waits=True, fails=True)
    stage.call(plan)
    assert [status for status, _ in plan.heard] == [502]
