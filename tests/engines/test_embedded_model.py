"""The runner against a model of it in plain Python: random workflows, crashes at random moments."""

import itertools
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from postern.core.deliveries.delivery import End
from postern.engines.embedded.frames import Start
from postern.engines.embedded.runs import WorkflowRuns
from postern.workflows import replay
from postern.workflows.language import Declared, StepFailed, respond, sleep, step
from postern.workflows.replay import LeftOff
from support.waiting import wait_until

Word = Literal["step", "failing step", "sleep", "respond", "raise"]
Moment = Literal["before the effect", "after the effect", "after it is recorded"]

WORDS: list[Word] = ["step", "step", "failing step", "sleep", "respond", "raise"]
MOMENTS: list[Moment] = ["before the effect", "after the effect", "after it is recorded"]
PROGRAMS = st.lists(st.sampled_from(WORDS), max_size=6)
CRASHES = st.dictionaries(
    st.integers(0, 5), st.lists(st.sampled_from(MOMENTS), min_size=1, max_size=3), max_size=3
)
Crashes = dict[int, list[Moment]]


class Crash(LeftOff):
    """The process is gone: what the run had not recorded by now is lost."""


def model(program: list[Word], crashes: Crashes) -> tuple[list[int], str, list[str]]:
    """The effects in their order, how the run ends, and the names of the recorded steps."""
    left = {place: list(moments) for place, moments in crashes.items()}
    effects: list[int] = []
    recorded: list[str] = []
    while True:
        for place, word in enumerate(program):
            if word == "raise":
                return effects, "failed", recorded
            if place < len(recorded):
                continue
            moment = left[place].pop(0) if left.get(place) else None
            if moment == "before the effect":
                break
            if word in ("step", "failing step", "respond"):
                effects.append(place)
            if moment == "after the effect":
                break
            recorded.append(
                "sleep" if word == "sleep" else "respond" if word == "respond" else f"step {place}"
            )
            if moment == "after it is recorded":
                break
        else:
            return effects, "completed", recorded


class Bed:
    """The real thing on a file; a process's life is one ``WorkflowRuns``."""

    def __init__(self, folder: Path, program: list[Word], crashes: Crashes) -> None:
        self.folder = folder
        self.program = program
        self.left = {place: list(moments) for place, moments in crashes.items()}
        self.effects: list[int] = []
        self.crashed = threading.Event()
        self.place = 0
        self.moment: Moment | None = None

    def crash(self) -> None:
        self.crashed.set()
        raise Crash

    def workflow(self, event: Any) -> None:
        for place, word in enumerate(self.program):
            self.place = place
            self.do(place, word)

    def do(self, place: int, word: Word) -> None:
        @step(name=f"step {place}")
        def act() -> int:
            self.act(place)
            if word == "failing step":
                raise LookupError(f"as asked at {place}")
            return place

        match word:
            case "step":
                assert act() == place
            case "failing step":
                try:
                    act()
                except StepFailed as failed:
                    assert str(failed) == f"step {place} failed: LookupError: as asked at {place}"
            case "sleep":
                sleep(0.004)
            case "respond":
                assert respond(place) is True
            case "raise":
                raise ValueError("as asked")

    def act(self, place: int) -> None:
        if self.moment == "before the effect":
            self.crash()
        self.effects.append(place)

    def answer(self, key: str, deadline: float, document: str) -> bool:
        self.act(self.place)
        return True

    def live(self) -> tuple[str, list[str]] | None:
        """Runs until the run ends or the process crashes. Returns how it ended, or None."""
        outcome: list[str] = []
        over = threading.Event()
        self.crashed.clear()

        def on_end(_: str, end: End) -> None:
            outcome.append(end.state)
            over.set()

        runs = WorkflowRuns(
            self.folder / "engine.db",
            [Declared("flow", (), self.workflow)],
            keep_seconds=3600,
            at_once=2,
            answer=self.answer,
            on_end=on_end,
        )
        record = runs._record

        def record_or_crash(run: Any, position: int, *rest: Any) -> Callable[[], None]:
            # Which moment is next is settled when the step begins, and asked for again here.
            if self.moment is not None and self.moment != "after it is recorded":
                self.crash()
            on_disk = record(run, position, *rest)

            def wait_and_crash() -> None:
                on_disk()
                if self.moment == "after it is recorded":
                    self.crash()

            return wait_and_crash

        runs._record = record_or_crash  # type: ignore[method-assign]
        find = replay.StepReplay._recorded

        def find_and_settle(one: replay.StepReplay, name: str) -> Any:
            found = find(one, name)
            left = self.left.get(self.place)
            self.moment = left.pop(0) if found is None and left else None
            return found

        replay.StepReplay._recorded = find_and_settle  # type: ignore[method-assign]
        shortest, replay.SHORTEST_LEAVE = replay.SHORTEST_LEAVE, 0.0  # every sleep lets go of its thread
        try:
            runs.open()
            runs.start(Start(1, "inv.1", "wh_1", {"fieldOne": ""}, b"{}", 2e9), lambda _: None)
            if (end := runs.ends(["inv.1"]).get("inv.1")) is not None:  # an earlier life has ended it
                on_end("inv.1", end)
            wait_until(
                lambda: over.is_set() or self.crashed.is_set(), every=0.001, what="the run to end or to crash"
            )
        finally:
            runs.finish(10)
            replay.StepReplay._recorded = find  # type: ignore[method-assign]
            replay.SHORTEST_LEAVE = shortest
        if not outcome:
            return None
        again = WorkflowRuns(
            self.folder / "engine.db", [], keep_seconds=1, at_once=1, answer=self.answer, on_end=on_end
        )
        [shown] = again.shown(10, "inv.1")
        again.finish(0)
        assert shown.state == outcome[0]
        return outcome[0], [one.name for one in shown.steps]


@settings(max_examples=60, deadline=None)
@given(PROGRAMS, CRASHES)
def test_a_run_does_what_the_model_does_wherever_its_process_crashes(
    program: list[Word], crashes: Crashes
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bed = Bed(Path(folder), program, crashes)
        ended: Callable[[], Any] = bed.live
        ending = next(filter(None, (ended() for _ in itertools.count())))
    assert (bed.effects, *ending) == model(program, crashes)
