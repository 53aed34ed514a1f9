"""Callers that wait for a workflow: every way in which the wait can end, also when the program is told to stop."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from journeys.cluster import counting_engine
from support.forks import impatient
from support.program import Program
from support.reply import HttpReply
from support.waiting import PATIENCE, free_port, is_listening, wait_until
from support.webhooks import TOKEN, ServedWebhook, make_webhook, stories
from support.wire import exchange

CALL = [("X-Api-Key", TOKEN), ("Content-Type", "application/json")]

WORKFLOW = """
import os, pathlib, time

from postern.workflows import Event, respond, step, workflow

FOLDER = pathlib.Path(os.environ["NOTES"])


@step
def wait_for(name: str) -> None:
    (FOLDER / (name + ".waits")).touch()
    while not (FOLDER / name).exists():
        time.sleep(0.02)


@workflow(webhook_id=WEBHOOK_IDS)
def obey(event: Event) -> None:
    payload = event["payload"]
    if payload.get("wait_for"):
        wait_for(payload["wait_for"])
    if payload.get("fail"):
        raise LookupError("as told")
    if "answer" in payload:
        respond(payload["answer"], status=payload.get("status", 200), headers={"X-Made-By": "workflow"})
"""


class House:
    """A program whose workflow does what the call's body says."""

    def __init__(self, folder: Path, **more: str) -> None:
        self.folder = folder
        self.more = more
        self.data_dir = folder / "data"
        waiting = {"enabled": True, "timeoutSeconds": 20}
        self.patient = make_webhook(self.data_dir, synchronousResponse=waiting)
        self.hasty = make_webhook(self.data_dir, synchronousResponse={"enabled": True, "timeoutSeconds": 1})
        (folder / "workflows").mkdir()
        ids = repr([self.patient.id, self.hasty.id])
        (folder / "workflows" / "obey.py").write_text(WORKFLOW.replace("WEBHOOK_IDS", ids))
        self.port = free_port()
        self.program = self.start()

    def start(self) -> Program:
        settings = {"POSTERN_WORKFLOWS": str(self.folder / "workflows"), "POSTERN_LOG": "json"}
        settings |= {"POSTERN_PORT": str(self.port), "NOTES": str(self.folder)}
        return Program(self.folder, settings | self.more)

    def ready(self) -> None:
        self.program.wait_until_ready()
        self.program.wait_for_engine()

    def call(self, webhook: ServedWebhook, body: bytes) -> HttpReply:
        return exchange(self.program.port, "POST", webhook.path, CALL, body)

    def story(self, answer: HttpReply) -> dict[str, Any]:
        (story,) = [one for one in stories(self.data_dir) if one["id"] == answer.headers["x-invocation-id"]]
        return story

    @contextmanager
    def three_wait(self, body: bytes) -> Iterator[list[HttpReply]]:
        """For runs that begin; at the end each of them has its answer."""
        replies: list[HttpReply] = []
        callers = [
            threading.Thread(target=lambda: replies.append(self.call(self.patient, body))) for _ in range(3)
        ]
        for caller in callers:
            caller.start()
        wait_until((self.folder / "go.waits").exists, what="the runs")
        yield replies
        for caller in callers:
            caller.join(PATIENCE)


@contextmanager
def a_house(folder: Path, **more: str) -> Iterator[House]:
    house = House(folder, **more)
    try:
        house.ready()
        yield house
    finally:
        house.program.kill()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with a_house(tmp_path_factory.mktemp("waiting")) as house:
        yield house


def test_the_workflows_answer_is_the_callers_answer(house: House) -> None:
    answer = house.call(house.patient, b'{"answer": {"made": [1, "\xc3\xa9"]}, "status": 201}')
    assert (answer.status, answer.json, answer.headers["x-made-by"]) == (201, {"made": [1, "é"]}, "workflow")
    assert answer.headers["x-content-type-options"] == "nosniff"
    # The caller may hear it before it is written down that the run was started.
    wait_until(lambda: house.story(answer)["status"] == "responded", what="the start to be written down")
    story = house.story(answer)
    assert story["httpStatus"] == 201
    assert story["deliveries"][0]["answer"] == "accepted"


@pytest.mark.executable
@pytest.mark.parametrize("told_to_stop", ["SIGTERM", "SIGHUP", "Ctrl-C"])
def test_who_waits_when_the_program_is_asked_to_stop_still_gets_the_answer(
    tmp_path: Path, told_to_stop: str
) -> None:
    with a_house(tmp_path) as house:
        with house.three_wait(b'{"wait_for": "go", "answer": {"in": "time"}}') as replies:
            if told_to_stop == "Ctrl-C":
                os.killpg(house.program.process.pid, signal.SIGINT)
            else:
                house.program.process.send_signal(signal.Signals[told_to_stop])
            wait_until(
                lambda: house.call(house.hasty, b"{}").status == 503,
                what="new callers to be sent elsewhere",
                every=0.05,
            )
            assert not replies
            (tmp_path / "go").touch()
        assert [(one.status, one.json) for one in replies] == [(200, {"in": "time"})] * 3
        assert house.program.process.wait(PATIENCE) == 0
        wait_until(lambda: not house.program.processes_left(), what="every process to end")
        assert "Traceback" not in house.program.output()


def test_a_start_that_is_under_way_when_the_program_is_asked_to_stop_is_not_asked_for_again(
    tmp_path: Path,
) -> None:
    hasty = make_webhook(tmp_path / "data", synchronousResponse={"enabled": True, "timeoutSeconds": 1})
    other = make_webhook(tmp_path / "data")
    with counting_engine() as engine:
        settings = {"POSTERN_ENGINE": "http", "POSTERN_HTTP_URL": engine.url, "POSTERN_LOG": "json"}
        engine.answers.clear()
        with Program(tmp_path, settings) as program:
            first = exchange(program.port, "POST", hasty.path, CALL, b"{}")
            assert first.code == "response_timeout"
            program.process.send_signal(signal.SIGTERM)
            wait_until(lambda: not is_listening(program.port), what="the server to end")
            engine.answers.set()  # it waits for the start, or would ask for it again
            assert program.process.wait(PATIENCE) == 0
        with Program(tmp_path, settings) as program:
            later = exchange(program.port, "POST", other.path, CALL, b"{}")
            calls = [one.headers["x-invocation-id"] for one in (first, later)]
            wait_until(lambda: calls[1] in engine.started(), what="the engine to be asked for the later call")
            assert [one["invocationId"] for one in engine.triggers] == calls


def test_who_would_wait_longer_than_the_end_may_take_hears_so_and_the_run_goes_on(tmp_path: Path) -> None:
    """The real end waits 22 s for them, and 10 for the runs; here it is one."""
    hasty = impatient(
        **{"postern.usecases.runtime.process.PATIENCE": 1.0, "postern.engines.embedded.supervisor.GRACE": 1.0}
    )
    with a_house(tmp_path, **hasty) as house:
        with house.three_wait(b'{"wait_for": "go", "answer": {"too": "late"}}') as replies:
            house.program.process.send_signal(signal.SIGTERM)
        assert [(one.status, one.code) for one in replies] == [(504, "response_timeout")] * 3
        house.program.process.wait(PATIENCE)
        house.program = house.start()
        house.ready()
        (tmp_path / "go").touch()
        for answer in replies:
            shown = wait_until(
                lambda one=answer: house.story(one)["deliveries"][0]["respondedAt"] and house.story(one),
                every=0.3,
            )
            assert (shown["httpStatus"], shown["deliveries"][0]["late"]) == (504, True)
