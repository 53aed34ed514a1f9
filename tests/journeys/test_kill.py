"""Power cuts: gateway and engine are killed at each moment that matters, under load, and nothing that was acknowledged
is lost or done twice."""

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from journeys.cluster import asking_soon, counting_engine
from support.program import Program
from support.stored import rows
from support.waiting import PATIENCE, free_port, wait_until
from support.webhooks import TOKEN, UNLIMITED, ServedWebhook, make_webhook
from support.wire import exchange

CONNECTIONS = 150
CALL = [("X-Api-Key", TOKEN), ("Content-Type", "application/json")]

NOTE_STARTS = """
import os

from postern.workflows import Event, step, workflow


@step
def note(invocation_id: str) -> None:
    with open(os.environ["NOTES"], "a") as notes:
        notes.write(invocation_id + "\\n")
        notes.flush()
        os.fsync(notes.fileno())


@workflow
def note_starts(event: Event) -> None:
    note(event["invocationId"])
"""


class Scene:
    """One data directory and one port; the program on them comes and goes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.data_dir = folder / "data"
        self.notes = folder / "notes"
        self.notes.touch()
        (folder / "workflows").mkdir()
        (folder / "workflows" / "notes.py").write_text(NOTE_STARTS)
        self.webhook = make_webhook(
            self.data_dir,
            rateLimit=UNLIMITED,
            duplicateProtection={"enabled": True, "key": "header:X-Event-Id"},
        )
        self.programs: list[Program] = []

    @property
    def program(self) -> Program:
        return self.programs[-1]

    def start(self, **more: str) -> None:
        settings = {
            "POSTERN_PORT": str(self.port),
            "POSTERN_DATA_DIR": str(self.data_dir),
            "POSTERN_WORKFLOWS": str(self.folder / "workflows"),
            "POSTERN_LOG": "off",
            "NOTES": str(self.notes),
            **asking_soon(self.folder),
            **more,
        }
        self.programs.append(Program(self.folder, settings))
        self.program.wait_until_ready()

    def history(self) -> list[tuple[str, str, bytes]]:
        return rows(self.data_dir / "postern.db", "SELECT id, outcome, headers FROM invocations")

    def states(self) -> dict[str, int]:
        counted = "SELECT state, count(*) FROM deliveries GROUP BY state"
        return dict(rows(self.data_dir / "postern.db", counted))

    def runs(self) -> dict[str, str | None]:
        """The engine's own books: each run and its state."""
        return dict(rows(self.data_dir / "engine.db", "SELECT delivery || '/' || workflow, state FROM runs"))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    try:
        yield scene
        if scene.program.process.poll() is None:
            assert scene.program.stop() == 0
    finally:
        for program in scene.programs:
            program.kill()


class Caller:
    """A sender as they are: one connection kept open, and what was not acknowledged is sent again."""

    def __init__(self, port: int, webhook: ServedWebhook) -> None:
        self._port = port
        self._webhook = webhook
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, event: int) -> str:
        """The invocation's id, as soon as somebody has said that it is stored."""
        while True:
            try:
                status, body = await asyncio.wait_for(self._exchange(event), PATIENCE)
                if status == 200:
                    return str(json.loads(body)["invocationId"])
                assert status == 503, body
            except (OSError, EOFError, TimeoutError):
                await self.close()
            await asyncio.sleep(0.02)  # it is sent until somebody takes it

    async def _exchange(self, event: int) -> tuple[int, bytes]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        body = b'{"event": %d, "filler": "%s"}' % (event, b"x" * 500)
        writer.write(
            f"POST {self._webhook.path} HTTP/1.1\r\nHost: x\r\nX-Api-Key: {TOKEN}\r\nX-Event-Id: {event}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        return int(head.split()[1]), await reader.readexactly(length)

    async def close(self) -> None:
        streams, self._streams = self._streams, None
        if streams is not None:
            streams[1].close()
            with suppress(OSError):
                await streams[1].wait_closed()


async def storm(scene: Scene) -> dict[int, str]:
    """Calls in waves, each wave met by a power cut at another moment; what every call's sender was told at last."""
    callers = [Caller(scene.port, scene.webhook) for _ in range(CONNECTIONS)]
    acknowledged: dict[int, str] = {}

    async def one_of(caller: Caller, event: int) -> None:
        acknowledged[event] = await caller.call(event)

    for number, (_, moment, engine_first) in enumerate(CUTS):
        await asyncio.to_thread(scene.program.wait_for_engine)
        noted = scene.notes.stat().st_size
        before = len(acknowledged)
        wave = range(number * CONNECTIONS, (number + 1) * CONNECTIONS)
        sending = [
            asyncio.create_task(one_of(caller, event)) for caller, event in zip(callers, wave, strict=True)
        ]
        while not moment(len(acknowledged) - before, scene.notes.stat().st_size > noted):
            await asyncio.sleep(0.001)
        if engine_first:
            await asyncio.to_thread(kill_the_engine_first, scene)
        scene.program.process.kill()  # at this very moment, and then whatever is left of it
        await asyncio.to_thread(scene.program.kill)
        await asyncio.to_thread(scene.start)
        await asyncio.gather(*sending)  # a connection carries one call at a time
    for caller in callers:
        await caller.close()
    return acknowledged


CUTS: list[tuple[str, Callable[[int, bool], bool], bool]] = [
    ("before anything is acknowledged", lambda acknowledged, running: True, False),
    ("when the first is acknowledged", lambda acknowledged, running: acknowledged > 0, False),
    ("when the first run has worked", lambda acknowledged, running: running, False),
    ("engine first, half acknowledged", lambda acknowledged, running: acknowledged >= CONNECTIONS // 2, True),
    ("when all are acknowledged", lambda acknowledged, running: acknowledged == CONNECTIONS, False),
]


def kill_the_engine_first(scene: Scene) -> None:
    for process in scene.program.processes_left():
        if process != scene.program.process.pid:
            os.kill(process, signal.SIGKILL)


def test_power_cuts_under_load_lose_nothing_and_start_nothing_twice(scene: Scene) -> None:
    scene.start()
    acknowledged = asyncio.run(storm(scene))
    assert len(acknowledged) == CONNECTIONS * len(CUTS)
    accepted = wait_until(
        lambda: scene.states().keys() == {"completed"} and scene.states()["completed"],
        what=lambda: f"ends: {scene.states()}",
    )
    wait_until(
        lambda: len(scene.runs()) == accepted and set(scene.runs().values()) == {"completed"},
        what="every run to end",
    )

    history = scene.history()
    of_event: dict[str, list[str]] = {}
    for id, outcome, headers in history:
        if outcome == "accepted":
            of_event.setdefault(dict(json.loads(headers))["x-event-id"], []).append(id)
    # Every event's first call is there once, and it is the one that its sender was told of, however often it
    # had to ask.
    assert {event: ids for event, ids in of_event.items() if len(ids) != 1} == {}
    assert {int(event): ids[0] for event, ids in of_event.items()} == acknowledged
    assert len({id for id, _, _ in history}) == len(history)
    # Each of them was started under its one key, and did its work.
    assert sorted(scene.runs()) == sorted(f"{id}.1/note_starts" for id in acknowledged.values())
    assert set(scene.notes.read_text().split()) == set(acknowledged.values())


def test_a_power_cut_while_the_engine_has_taken_a_start_and_not_confirmed_it_starts_it_once(
    scene: Scene,
) -> None:
    with counting_engine() as engine:
        settings = {"POSTERN_ENGINE": "http", "POSTERN_HTTP_URL": engine.url}
        scene.start(**settings)
        engine.answers.clear()
        answer = exchange(scene.port, "POST", scene.webhook.path, [*CALL, ("X-Event-Id", "1")], b'{"n": 1}')
        key = answer.json["invocationId"] + ".1"
        wait_until(lambda: engine.keys[key] == 1, what="the engine to take it")
        scene.program.kill()
        assert scene.states() == {"queued": 1}
        engine.answers.set()
        scene.start(**settings)
        wait_until(lambda: scene.states() == {"started": 1}, what="the start to be written down")
        # It is asked again, for nobody can know, but under the key by which the engine knows that it has it,
        # and with the same words.
        assert engine.keys == {key: 2}
        assert engine.triggers[0] == engine.triggers[1]


CUT = """
import os
import signal

from postern.engines.embedded.runs import WorkflowRuns

take = WorkflowRuns.start


def take_and_cut(runs, asked, on_result):
    def cut(result):
        if os.path.exists(os.environ["CUT"]):
            os.unlink(os.environ["CUT"])
            os.kill(os.getppid(), signal.SIGKILL)
        on_result(result)

    take(runs, asked, cut)


WorkflowRuns.start = take_and_cut
"""


def test_the_embedded_engine_runs_once_what_it_took_when_the_gateway_died_before_it_heard(
    scene: Scene,
) -> None:
    (scene.folder / "workflows" / "cut.py").write_text(CUT)
    cut = scene.folder / "cut"
    scene.start(CUT=str(cut))
    scene.program.wait_for_engine()
    cut.touch()
    answer = exchange(scene.port, "POST", scene.webhook.path, [*CALL, ("X-Event-Id", "1")], b"{}")
    scene.program.process.wait(PATIENCE)
    wait_until(lambda: not scene.program.processes_left(), what="the engine to follow the gateway")
    assert scene.states() == {"queued": 1} and len(scene.runs()) == 1
    scene.start(CUT=str(cut))
    wait_until(lambda: scene.states() == {"completed": 1}, what="the end to be written down")
    wait_until(
        lambda: scene.runs() == {answer.json["invocationId"] + ".1/note_starts": "completed"},
        what=lambda: f"{scene.runs()}",
    )
    assert set(scene.notes.read_text().split()) == {answer.json["invocationId"]}
