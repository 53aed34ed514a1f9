"""The embedded engine's file after a power cut, and on a full disk."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engines.embedded_stage import Stage, until
from postern import workflows
from postern.core.deliveries.delivery import RunStep
from postern.engines.embedded import frames
from postern.engines.embedded.conversation import Conversation
from postern.engines.embedded.frames import Start
from postern.engines.embedded.journal import Journal, JournalUnavailable
from postern.engines.embedded.runs import WorkflowRuns
from postern.workflows import respond
from postern.workflows.language import Declared, carry_out, running
from postern.workflows.replay import Recorded, StepReplay
from support import power_cut
from support.waiting import PATIENCE, wait_until


async def test_after_a_power_cut_an_ended_run_stays_ended_and_a_recorded_step_is_not_repeated(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in power_cut.environment(stage.folder, stage.data).items():
        monkeypatch.setenv(name, value)
    engine = await stage.open("""
        @step
        def charge(): mark("charge")
        @step
        def ship():
            mark("ship")
            while not marked("go"):
                time.sleep(0.02)
        @workflow("ends")
        def ends(event):
            charge()
            mark("told", respond({"paid": True}))
        @workflow("goes on")
        def goes_on(event):
            charge()
            ship()
        """)
    await stage.start("a.1", webhook_id="ends", slot=stage.endpoint.slot())
    assert await stage.ended("a.1") == "completed"
    await stage.start("b.1", webhook_id="goes on")
    await until(lambda: stage.marked("ship"))
    process = stage.process
    # The supervisor must not start the next one before the files are cut back.
    os.kill(process, signal.SIGSTOP)
    power_cut.cut_back(stage.data)
    os.kill(process, signal.SIGKILL)
    await until(lambda: len(stage.marked("ship")) == 2)
    stage.mark("go")
    assert await stage.ended("b.1") == "completed"
    assert await stage.ended("a.1") == "completed"
    runs = {run.id: run for run in await engine.runs() or []}
    assert {id: run.state for id, run in runs.items()} == dict.fromkeys(
        ("a.1/ends", "b.1/goes_on"), "completed"
    )
    assert stage.marked("charge") == ["x", "x"]
    assert stage.marked("told") == ["True"]
    await engine.close()
    with closing(sqlite3.connect(stage.data / "engine.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_what_a_dead_process_had_not_synced_is_synced_before_it_is_believed(tmp_path: Path) -> None:
    data, insert = tmp_path / "data", "INSERT INTO runs (seq, delivery, workflow, event, started_at) VALUES"
    data.mkdir()
    opens = f"import os, pathlib\nfrom postern.engines.embedded.journal import Journal\njournal = Journal(pathlib.Path({str(data)!r}) / 'engine.db')\n"
    unsynced = "journal._connection.execute('PRAGMA synchronous=OFF')\n"
    writes = f"journal._connection.execute(\"{insert} (7, 'inv.1', 'flow', '', 0)\")\n"
    reads = "assert journal.read('SELECT seq FROM runs') == [(7,)]\n"
    for what_it_does in (unsynced + writes, reads):
        subprocess.run(
            [sys.executable, "-c", f"{opens}{what_it_does}os._exit(0)"],
            env={**os.environ, **power_cut.environment(tmp_path, data)},
            check=True,
        )
    power_cut.cut_back(data)
    with closing(sqlite3.connect(data / "engine.db")) as database:
        assert database.execute("SELECT seq FROM runs").fetchall() == [(7,)]


class Outcome:
    def __init__(self) -> None:
        self.results: list[Any] = []
        self.came = threading.Event()

    def __call__(self, result: Any) -> None:
        self.results.append(result)
        self.came.set()


def hold_up(journal: Journal) -> Callable[[], None]:
    """What comes from now on is one group, which is begun when what is returned is called."""
    holding, held = threading.Event(), threading.Event()

    def hold(_: sqlite3.Connection) -> None:
        held.set()
        holding.wait(PATIENCE)

    journal.submit(hold)
    assert held.wait(PATIENCE)
    return holding.set


def insert(seq: int, text: str = "") -> Callable[[sqlite3.Connection], int]:
    def change(connection: sqlite3.Connection) -> int:
        connection.execute(
            "INSERT INTO runs (seq, delivery, workflow, event, started_at) VALUES (?, ?, 'flow', ?, 0)",
            (seq, f"inv{seq}.1", text),
        )
        return seq

    return change


def test_a_file_that_is_full_fails_a_start_at_once_and_takes_what_must_be_recorded_when_it_can(
    tmp_path: Path,
) -> None:
    troubles: list[str] = []
    journal = Journal(tmp_path / "engine.db", troubles.append)
    assert journal.write(insert(1)) == 1
    pages = journal.write(lambda connection: connection.execute("PRAGMA page_count").fetchone()[0])
    journal.write(lambda connection: connection.execute(f"PRAGMA max_page_count={pages}").fetchone())
    refused, insisting = Outcome(), Outcome()
    journal.submit(insert(2, "x" * 100_000), refused, insist=False)
    journal.submit(insert(3, "x" * 100_000), insisting)
    assert refused.came.wait(PATIENCE) and isinstance(refused.results[0], JournalUnavailable)
    wait_until(lambda: len(troubles) == 1)
    assert "full" in troubles[0]
    assert not insisting.results
    later = Outcome()  # behind what is tried again and again
    journal.submit(insert(4, "x" * 100_000), later, insist=False)
    assert later.came.wait(PATIENCE) and isinstance(later.results[0], JournalUnavailable)
    assert journal.read("SELECT seq FROM runs") == [(1,)]  # reading is no trouble
    journal._connection.execute("PRAGMA max_page_count=1000000").fetchone()
    assert insisting.came.wait(PATIENCE) and insisting.results == [3]
    assert journal.read("SELECT seq FROM runs") == [(1,), (3,)]
    assert troubles[1:] == [""]
    journal.close()


def test_a_change_that_fails_by_itself_fails_alone(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "engine.db")
    let_go = hold_up(journal)
    outcomes = [Outcome() for _ in range(3)]
    for change, one in zip([insert(1), insert(1), insert(2)], outcomes, strict=True):
        journal.submit(change, one)
    let_go()
    for one in outcomes:
        assert one.came.wait(PATIENCE)
    assert outcomes[0].results == [1] and outcomes[2].results == [2]
    assert isinstance(outcomes[1].results[0], sqlite3.IntegrityError)
    assert journal.read("SELECT seq FROM runs") == [(1,), (2,)]
    journal.close()


def test_changes_that_arrive_during_a_commit_share_the_next_one(tmp_path: Path) -> None:
    groups = 0

    def over() -> None:
        nonlocal groups
        groups += 1

    journal = Journal(tmp_path / "engine.db", group_over=over)
    go = threading.Event()
    journal.submit(lambda _: go.wait(PATIENCE) and None)
    outcomes = Outcome()
    for number in range(1, 501):
        journal.submit(insert(number), outcomes)
    go.set()
    wait_until(lambda: len(outcomes.results) == 500)
    assert groups <= 2
    journal.close()


def test_what_nobody_waits_for_goes_with_the_next_commit_and_is_soon_on_disk_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups: list[None] = []
    journal = Journal(tmp_path / "engine.db", group_over=lambda: groups.append(None))
    stored = threading.Event()
    journal.submit(lambda connection: None, lambda _: stored.set(), urgent=False)
    assert stored.wait(PATIENCE), "it waits for company for ever"

    monkeypatch.setattr("postern.engines.embedded.journal.SOON", 60.0)
    groups.clear()
    on_disk = journal.write_soon(lambda connection: 1)
    wait_until(journal._queue.empty)  # the journal has it in hand
    assert journal.write(lambda connection: 2) == 2
    assert on_disk() == 1
    wait_until(lambda: len(groups) > 0)
    assert len(groups) == 1, "each of them had a commit of its own"
    journal.close()


def test_after_an_answer_the_next_word_waits_until_the_answer_is_on_disk() -> None:
    recorded: list[str] = []
    on_disk: list[str] = []

    def record(position: int, step: Recorded, wake_at: float | None, awaited: bool) -> Callable[[], None]:
        assert awaited is (step.name != "respond")
        recorded.append(step.name)
        return lambda: on_disk.append(step.name)

    def answer_and_ship(event: object) -> None:
        assert respond({"paid": True})
        recorded.append("the workflow goes on")
        assert on_disk == []
        ship()

    @workflows.step
    def ship() -> None:
        assert on_disk == ["respond"]

    with running(StepReplay([], record, lambda document: True)):
        carry_out(answer_and_ship, {})
    assert recorded == ["respond", "the workflow goes on", "ship"]
    assert on_disk == ["respond", "ship"], "a step's result is on disk before the workflow goes on"


Answer = Callable[[str, float, str], bool]


class Life:
    """One process's life with one workflow."""

    def __init__(self, folder: Path, flow: Callable[[Any], object], answer: Answer) -> None:
        self.seen: list[tuple[int, int]] = []
        """The contents of the disk after each commit, without repetitions."""
        self.started = Outcome()
        self.ended = Outcome()
        self.runs = WorkflowRuns(
            folder / "engine.db",
            [Declared("flow", (), flow)],
            keep_seconds=3600,
            at_once=2,
            answer=answer,
            on_end=lambda _, end: self.ended(end),
            group_over=self._look,
        )
        # Not opened: an earlier life left nothing, and nobody else is to write something meanwhile.

    def _look(self) -> None:
        if not self.seen or self.on_disk() != self.seen[-1]:
            self.seen.append(self.on_disk())

    def start(self) -> None:
        self.runs.start(Start(1, "inv.1", "wh_1", {"fieldOne": ""}, b"{}", time.time() + 60), self.started)

    def on_disk(self) -> tuple[int, int]:
        """Returns how many runs and how many steps there are."""
        [counts] = self.runs._journal.read("SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM steps)")
        found: tuple[int, int] = counts
        return found


def test_the_start_of_a_run_whose_caller_waits_is_written_with_its_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postern.engines.embedded.journal.SOON", 60.0)
    seen: list[tuple[int, int]] = []
    answered = threading.Event()

    @workflows.step
    def find() -> str:
        return "too early" if life.started.came.wait(0.2) else "#1001"

    def answer(key: str, deadline: float, document: str) -> bool:
        seen.append(life.on_disk())
        answered.set()
        return "#1001" in document

    life = Life(tmp_path, lambda _: respond(find()), answer)
    life.start()
    assert answered.wait(PATIENCE)
    assert seen == [(1, 1)], "the answer was sent before the step was on disk"
    assert [one.runs for one in life.started.results] == [1]
    life.runs.finish(10)
    assert life.seen == [(1, 1), (1, 2)], "the start had a commit of its own"
    assert [end.state for end in life.ended.results] == ["completed"]


def test_the_start_is_on_disk_soon_although_the_first_step_takes_long(tmp_path: Path) -> None:
    go = threading.Event()

    @workflows.step
    def takes_long() -> None:
        assert go.wait(PATIENCE)

    life = Life(tmp_path, lambda _: takes_long(), lambda *_: True)
    life.start()
    assert life.started.came.wait(PATIENCE), "the gateway does not hear that the run was started"
    assert life.on_disk() == (1, 0)
    go.set()
    assert life.ended.came.wait(PATIENCE)
    life.runs.finish(10)


def test_a_run_that_answers_first_of_all_has_its_start_written_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postern.engines.embedded.journal.SOON", 60.0)
    started: list[bool] = []
    answered = threading.Event()

    def answer(key: str, deadline: float, document: str) -> bool:
        started.append(life.started.came.wait(PATIENCE))
        answered.set()
        return True

    life = Life(tmp_path, lambda _: respond("at once"), answer)
    life.start()
    assert answered.wait(PATIENCE) and started == [True]
    life.runs.finish(10)


def test_a_run_is_shown_with_how_long_each_step_took_and_why_it_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("postern.workflows.replay.time", SimpleNamespace(monotonic=lambda: clock[0]))

    @workflows.step
    def find() -> None:
        clock[0] += 2.5

    @workflows.step
    def pay() -> None:
        clock[0] += 0.25
        raise LookupError("no card")

    def flow(_: Any) -> None:
        find()
        workflows.sleep(0.01)
        pay()

    life = Life(tmp_path, flow, lambda *_: True)
    life.start()
    assert life.ended.came.wait(PATIENCE)
    [run] = life.runs.shown(10, "inv.1")
    life.runs.finish(10)
    failed = RunStep("pay", 0.25, "pay failed: LookupError: no card")
    assert run.steps == (RunStep("find", 2.5), RunStep("sleep", 0.01), failed)


def test_a_defect_in_another_change_begins_no_run_twice(tmp_path: Path) -> None:
    done: list[str] = []

    @workflows.step
    def ship() -> None:
        done.append("ship")

    life = Life(tmp_path, lambda _: ship(), lambda *_: True)
    let_go = hold_up(life.runs._journal)
    life.start()
    other = Outcome()
    life.runs._journal.submit(lambda _: 1 // 0, other)
    let_go()
    assert life.ended.came.wait(PATIENCE) and other.came.wait(PATIENCE)
    assert isinstance(other.results[0], ZeroDivisionError)
    life.runs.finish(10)
    assert done == ["ship"]
    with closing(sqlite3.connect(tmp_path / "engine.db")) as database:
        assert database.execute("SELECT seq, state FROM runs").fetchall() == [(1, "completed")]


@pytest.mark.parametrize(("version", "words"), [(1, "before the first release"), (99, "newer version")])
def test_a_file_of_another_version_is_refused_and_left_as_it_is(
    tmp_path: Path, version: int, words: str
) -> None:
    file = tmp_path / "engine.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute(f"PRAGMA user_version={version}")
    with pytest.raises(JournalUnavailable, match=words) as refused:
        Journal(file)
    # What was refused is still known here, with the journal in its traceback: nothing but closing it has closed the file.
    assert refused.tb is not None
    assert str(file) not in [os.path.realpath(one) for one in Path("/proc/self/fd").iterdir()]


def test_whoever_else_opens_the_file_and_closes_it_leaves_its_log_alone(tmp_path: Path) -> None:
    """A backup, or somebody with `sqlite3`: the last one to close a database deletes its log, and takes itself for
    the last one where this process has no lock on it."""
    file = tmp_path / "engine.db"
    lost = threading.Event()
    journal = Journal(file, lost=lost.set)
    Journal(tmp_path / "another.db").close()
    journal.write(lambda connection: connection.execute("INSERT INTO steps VALUES (1, 1, 'a', '1', NULL, 0)"))
    look = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM steps').fetchall(); c.close()"
    subprocess.run([sys.executable, "-c", look, str(file)], check=True)
    assert file.with_name("engine.db-wal").exists()
    journal.write(lambda connection: connection.execute("INSERT INTO steps VALUES (1, 2, 'b', '1', NULL, 0)"))
    journal.close()
    assert not lost.is_set()


def test_what_is_said_last_has_gone_out_when_the_process_ends_whoever_else_is_sending() -> None:
    ours, theirs = socket.socketpair()
    conversation = Conversation(theirs)
    other = threading.Thread(target=conversation.send, args=(frames.Trouble("x" * 4_000_000),))
    other.start()
    wait_until(
        lambda: conversation._turn.locked() and not conversation._gathered,
        what="the other to be sending more than the socket takes",
    )

    def end() -> None:
        conversation.gather(frames.Trouble("the last word"))
        conversation.finish()
        theirs.shutdown(socket.SHUT_WR)  # as the end of the process does

    ending = threading.Thread(target=end)
    ending.start()
    wait_until(lambda: conversation._gathered or not ending.is_alive(), what="the last word to be there")
    with ours, ours.makefile("rb") as heard:
        received = heard.read()
    for thread in (other, ending):
        thread.join(PATIENCE)
    assert b"the last word" in received
    theirs.close()
