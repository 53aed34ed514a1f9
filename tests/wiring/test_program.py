"""The duties as the real program does them, over real sockets."""

import signal
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from support.callers import called, flood
from support.client import admin_of, made
from support.forks import impatient
from support.program import Program, StartProgram
from support.waiting import wait_until

FLOOD = 20_000  # a million are in bench/flood.py

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


def in_store(program: Program, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(program.data_dir / "postern.db", timeout=10)) as database:
        return database.execute(query).fetchall()


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
    rows = in_store(program, "SELECT id, outcome, duplicate_of FROM invocations")
    assert Counter(outcome for _, outcome, _ in rows) == {"accepted": 1, "duplicate": 199}
    assert {(outcome, of) for one, outcome, of in rows if one != first} == {("duplicate", first)}
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


@pytest.mark.parametrize("sent", [signal.SIGUSR1, signal.SIGUSR2])
def test_a_signal_of_other_servers_ends_nothing(start_program: StartProgram, sent: signal.Signals) -> None:
    program = start_program(POSTERN_ENGINE="none")
    program.process.send_signal(sent)
    wait_until(lambda: sent.name in program.output(), what="the log to tell of it")
    assert admin_of(program).get("webhooks").status == 200


def test_the_allowlist_believes_the_trusted_proxy_and_not_what_the_caller_wrote(
    start_program: StartProgram,
) -> None:
    program = start_program(POSTERN_ENGINE="none", POSTERN_TRUSTED_PROXIES="127.0.0.1", POSTERN_LOG="off")
    url = made(program, ipAllowlist=["203.0.113.0/24"])["url"]
    for headers, status in (
        ([], 403),
        (["198.51.100.1, 203.0.113.7"], 200),
        (["203.0.113.7", "198.51.100.1"], 403),  # two headers are one list
    ):
        (reply,) = called(url, [b"{}"], *(("X-Forwarded-For", value) for value in headers))
        assert reply.status == status, reply.body


def test_a_flood_of_rejected_calls_leaves_the_accepted_ones_and_a_bounded_store(
    start_program: StartProgram,
) -> None:
    # What was only counted is written down every fifteen seconds.
    soon = impatient(**{"postern.usecases.operations.retention.LOOK_EVERY": 1.0})
    program = start_program(POSTERN_ENGINE="none", POSTERN_LOG="off", **soon)
    token = "whk_0123456789abcdef0123456789abcdef"
    webhook = made(program, authentication={"method": "token", "token": token})
    accepted = called(webhook["url"], [b"{}"] * 20, ("X-Api-Key", token))
    assert {one.status for one in accepted} == {200}
    replies = flood(webhook["url"], FLOOD, b"x" * 2000, ("X-Api-Key", "guessed"))
    assert replies.keys() == {401} and replies.total() == FLOOD

    def rejected() -> int:
        return int(
            str(in_store(program, "SELECT count(*) FROM invocations WHERE outcome = 'rejected'")[0][0])
        )

    # 64 MiB are kept, and what comes faster than it can be trimmed is counted.
    assert rejected() < FLOOD * 3 // 4
    kept = {one[0] for one in in_store(program, "SELECT id FROM invocations WHERE outcome = 'accepted'")}
    assert kept == {one.json["invocationId"] for one in accepted}

    def counted() -> int:
        return int(admin_of(program).get(f"webhooks/{webhook['id']}").json["callCount"])

    # What comes too often is counted, and written down a little later.
    wait_until(lambda: counted() == FLOOD + 20, what=lambda: f"{counted()} calls to become {FLOOD + 20}")
