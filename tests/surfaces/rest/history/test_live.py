"""Following calls as they come in, over the socket of the real program."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from postern.surfaces.rest.history import _lines
from postern.surfaces.streaming import Feed
from postern.usecases.history.live import Stream
from support.client import Client, admin_of, call, made
from support.program import Program, StartProgram


def test_an_older_call_that_moves_sets_nobody_back() -> None:
    async def events() -> AsyncIterator[Any]:
        for number in ("inv_3", "inv_1", "inv_2", "inv_4"):
            yield SimpleNamespace(invocation_id=number, name="delivery", summary={})

    async def written() -> list[bytes]:
        return [line async for line in _lines(cast(Stream, SimpleNamespace(events=events)))][1:]

    places = [line.partition(b"event")[0] for line in asyncio.run(written())]
    assert places == [b"id: inv_3\n", b"", b"", b"id: inv_4\n"]


def test_who_leaves_is_not_told_any_more() -> None:
    left = []

    async def lines() -> AsyncIterator[bytes]:
        yield b"data: 1\n\n"

    async def nothing(*_: Any) -> Any:
        return {"type": "http.disconnect"}

    feed = Feed(cast(Stream, SimpleNamespace(close=lambda: left.append(True))), lines())
    asyncio.run(feed({"type": "http", "method": "GET"}, nothing, nothing))
    assert left == [True]


class Ear:
    def __init__(self, response: HTTPResponse) -> None:
        self.response = response

    def event(self) -> dict[str, Any]:
        """The next event, or a failure when none comes in time (the socket's time-out)."""
        event: dict[str, Any] = {}
        while True:
            line = self.response.readline().decode().rstrip("\n")
            if line == "" and "data" in event:
                return event
            name, _, value = line.partition(": ")
            if name in ("id", "event"):
                event[name] = value
            elif name == "data":
                event["data"] = json.loads(value)

    def call(self) -> dict[str, Any]:
        """The next call: what becomes of one before it may be heard in between."""
        while (event := self.event())["event"] != "invocation":
            pass
        return event


@contextmanager
def watching(program: Program, query: str = "", **headers: str) -> Iterator[Ear]:
    connection = HTTPConnection("127.0.0.1", program.port, timeout=15)
    given = Client(program.port, program.admin_key, **headers).headers
    connection.request("GET", f"/api/v1/live{query}", headers=given)
    response = connection.getresponse()
    assert response.status == 200
    assert response.getheader("content-type") == "text/event-stream; charset=utf-8"
    assert response.getheader("x-accel-buffering") == "no"
    assert response.readline() == b"retry: 1000\n"
    try:
        yield Ear(response)
    finally:
        response.close()
        connection.close()


@pytest.fixture
def webhook(served: Program) -> dict[str, Any]:
    return made(served, authentication={"method": "token", "token": "right"})


def called(webhook: dict[str, Any], token: str = "right") -> str:
    return call(webhook["url"], X_Api_Key=token).headers["x-invocation-id"]


def test_accepted_and_rejected_calls_are_heard_as_they_come_in(
    served: Program, webhook: dict[str, Any]
) -> None:
    with watching(served, f"?webhookId={webhook['id']}") as ear:
        accepted = called(webhook)
        event = ear.call()
        assert (event["id"], event["event"], event["data"]["status"]) == (accepted, "invocation", "accepted")
        rejected = called(webhook, "wrong")
        event = ear.call()
        assert (event["id"], event["data"]["code"]) == (rejected, "credential_mismatch")
        listed = admin_of(served).get(f"invocations?webhookId={webhook['id']}").json["items"][0]
        assert event["data"].items() <= listed.items()


def test_a_stream_goes_on_after_the_last_event_that_was_seen(
    served: Program, webhook: dict[str, Any]
) -> None:
    query = f"?webhookId={webhook['id']}"
    with watching(served, query) as ear:
        first = called(webhook)
        assert ear.call()["id"] == first
    missed = [called(webhook), called(webhook, "wrong")]
    for resumed in (watching(served, query, Last_Event_ID=first), watching(served, f"{query}&after={first}")):
        with resumed as ear:
            received = []
            while missed[-1] not in received:
                received.append(ear.call()["id"])
            assert set(missed) <= set(received)


def test_what_is_no_event_id_is_refused(served: Program) -> None:
    assert admin_of(served).get("live?after=7").status == 422
    assert admin_of(served).get("live", Last_Event_ID="inv_x").status == 422
    assert admin_of(served).ask("HEAD", "live").status == 200


def test_a_stop_does_not_wait_for_those_who_watch(start_program: StartProgram) -> None:
    program = start_program(POSTERN_ENGINE="none")
    with watching(program) as ear:
        assert program.stop() == 0
        assert set(ear.response.read().split(b"\n\n")) <= {b": live", b": still here", b""}


QUICK = """
import postern.usecases.history.live

postern.usecases.history.live.HEARTBEAT = postern.usecases.history.live.CHECK_EVERY = 0.5
"""


def test_a_quiet_stream_shows_that_it_lives_and_ends_when_its_key_is_deleted(
    start_program: StartProgram, tmp_path: Path
) -> None:
    """Every five seconds; here every half."""
    (tmp_path / "sitecustomize.py").write_text(QUICK)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    program = start_program(POSTERN_ENGINE="none", PYTHONPATH=path)
    key = admin_of(program).post("api-keys", {"name": "Reader", "level": "read"}).json
    with watching(program) as admin, watching(program, Authorization=f"Bearer {key['key']}") as reader:
        for ear in (admin, reader):
            assert b"".join(ear.response.readline() for _ in range(4)) == b": live\n\n: still here\n\n"
        assert admin_of(program).delete(f"api-keys/{key['id']}").status == 204
        assert set(reader.response.read().splitlines()) <= {b": still here", b""}
        assert admin.response.readline() == b": still here\n"
