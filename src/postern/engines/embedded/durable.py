"""What the words of a workflow do in the embedded engine: every step, sleep and answer is a recorded DBOS
step."""

import time
from collections.abc import Callable
from typing import Any

from dbos import DBOS, PortableWorkflowError

from postern.core.deliveries.delivery import ResponseSlot
from postern.engines.embedded.door import AnswerRefused, knock
from postern.workflows.language import StepFailed

LONGEST_NAP = 5.0


class Suspended(BaseException):
    """The run lets go of its thread until ``wake_at``. Not an Exception: neither DBOS nor a workflow's own
    handlers may take it for a failure, so the run stays unfinished and is resumed, replaying its recorded
    steps."""

    def __init__(self, wake_at: float) -> None:
        super().__init__()
        self.wake_at = wake_at


class DurableRun:
    """One run of one workflow."""

    def __init__(self, slot: ResponseSlot | None) -> None:
        self._slot = slot

    def durable(self, name: str, action: Callable[[], Any]) -> Any:
        try:
            return DBOS.run_step({"name": name}, action)
        except (
            PortableWorkflowError
        ) as recorded:  # replayed: DBOS keeps an error's name and words, not its class
            raise StepFailed(recorded.message) from None

    def sleep(self, seconds: float) -> None:
        wake_at = self.durable("sleep", lambda: time.time() + seconds)
        left = wake_at - time.time()
        # A sleeping thread is one that no other run can have, so only a nap is taken in place.
        if left > LONGEST_NAP:
            raise Suspended(wake_at)
        if left > 0:
            time.sleep(left)

    def respond(self, answer: dict[str, Any]) -> bool:
        return bool(self.durable("respond", lambda: self._answer(answer)))

    def _answer(self, answer: dict[str, Any]) -> bool:
        if self._slot is None:
            return False
        try:
            return knock(self._slot, answer)
        except AnswerRefused as error:
            raise StepFailed(f"respond failed: {error}") from error
