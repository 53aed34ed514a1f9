"""The meaning of a workflow's words, in the embedded engine as in a rehearsal: a recorded result is returned, any
other is recorded before it counts."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from postern.workflows.event import event_of
from postern.workflows.language import Automation, Once, StandIn, StepFailed, carry_out, running

SHORTEST_LEAVE = 0.05
"""A sleep that is shorter is slept through; for a longer one the run gives its thread to others."""


class LeftOff(BaseException):
    """The run lets go of its thread without having ended. Not an Exception: a workflow's own handlers must not
    take it for a failure."""


class Asleep(LeftOff):
    """It goes on at its time, replaying what is recorded."""


class Forgotten(LeftOff):
    """The run is not in the journal any more."""


class StepsChanged(BaseException):
    """The workflow asks for other steps than it recorded. Not an Exception, for the same reason."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A step that was done: what it returned, as JSON, or what it failed with."""

    name: str
    result: str | None = None
    error: str | None = None
    seconds: float = 0.0
    """How long it took. A run does not read it: it is for whoever asks why a run was slow."""


@dataclass(slots=True)
class StepReplay:
    """One run of one workflow, as far as it was recorded, and then on."""

    recorded: list[Recorded]
    record: Callable[[int, Recorded, float | None, bool], Callable[[], None]]
    """Has the step at this position put on disk; with a time, the run is asleep until then; at once, if the last says
    that the run waits for it. The returned function waits until it is there, and may raise ``Forgotten``."""
    answer: Callable[[str], bool]
    now: Callable[[], float] = time.time
    wait: Callable[[float], None] = time.sleep
    stand_in: StandIn | None = None
    position: int = 0
    busy: bool = False
    on_disk: Callable[[], None] | None = None
    """Waits for what was recorded last."""
    over: BaseException | None = None
    """Once the run has to let go it does nothing durable any more, even if the workflow's code has caught
    this."""

    @contextmanager
    def once(self, name: str) -> Iterator[Once]:
        entry = self._recorded(name)
        if entry is not None:
            if entry.error is not None:
                raise StepFailed(entry.error)
            yield Once(entry.result or "null")
            return
        once, self.busy = Once(stand_in=self.stand_in), True
        began = time.monotonic()
        try:
            yield once
        except StepFailed as failed:
            self._record(Recorded(name, error=str(failed), seconds=time.monotonic() - began))
            raise
        except LeftOff as left_off:
            self._let_go(left_off)
        finally:
            self.busy = False
        took = time.monotonic() - began
        self._record(Recorded(name, result=once.result, seconds=took), awaited=once.awaited)

    def sleep(self, seconds: float) -> None:
        entry, latest = self._recorded("sleep"), self.now() + seconds
        # Later than that only a clock could have set it that was set back since.
        wake_at = min(float(entry.result or 0), latest) if entry else latest
        left = wake_at - self.now()
        wake_at_disk = wake_at if left > SHORTEST_LEAVE else None
        if entry is None or wake_at_disk is not None:  # for the first time, or taken up too early
            duration = min(float(seconds), sys.float_info.max)  # JSON has no infinity
            self._record(Recorded("sleep", result=repr(wake_at), seconds=duration), wake_at_disk)
        if wake_at_disk is not None:
            self._let_go(Asleep())
        self.wait(max(0.0, left))

    def _recorded(self, name: str) -> Recorded | None:
        """Returns the record of the next step, which the workflow calls ``name``, or None if it is to be done."""
        if self.over is not None:
            raise self.over
        if self.busy:
            raise RuntimeError(
                f"{name} was begun while another step of this run was at work: a run takes its steps one after the other,"
                " or it could not be taken up again. Things that happen at the same moment belong into one step"
            )
        self._wait_until_on_disk()
        position, self.position = self.position, self.position + 1
        if position >= len(self.recorded):
            return None
        entry = self.recorded[position]
        if entry.name != name:
            self._let_go(
                StepsChanged(
                    f"the workflow has changed since this run began: its step {position + 1} was {entry.name}"
                    f" and is {name} now. Replay the call to run it anew"
                )
            )
        return entry

    def _record(self, step: Recorded, wake_at: float | None = None, awaited: bool = True) -> None:
        self.on_disk = self.record(self.position - 1, step, wake_at, awaited)
        if awaited:
            self._wait_until_on_disk()

    def _wait_until_on_disk(self) -> None:
        on_disk, self.on_disk = self.on_disk, None
        if on_disk is None:
            return
        try:
            on_disk()
        except LeftOff as left_off:
            self._let_go(left_off)

    def _let_go(self, reason: BaseException) -> None:
        self.over = reason
        raise reason


@dataclass(frozen=True, slots=True)
class Stopped:
    """How far a run came this time."""

    reason: BaseException | None = None
    """None if the run came to its end."""
    result: Any = None


def carry_on(function: Automation, event: str, replay: StepReplay) -> Stopped:
    """Run the workflow on the event, which is JSON, from the top, past what is recorded, as far as it goes now."""
    reason: BaseException | None = None
    result: Any = None
    try:
        with running(replay):
            result = carry_out(function, event_of(event))
    except BaseException as failure:
        reason = failure
    # The workflow's code may have caught what was to stop it, or made something else of it.
    return Stopped(reason if replay.over is None else replay.over, result)
