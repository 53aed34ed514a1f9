"""A workflow behind HTTP says how it ended: history and the caller who waits hear it."""

import json
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.client import admin_of
from support.program import Program
from support.server import Answer, Asked, serving
from support.waiting import PATIENCE, wait_until


@pytest.fixture(scope="module")
def only_program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    def report(trigger: dict[str, Any]) -> None:
        say = trigger["payload"]
        for end in say.get("ends", []):
            url = urlsplit(trigger["end"]["url"])
            connection = HTTPConnection(url.hostname or "", url.port, timeout=PATIENCE)
            bearer = f"Bearer {say.get('token', trigger['end']['token'])}"
            headers = {"Authorization": bearer, "Content-Type": "application/json"}
            connection.request("POST", url.path, json.dumps(end), headers)
            replies.append(connection.getresponse().status)
            connection.close()

    def start(asked: Asked) -> Answer:
        trigger = json.loads(asked.body)
        if trigger["payload"].get("at_once"):
            report(trigger)
        else:
            threading.Thread(target=report, args=(trigger,), daemon=True).start()
        return 202, "", b""

    replies: list[int] = []
    with serving(start) as url:
        environment = {"POSTERN_ENGINE": "http", "POSTERN_HTTP_URL": url}
        program = Program(tmp_path_factory.mktemp("ends"), environment)
        program.replies = replies  # type: ignore[attr-defined]
        with program:
            yield program


@pytest.fixture
def program(only_program: Program) -> Program:
    only_program.replies.clear()  # type: ignore[attr-defined]
    return only_program


FAILED = {"state": "failed", "error": "no order 1001"}
COMPLETED = {"state": "completed"}


def path_of_webhook(program: Program, **settings: Any) -> str:
    document = {"name": "Orders", "authentication": {"method": "none"}, **settings}
    return "/webhook/" + admin_of(program).post("webhooks", document).json["url"].rpartition("/")[2]


def story(program: Program, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    api = admin_of(program)
    answer = api.post(path, body)
    replies: list[int] = program.replies  # type: ignore[attr-defined]
    wait_until(lambda: len(replies) == len(body["ends"]), what="the reports")
    ended = body.get("token") is None

    def end_of_it() -> dict[str, Any]:
        (item,) = api.get("invocations?limit=1").json["items"]
        over = item["runState"] in ("completed", "failed")
        return item if item["status"] != "accepted" and over is ended else {}

    return answer.status, wait_until(end_of_it, what="the end")


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(("end", "heard"), [(FAILED, 502), (COMPLETED, 200)])
def test_the_first_report_is_the_end(
    program: Program, at_once: bool, waits: bool, end: dict[str, str], heard: int
) -> None:
    path = path_of_webhook(program, synchronousResponse={"enabled": waits, "timeoutSeconds": 30})
    other = COMPLETED if end is FAILED else FAILED
    status, item = story(program, path, {"ends": [end, other], "at_once": at_once})
    assert status == (heard if waits else 200)
    assert (item["runState"], item["error"]) == (end["state"], end.get("error"))
    assert item["status"] == end["state"]
    assert program.replies == [200, 200]  # type: ignore[attr-defined]


def test_only_who_has_the_token_can_say_it(program: Program) -> None:
    _, item = story(program, path_of_webhook(program), {"ends": [FAILED], "token": "rt_guessed"})
    assert program.replies == [401]  # type: ignore[attr-defined]
    assert (item["status"], item["runState"]) == ("started", "unknown")
