"""The duties as the real program does them, over real sockets."""

import signal
from collections import Counter
from pathlib import Path

import pytest

from support.callers import called
from support.client import admin_of, made
from support.program import StartProgram
from support.stored import rows
from support.waiting import wait_until

NOTING = """
from postern.workflows import respond, step, workflow

@step
def note(what):
    with open({file!r}, "a") as file:
        file.write(what + "\\n")

@workflow
def noted(event):
    note(event["fieldOne"])
    respond({{"for": event["invocationId"]}}, status=201)
"""


@pytest.fixture
def notes_file(tmp_path: Path) -> Path:
    """What the workflow notes: a line for each run, with the call's ``n``."""
    file = tmp_path / "noted"
    file.touch()
    folder = tmp_path / "workflows"
    folder.mkdir()
    (folder / "noting.py").write_text(NOTING.format(file=str(file)))
    return file


@pytest.fixture
def workflows(notes_file: Path) -> dict[str, str]:
    return {"POSTERN_WORKFLOWS": str(notes_file.parent / "workflows"), "POSTERN_LOG": "off"}


def test_two_hundred_copies_of_one_delivery_start_once_and_hear_one_answer(
    start_program: StartProgram, notes_file: Path, workflows: dict[str, str]
) -> None:
    program = start_program(**workflows)
    webhook = made(
        program,
        fieldMapping={"fieldOne": "n"},
        synchronousResponse={"enabled": True},
        duplicateProtection={"enabled": True, "key": "header:X-Event-Id"},
    )
    replies = called(webhook["url"], [b'{"n": 1}'] * 200, ("X-Event-Id", "e1"))
    assert Counter((one.status, one.body) for one in replies) == {(replies[0].status, replies[0].body): 200}
    assert replies[0].status == 201
    assert notes_file.read_text() == "1\n"
    first = replies[0].json["for"]
    stored = rows(program.data_dir / "postern.db", "SELECT id, outcome, duplicate_of FROM invocations")
    assert Counter(outcome for _, outcome, _ in stored) == {"accepted": 1, "duplicate": 199}
    assert {(outcome, of) for one, outcome, of in stored if one != first} == {("duplicate", first)}
    # What only an engine makes there be, over the API: the client holds each answer against its description.
    api = admin_of(program)
    delivery = wait_until(
        lambda: (one := api.get(f"invocations/{first}").json["deliveries"][0])["state"] == "completed" and one
    )
    (run,) = api.get("runs").json["items"]
    assert (run["deliveryKey"], delivery["response"]["status"]) == (delivery["key"], 201)
    entry = delivery["log"][-1]  # before it, where the engine was not ready yet: why
    assert (entry["outcome"], entry["runs"], entry["workflows"]) == ("started", 1, [run["workflow"]])
    assert [one["name"] for one in api.get("workflows").json["items"]] == [run["workflow"]]


def test_a_signal_of_other_servers_ends_nothing(start_program: StartProgram) -> None:
    program = start_program(POSTERN_ENGINE="none")
    for sent in (signal.SIGUSR1, signal.SIGUSR2):
        program.process.send_signal(sent)
        wait_until(lambda sent=sent: sent.name in program.output(), what="the log to tell of it")  # type: ignore[misc]
        assert admin_of(program).get("webhooks").status == 200
