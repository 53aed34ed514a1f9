"""Following calls as they come in, over the socket of the real program."""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from postern.core.access.accounts import Actor
from postern.usecases.answers import Time
from postern.usecases.history.live import follow
from postern.usecases.history.views.calls import InvocationSummary
from postern.usecases.runtime.live_feed import GATHER, LONGEST_QUEUE, Event, LiveFeed, Watcher
from support.client import Client, admin_of
from support.house import OWNER, a_house
from support.program import Program, StartProgram
from support.waiting import PATIENCE


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

    def until(self, status: str) -> dict[str, Any]:
        while True:
            event = self.event()
            if event["data"]["status"] == status:
                return event


@contextmanager
def watching(program: Program, query: str = "", **headers: str) -> Iterator[Ear]:
    connection = HTTPConnection("127.0.0.1", program.port, timeout=15)
    given = {
        "Authorization": f"Bearer {program.admin_key}",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
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


def webhook_of(program: Program, **settings: Any) -> dict[str, Any]:
    reply = admin_of(program).post(
        "webhooks", {"name": "Live", "authentication": {"method": "token", "token": "right"}, **settings}
    )
    webhook: dict[str, Any] = reply.json
    return webhook


def call(webhook: dict[str, Any], body: Any, token: str = "right") -> str:
    parts = urlsplit(webhook["url"])
    assert parts.port is not None
    reply = Client(parts.port).post(parts.path, body, X_Api_Key=token)
    return reply.headers["x-invocation-id"]


def test_accepted_and_rejected_calls_are_heard_as_they_come_in(served: Program) -> None:
    webhook = webhook_of(served)
    with watching(served, f"?webhookId={webhook['id']}") as ear:
        accepted = call(webhook, {"n": 1})
        event = ear.event()
        assert (event["id"], event["event"], event["data"]["status"]) == (accepted, "invocation", "accepted")
        rejected = call(webhook, {"n": 2}, token="wrong")
        event = ear.event()
        assert (event["id"], event["data"]["code"]) == (rejected, "credential_mismatch")
        assert event["data"] == {
            **admin_of(served).get(f"invocations?webhookId={webhook['id']}").json["items"][0]
        }


def test_only_the_webhook_that_was_asked_for_is_heard(served: Program) -> None:
    one, other = webhook_of(served), webhook_of(served)
    with watching(served, f"?webhookId={one['id']}") as ear, watching(served) as all_ears:
        first, second = call(other, {}), call(one, {})
        assert ear.event()["id"] == second
        assert [all_ears.event()["id"], all_ears.event()["id"]] == [first, second]


def test_a_stream_goes_on_after_the_last_event_that_was_seen(served: Program) -> None:
    webhook = webhook_of(served)
    query = f"?webhookId={webhook['id']}"
    with watching(served, query) as ear:
        first = call(webhook, {})
        assert ear.event()["id"] == first
    missed = [call(webhook, {}), call(webhook, {}, token="wrong")]
    for resumed in (
        watching(served, query, Last_Event_ID=first),
        watching(served, f"{query}&after={first}"),
    ):
        with resumed as ear:
            received = []
            while missed[-1] not in received:
                received.append(ear.event()["id"])
            assert set(missed) <= set(received)


def test_what_is_no_event_id_is_refused(served: Program) -> None:
    assert admin_of(served).get("live?after=7").status == 422
    assert admin_of(served).get("live", Last_Event_ID="inv_x").status == 422
    assert admin_of(served).ask("HEAD", "live").status == 200


def test_one_actor_cannot_take_every_place(served: Program) -> None:
    reader = Client(
        served.port, admin_of(served).post("api-keys", {"name": "Greedy", "level": "read"}).json["key"]
    )
    held = []
    try:
        for _ in range(20):
            connection = HTTPConnection("127.0.0.1", served.port, timeout=15)
            connection.request("GET", "/api/v1/live", headers=reader._headers)
            assert connection.getresponse().status == 200
            held.append(connection)
        refused = reader.get("live")
        assert (refused.status, refused.json["code"], refused.headers["retry-after"]) == (
            429,
            "rate_limited",
            "10",
        )
        with watching(served):
            pass
    finally:
        for connection in held:
            connection.close()


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_what_another_process_does_is_heard_too(
    start_program: StartProgram, request: pytest.FixtureRequest, database: str
) -> None:
    if database == "sqlite":
        program = start_program(POSTERN_ENGINE="none")
        other = program
    else:
        url = request.getfixturevalue("migrated_url")
        both = {
            "POSTERN_ENGINE": "none",
            "POSTERN_DATABASE_URL": url,
            "POSTERN_SECRET_KEYS": "one key for both",
        }
        program = start_program(**both)
        other = start_program(**both, POSTERN_DATA_DIR=str(program.data_dir) + "2")
    webhook = webhook_of(other)
    with watching(program) as ear:
        ids = {call(webhook, {}) for _ in range(3)}
        assert {ear.event()["id"] for _ in range(3)} == ids


def test_deliveries_are_heard_as_they_move(start_program: StartProgram) -> None:
    program = start_program()
    webhook = webhook_of(program)
    with watching(program) as ear:
        call(webhook, {})
        moved = ear.until("started")
        assert moved["data"]["nobodyListens"] is True


def test_a_stop_does_not_wait_for_those_who_watch(start_program: StartProgram) -> None:
    program = start_program(POSTERN_ENGINE="none")
    with watching(program) as ear:
        assert program.stop() == 0
        assert ear.response.read() == b": live\n\n"


async def still() -> Actor:
    return OWNER


def test_a_watcher_who_does_not_read_costs_a_bounded_room_and_hears_the_newest_when_it_does(
    tmp_path: Path,
) -> None:
    """Without the socket, whose own buffers would take megabytes before anybody had to wait."""

    async def story() -> None:
        async with a_house(tmp_path) as house:
            webhook = await house.webhook(rateLimit={"callsPerSecond": 100_000, "burst": 100_000})
            stream = await follow(house.gateway, OWNER, still)
            events = stream.events()
            first = (await house.call(webhook)).json["invocationId"]
            received = await anext(events)
            assert received is not None and received.invocation_id == first
            most = 0
            async with asyncio.timeout(PATIENCE):
                while not stream._watcher.lost:
                    answers = await asyncio.gather(*(house.call(webhook) for _ in range(50)))
                    await asyncio.sleep(GATHER)  # or what one look takes in would hide how much there was
                    most = max(most, len(stream._watcher.waiting))
            last = max(one.json["invocationId"] for one in answers)
            assert LONGEST_QUEUE // 2 < most <= LONGEST_QUEUE
            async with asyncio.timeout(PATIENCE):
                while received is None or received.invocation_id != last:
                    received = await anext(events)
            stream.close()

    asyncio.run(story())


def a_summary(invocation_id: str) -> InvocationSummary:
    return InvocationSummary(
        id=invocation_id,
        webhook_id="wh_1",
        received_at=Time(0),
        status="accepted",
        code="accepted",
        detail="",
        http_status=200,
        method="POST",
        address="127.0.0.1",
        body_size=2,
        duration_ms=1.0,
        matched=None,
        duplicate_of=None,
        answered_at=None,
        caller_gone=False,
        bookmarked=False,
        edited_from=None,
        config_version=1,
    )


def test_what_waits_for_a_watcher_is_bounded() -> None:
    watcher = Watcher(None)
    for number in range(10 * LONGEST_QUEUE):
        watcher.add(Event("invocation", a_summary(f"inv_{number}")))
        assert len(watcher.waiting) <= LONGEST_QUEUE
    assert watcher.lost


class LateHistory:
    """Looks only when it is told that it may."""

    def __init__(self, history: Any) -> None:
        self._history = history
        self.may_look = asyncio.Event()
        self.some = history.some

    async def page(self, *asked: Any) -> Any:
        await self.may_look.wait()
        return await self._history.page(*asked)


def test_a_call_that_was_under_way_when_somebody_began_to_watch_is_reported(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_house(tmp_path) as house:
            webhook = await house.webhook()
            clock, history = house.gateway.clock, LateHistory(house.gateway.store.history)
            house.gateway.runtime.live = LiveFeed(history, lambda: clock() + 5)  # type: ignore[arg-type]  # received five seconds before
            stream = await follow(house.gateway, OWNER, still)
            invocation = (await house.call(webhook)).json["invocationId"]
            history.may_look.set()
            received = await anext(stream.events())
            assert received is not None and received.invocation_id == invocation
            stream.close()

    asyncio.run(story())


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
            assert [ear.response.readline() for _ in range(4)] == [
                b": live\n",
                b"\n",
                b": still here\n",
                b"\n",
            ]
        assert admin_of(program).delete(f"api-keys/{key['id']}").status == 204
        assert set(reader.response.read().splitlines()) <= {b": still here", b""}
        assert admin.response.readline() == b": still here\n"
